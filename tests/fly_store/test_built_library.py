"""Libraries that are built here: whole or built again, kept or said to be unkept, announced."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fly_common import paths
from fly_common.errors import FlyError
from fly_store import built_library
from fly_store.built_library import Recipe, keep, obtain, read, sealed

DATA = bytes(range(256)) * 40


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def recipe(made: list[int], data: bytes = DATA) -> Recipe:
    def build() -> bytes:
        made.append(1)
        return data

    return Recipe("lib.so", build, "the test's library", "about 0 s")


def test_it_is_built_once_and_kept(cache: Path, capfd: pytest.CaptureFixture) -> None:
    made: list[int] = []
    for _ in range(3):
        assert obtain(recipe(made)) == DATA
    assert made == [1]
    path = cache / "lib.so"
    assert path.read_bytes() == sealed("lib.so", DATA)
    assert path.stat().st_mode & 0o777 == 0o600
    assert cache.stat().st_mode & 0o777 == 0o700
    assert capfd.readouterr().err == ""  # quick, and nobody at a terminal


def test_every_flipped_bit_and_every_length_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    keep(str(path), DATA[:300])
    whole = path.read_bytes()
    assert read(str(path)) == (DATA[:300], "")
    for bit in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        assert read(str(path)) == (None, "it is damaged")
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert read(str(path)) == (None, "it is damaged")


def test_an_exchanged_library_is_noticed(tmp_path: Path) -> None:
    keep(str(tmp_path / "one.so"), DATA)
    os.rename(tmp_path / "one.so", tmp_path / "other.so")
    assert read(str(tmp_path / "other.so")) == (None, "it is damaged")
    assert read(str(tmp_path / "one.so")) == (None, "")


def test_what_is_no_file_is_not_waited_for(cache: Path) -> None:
    cache.mkdir(mode=0o700)
    os.mkfifo(cache / "lib.so")
    made: list[int] = []
    assert obtain(recipe(made)) == DATA
    assert (cache / "lib.so").is_file()


def test_a_link_to_a_kept_library_will_do(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    keep(str(tmp_path / "real" / "lib.so"), DATA)
    cache.mkdir(mode=0o700)
    (cache / "lib.so").symlink_to(tmp_path / "real" / "lib.so")
    made: list[int] = []
    assert obtain(recipe(made)) == DATA
    assert made == []
    # What others can write is replaced, and not written through.
    (tmp_path / "real" / "lib.so").chmod(0o666)
    assert obtain(recipe(made, b"new")) == b"new"
    assert not (cache / "lib.so").is_symlink()
    assert read(str(tmp_path / "real" / "lib.so")) == (None, "others can write to it")


def test_a_full_disk_costs_one_build_and_a_warning(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    made: list[int] = []
    assert obtain(recipe(made)) == DATA
    assert made == [1]
    assert [path.name for path in cache.iterdir()] in ([], ["lib.so.lock"])
    assert capfd.readouterr().err == (
        f"fly: warning: the test's library can't be cached and will be built each time: {cache}: No"
        " space left on device\n  set FLY_CACHE_DIR to a writable directory with 10 MB of free"
        " space\n"
    )


def test_leftovers_of_killed_builders_go(cache: Path) -> None:
    cache.mkdir(mode=0o700)
    (cache / ".lib.so.0123").write_bytes(b"half")
    (cache / ".other.so.0123").write_bytes(b"half")
    obtain(recipe([]))
    assert {path.name for path in cache.iterdir()} - {"lib.so.lock"} == {"lib.so", ".other.so.0123"}


def test_a_refusal_to_build_is_passed_on_and_blocks_nobody(cache: Path) -> None:
    def build() -> bytes:
        raise FlyError("no")

    with pytest.raises(FlyError, match="no"):
        obtain(Recipe("lib.so", build, "the test's library", "about 0 s"))
    assert obtain(recipe([])) == DATA


HOLDER = """
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("in", flush=True)
    time.sleep(60)
"""


def test_a_builder_that_was_stopped_is_not_waited_for(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(built_library, "LOCK_TIMEOUT", 0.2)
    cache.mkdir(mode=0o700)
    words = [sys.executable, "-c", HOLDER, str(cache / "lib.so.lock")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        holder.stdout.readline()
        assert obtain(recipe([])) == DATA
        holder.kill()
    expected = "fly: waiting for another process that builds the test's library\n"
    assert capfd.readouterr().err == expected


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_at_a_terminal_building_is_announced(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    obtain(recipe([]))
    (cache / "lib.so").write_bytes(b"")
    obtain(recipe([]))
    obtain(recipe([]))
    cache.chmod(0o777)
    monkeypatch.setattr(paths, "_private", set())
    obtain(recipe([]))
    *said, warning, _, last = stream.getvalue().splitlines(keepends=True)
    assert warning.startswith("fly: warning: the test's library can't be cached")
    assert last == "fly: building the test's library (about 0 s, each time)\n"
    assert "".join(said) == (
        "fly: building the test's library (about 0 s, once for each version)\n"
        "fly: building the test's library again, because the cached file can't be used: it is"
        " damaged (about 0 s, once for each version)\n"
    )


def test_elsewhere_it_is_announced_once_it_takes_long(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(built_library, "PATIENCE", 0.05)

    def build() -> bytes:
        time.sleep(0.3)
        return DATA

    obtain(Recipe("lib.so", build, "the test's library", "about 0 s"))
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "fly: building the test's library (about 0 s, once for each version)\n"


def test_noise_never_passes_for_a_library(tmp_path: Path) -> None:
    numbers = random.Random(7)
    for _ in range(200):
        path = tmp_path / "lib.so"
        path.write_bytes(numbers.randbytes(numbers.randrange(200)) + built_library.MARK)
        assert read(str(path)) == (None, "it is damaged")
