"""Kernels run on the emulator; torch judges them."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from zlib import crc32

import pytest
from chosen_targets import USUAL, first

# torch keeps graphs that it compiled, and the shapes in them, by the names of operators: those of
# an earlier state of the operators, too.
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]


OTHERS = [name for name in USUAL if name != "gfx942"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves each case gfx942 and one other target, which one its name decides: so each kernel runs
    on all. FLY_TEST_TARGETS=every, of `make kernels`, leaves it all."""
    if os.environ.get("FLY_TEST_TARGETS") == "every":
        return
    config.hook.pytest_deselected(items=[item for item in items if not _in_sample(item)])
    items[:] = [item for item in items if _in_sample(item)]


def _in_sample(item: pytest.Item) -> bool:
    target = getattr(item, "callspec", None) and item.callspec.params.get("target")
    if target not in OTHERS or not item.path.is_relative_to(Path(__file__).parent):
        return True
    case = item.nodeid.replace(target, "")
    return OTHERS[crc32(case.encode()) % len(OTHERS)] == target


@pytest.fixture(params=first(("gfx942", *OTHERS)))
def target(request, monkeypatch) -> str:
    """The target of `fly.kernels`: gfx942, in heavy tests also others."""
    monkeypatch.setenv("FLY_TARGET", request.param)
    monkeypatch.setenv("FLY_DEVICE", "emulator")
    return request.param


@pytest.fixture
def strict(target, monkeypatch) -> None:
    """Runs kernels in strict mode, which executes some thousand instructions a second."""
    monkeypatch.setenv("FLY_STRICT", "1")
