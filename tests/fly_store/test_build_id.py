"""Build IDs, held against those that llvm-readelf prints."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from fly_common.errors import MissingError
from fly_common.programs import toolchain
from fly_store import file_digests
from fly_store.build_id import build_id

NOTHING = b'target triple = "x86_64-unknown-linux-gnu"\n'


def library(folder: Path, *words: str) -> Path:
    """A shared library of ours, linked with these words."""
    made = toolchain.run_program("llc", ["-filetype=obj", "-o", "-", "-"], NOTHING)
    (folder / "empty.o").write_bytes(made.stdout)
    path = folder / "lib.so"
    arguments = ["-shared", *words, "-o", str(path), str(folder / "empty.o")]
    assert toolchain.run_program("ld.lld", arguments, b"").returncode == 0
    return path


def read_by_llvm(path: str) -> str | None:
    done = toolchain.run_program("llvm-readelf", ["--notes", path], b"")
    found = re.search(r"Build ID: ([0-9a-f]+)", done.stdout.decode())
    return found[1] if found else None


@pytest.mark.parametrize("words", ["", "--build-id=0x0123456789abcdef", "--build-id=sha1"])
def test_a_library(words: str, tmp_path: Path) -> None:
    path = str(library(tmp_path, *words.split()))
    assert build_id(path) == read_by_llvm(path)
    assert (build_id(path) is None) == (not words)


@pytest.mark.parametrize("name", ["llc", "opt", "ld.lld"])
def test_llvm_s_programs(name: str) -> None:
    path = toolchain.find_program(name)
    assert build_id(path) == read_by_llvm(path)


def test_what_is_no_library(tmp_path: Path) -> None:
    whole = library(tmp_path, "--build-id=sha1").read_bytes()
    path = tmp_path / "other"
    for data in (b"", b"text", whole[:20], whole[:64], whole[:100], b"\x7fELF\x01" + whole[5:]):
        path.write_bytes(data)
        assert build_id(str(path)) is None
    with pytest.raises(FileNotFoundError):
        build_id(str(tmp_path / "none"))


def test_damaged_libraries_end(tmp_path: Path) -> None:
    """Whatever byte of the headers is wrong: None, an ID, or the right one where it does not
    matter."""
    whole = bytearray(library(tmp_path, "--build-id=sha1").read_bytes())
    path = tmp_path / "damaged"
    path.write_bytes(whole)
    right = build_id(str(path))
    assert right is not None
    found: set[str | None] = set()
    for at in range(600):
        path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        found.add(build_id(str(path)))
    assert {None, right} < found  # and IDs whose own bytes were damaged
    assert all(re.fullmatch("([0-9a-f]{2})*", one) for one in found if one is not None)


def test_a_build(tmp_path: Path, monkeypatch) -> None:
    """It is not computed from the content, and differs where ID, size or time do."""
    path = library(tmp_path, "--build-id=0xabcdef01")
    monkeypatch.setattr(file_digests, "_hash", lambda path: pytest.fail("it was read"))
    then = time.time() - 100
    os.utime(path, (0, then))
    first = file_digests.build_of(path)
    assert first.startswith("abcdef01-")
    file_digests.build_ahead(path)
    assert not file_digests._threads
    os.utime(path, (0, then + 1))
    assert file_digests.build_of(path) != first
    library(tmp_path, "--build-id=0xabcdef02")
    os.utime(path, (0, then))
    monkeypatch.setattr(file_digests, "_builds", {})
    assert file_digests.build_of(path) != first


def test_a_build_without_an_id_or_just_changed_is_its_content(tmp_path: Path) -> None:
    for words in ((), ("--build-id=sha1",)):
        path = library(tmp_path, *words)
        if not words:
            os.utime(path, (0, time.time() - 100))
        assert file_digests.build_of(path) == file_digests.digest_of(path)
    with pytest.raises(MissingError, match="none: No such file"):
        file_digests.build_of(tmp_path / "none")
