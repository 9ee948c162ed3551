"""What importing the library costs: modules are counted, times are the benchmarks' business."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fly

HEAVY = {"numpy", "torch", "torch_mlir", "mlir", "typer", "rich", "inspect", "subprocess", "json"}


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_importing_fly_imports_nothing_else():
    added = modules_after("import fly") - modules_after("pass")
    assert not added & HEAVY


def test_the_language_has_no_name_that_imports_mlir():
    """The dependency hash looks up the names that a function uses, in warm compiles too."""
    code = "import fly.expr as fx\nfor name in fx.__all__: getattr(fx, name)"
    assert not modules_after(code) & {"numpy", "torch", "torch_mlir", "mlir", "typer"}


def test_every_name_is_there():
    for name in fly.__all__:
        assert getattr(fly, name) is not None
    assert set(fly.__all__) <= set(dir(fly))


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="module 'fly' has no attribute 'kernel_library'"):
        fly.kernel_library  # noqa: B018
