"""The fingerprint: what changes it, what does not, and that it costs no import of MLIR."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fly_opt import Options, fingerprint
from fly_opt.backends.amd import device_libraries


@pytest.fixture(autouse=True)
def fresh_search():
    device_libraries.folder.cache_clear()
    yield
    device_libraries.folder.cache_clear()


def test_equal_options_have_equal_fingerprints():
    assert fingerprint(Options(target="gfx942")) == fingerprint(Options(target="gfx942"))


def test_every_option_counts():
    variants = [
        Options(),
        Options(target="gfx942"),
        Options(target="gfx90a"),
        Options(target="gfx942", emit="mlir"),
        Options(target="gfx942", debug_info=True),
        Options(target="gfx942", locations=True),
        Options(target="gfx942", pipeline="rocm"),
        Options(passes="cse"),
    ]
    assert len({fingerprint(options) for options in variants}) == len(variants)


def test_the_device_libraries_count(monkeypatch, tmp_path):
    before = fingerprint(Options())
    (tmp_path / "ocml.bc").write_bytes(b"one")
    monkeypatch.setenv("FLY_DEVICE_LIBS", str(tmp_path))
    device_libraries.folder.cache_clear()
    first = fingerprint(Options())
    (tmp_path / "ocml.bc").write_bytes(b"another")
    assert len({before, first, fingerprint(Options())}) == 3


def test_the_sources_count(tmp_path):
    """A copy of the sources with one comment more is another compiler."""
    import shutil
    from pathlib import Path

    import fly_common
    import fly_dialect
    import fly_opt

    for package in (fly_common, fly_dialect, fly_opt):
        folder = Path(package.__file__).parent
        shutil.copytree(
            folder, tmp_path / folder.name, ignore=shutil.ignore_patterns("__pycache__")
        )
    program = "from fly_opt import *; print(fingerprint(Options()))"

    def run() -> str:
        command = [sys.executable, "-c", program]
        environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        return done.stdout

    before = run()
    assert before == run()
    with (tmp_path / "fly_opt" / "passes" / "select_math.py").open("a") as file:
        file.write("# a comment\n")
    assert run() != before


def test_it_imports_neither_mlir_nor_numpy_nor_typer():
    program = (
        "import sys; from fly_opt import fingerprint, Options; fingerprint(Options());"
        "print(sorted({name.partition('.')[0] for name in sys.modules}"
        " & {'mlir', 'torch_mlir', 'numpy', 'typer', 'rich'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
