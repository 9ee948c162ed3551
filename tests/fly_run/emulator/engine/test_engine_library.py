"""The handler library: its tables, its building, its key."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fly_common.errors import MissingError, UsageError
from fly_common.programs import toolchain
from fly_run.emulator.engine import library
from fly_run.emulator.semantics import table
from fly_store import built_library


def test_the_library_holds_every_handler_of_the_tables() -> None:
    handlers = library.load().handlers
    for operation in table.operations().values():
        missing = [name for name in operation.handlers if not handlers.get(name)]
        assert not missing


@pytest.mark.heavy
def test_the_ir_is_valid() -> None:
    """The build does not verify it, which would take 6 % of its time."""
    opt = str(toolchain.find_program("opt"))
    for text in table.modules(library.MODULES):
        words = [opt, "-passes=verify", "-disable-output"]
        done = subprocess.run(words, input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:2000]


def test_ir_is_the_same_every_time() -> None:
    assert table.modules(2) == table.modules(2)


ONE_OF_TWO = """
import os, sys, time
from fly_store import built_library
from fly_run.emulator.engine import library

def build(cpu):
    with open(os.path.join(os.environ["FLY_CACHE_DIR"], "builds"), "a") as log:
        log.write(f"{cpu}\\n")
    time.sleep(0.5)  # long enough for the other process to come
    return built_library.read(sys.argv[1])[0]

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
            [sys.executable, "-c", ONE_OF_TWO, str(handlers)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    printed, said = zip(*(process.communicate() for process in both), strict=True)
    assert set(printed) == {f"{tmp_path / handlers.name}\n"}
    assert (tmp_path / "builds").read_text() == f"{library.host_level()}\n"
    assert sorted(said) == [
        "",
        "fly: waiting for another process that builds the emulator's instruction handlers\n",
    ]


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
    with pytest.raises(UsageError, match="FLY_EMULATOR_CPU=znver4 is not a level"):
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


@pytest.fixture
def rebuilt(handlers: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Building gives the session's library; the list grows with each time."""
    times: list[str] = []

    def build(cpu: str) -> bytes:
        times.append(cpu)
        data, _ = built_library.read(str(handlers))
        assert data is not None
        return data

    monkeypatch.setattr(library, "build", build)
    return times


def test_a_cache_that_can_not_be_written(
    elsewhere: Path, rebuilt: list[str], capfd: pytest.CaptureFixture
) -> None:
    """The library is built for this process, with one warning."""
    elsewhere.write_text("")  # a file where the folder should be
    loaded = library.load()
    assert loaded.handlers
    assert len(rebuilt) == 1
    assert not loaded.path.exists()
    assert capfd.readouterr().err == (
        "fly: warning: the emulator's instruction handlers can't be cached and will be built each"
        f" time: {elsewhere}: Not a directory\n"
        "  set FLY_CACHE_DIR to a writable directory with 10 MB of free space\n"
    )


def damaged(whole: bytes) -> dict[str, bytes]:
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0x10
    return {
        "empty": b"",
        "cut": whole[: len(whole) // 2],
        "cut by a byte": whole[:-1],
        "flipped": bytes(flipped),
        "zeros": bytes(len(whole)),
        "not ours": whole[: -built_library.DIGEST - len(built_library.MARK)],
    }


@pytest.mark.parametrize("how", damaged(b"  "))
def test_a_damaged_library_is_built_again(
    elsewhere: Path, rebuilt: list[str], handlers: Path, how: str
) -> None:
    """Each of these ended a process: by SIGBUS, by SIGSEGV, or with "standard output: None"."""
    whole = handlers.read_bytes()
    elsewhere.mkdir(mode=0o700)
    path = elsewhere / handlers.name
    path.write_bytes(damaged(whole)[how])
    assert library.load().handlers
    assert len(rebuilt) == 1
    assert path.read_bytes() == whole
    library.load.cache_clear()
    assert library.load().handlers
    assert len(rebuilt) == 1


def test_what_is_loaded_is_no_file(elsewhere: Path, rebuilt: list[str]) -> None:
    """Whoever changes the file afterwards changes nothing that was verified."""
    path = library.load().path
    path.write_bytes(b"")
    assert str(path) not in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_planted_library_is_not_loaded(
    elsewhere: Path, rebuilt: list[str], capfd: pytest.CaptureFixture, what: str
) -> None:
    """A library with a seal of its own, in a folder or a file that others can write."""
    path = Path(library.library_path(library.host_level()))
    elsewhere.mkdir(mode=0o700)
    path.write_bytes(built_library.sealed(path.name, b"planted"))
    (elsewhere if what == "folder" else path).chmod(0o777)
    assert library.load().handlers
    assert len(rebuilt) == 1
    said = capfd.readouterr().err
    if what == "folder":
        assert said == (
            "fly: warning: the emulator's instruction handlers can't be cached and will be built"
            f" each time: the cache directory {elsewhere} is not private: {elsewhere} can be"
            " written by everyone\n"
            f"  chmod -R go-w {elsewhere}, or set FLY_CACHE_DIR to a directory of your own\n"
        )
        assert b"planted" in path.read_bytes()
    else:
        assert said == ""
        assert path.stat().st_mode & 0o777 == 0o600


def test_no_memory_to_build_in(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(cpu: str) -> bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(library, "build", full)
    with pytest.raises(MissingError, match="can't be built: No space left on device"):
        library.load()


def test_a_library_that_the_system_does_not_load(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "build", lambda cpu: b"no library")
    with pytest.raises(MissingError, match=r"handlers can't be loaded: .*/proc/self"):
        library.load()
