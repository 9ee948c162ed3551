"""The handler library: its tables, its building, its key."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fly_common.errors import MissingError, UsageError
from fly_run.emulator.engine import library
from fly_run.emulator.semantics import table


def test_the_library_holds_every_handler_of_the_tables() -> None:
    handlers = library.load().handlers
    for operation in table.operations().values():
        missing = [name for name in operation.handlers if not handlers.get(name)]
        assert not missing


def test_ir_is_the_same_every_time() -> None:
    assert table.modules(2) == table.modules(2)


ONE_OF_TWO = """
import shutil, sys, time
from fly_run.emulator.engine import library

def build(path, cpu):
    with open(path.parent / "builds", "a") as log:
        log.write(f"{cpu}\\n")
    time.sleep(0.5)  # long enough for the other process to come
    shutil.copy(sys.argv[1], path)

library.build = build
print(library.load().path)
"""


def test_two_processes_build_one_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handlers: Path
) -> None:
    """What they build is a copy of the session's: to build it in earnest takes long."""
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path))
    both = [
        subprocess.Popen(
            [sys.executable, "-c", ONE_OF_TWO, str(handlers)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    printed = {process.communicate()[0] for process in both}
    assert printed == {f"{tmp_path / handlers.name}\n"}
    assert (tmp_path / "builds").read_text() == f"{library.host_level()}\n"


def test_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    v3 = frozenset(library.NEEDS["x86-64-v3"].split())
    v4 = v3 | frozenset(library.NEEDS["x86-64-v4"].split())
    monkeypatch.delenv("FLY_EMULATOR_CPU", raising=False)
    for flags, level in ((v3, "x86-64-v3"), (v4, "x86-64-v4")):
        monkeypatch.setattr(library, "_cpu_flags", lambda flags=flags: flags)
        assert library.host_level() == level
    monkeypatch.setenv("FLY_EMULATOR_CPU", "x86-64-v3")
    assert library.host_level() == "x86-64-v3"
    monkeypatch.setattr(library, "_cpu_flags", lambda: v3 - {"avx2", "f16c"})
    with pytest.raises(MissingError) as caught:
        library.host_level()
    assert str(caught.value) == (
        "the emulator needs an x86-64-v3 processor; this one lacks avx2, f16c\n"
        "  run on an x86-64 processor with AVX2, FMA and F16C (any since 2015)"
    )
    monkeypatch.setenv("FLY_EMULATOR_CPU", "x86-64-v4")
    monkeypatch.setattr(library, "_cpu_flags", lambda: v3)
    with pytest.raises(MissingError, match="needs an x86-64-v4 processor; this one lacks avx512f"):
        library.host_level()
    monkeypatch.setenv("FLY_EMULATOR_CPU", "znver4")
    with pytest.raises(UsageError, match="FLY_EMULATOR_CPU=znver4 is no level"):
        library.host_level()


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another cache folder, and nothing loaded yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FLY_CACHE_DIR", str(folder))
    library.load.cache_clear()
    library.library_path.cache_clear()
    yield folder
    library.load.cache_clear()
    library.library_path.cache_clear()


def test_a_cache_that_can_not_be_written(
    handlers: Path,
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture,
) -> None:
    """The library is built for this process, with one warning."""
    monkeypatch.setattr(library, "build", lambda path, cpu: shutil.copy(handlers, path))
    elsewhere.write_text("")  # a file where the folder should be
    loaded = library.load()
    assert loaded.handlers
    assert not loaded.path.exists()
    warning, advice = capfd.readouterr().err.splitlines()
    assert warning.startswith("fly: warning: the emulator's library can't be kept in ")
    assert warning.endswith("; it is built anew each time")
    assert advice == "  set FLY_CACHE_DIR to a folder that can be written and has 10 MB"


def test_a_disk_that_is_full(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """llc meets the full disk: what it says about it is not taken for a refusal of the handlers.
    No temporary folder has room either: that is the end."""

    def full(*_: object, **__: object) -> None:
        library._check_room(b"llc: error: IO failure on output stream: No space left on device")

    monkeypatch.setattr(library, "build", full)
    with pytest.raises(MissingError, match="can't be built: No space left on device"):
        library.load()


def test_other_words_of_llc_are_not_a_full_disk() -> None:
    library._check_room(b"llc: error: expected instruction opcode")
