"""Which command lines the worker executes, and with which library."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from fly_common.programs import toolchain
from fly_common.programs.llvm_worker import requests

STREAMS = ["-disable-symbolication", "-o", "-", "-"]


@pytest.mark.parametrize(
    ("program", "words", "request_"),
    [
        ("opt", ["-S", "-O3"], ("opt", "3")),
        ("opt", ["-S", "-O0"], ("opt", "0")),
        ("opt", ["-O3"], None),
        ("opt", ["-S", "-O3", "-passes=dce"], None),
        ("opt", ["-S", "-Os"], None),
        ("opt", ["-S", "-O3", "file.ll"], None),
        ("llc", ["-mcpu=gfx942", "-O2", "-filetype=obj"], ("llc", "2", "gfx942", "", "obj")),
        (
            "llc",
            ["-mcpu=sm_90a", "-O1", "-mattr=+ptx88", "-filetype=asm"],
            ("llc", "1", "sm_90a", "+ptx88", "asm"),
        ),
        ("llc", ["-mcpu=gfx942", "-O2", "-x", "mir", "-filetype=obj"], None),
        ("llc", ["-mcpu=gfx942", "-O2", "-stop-after=finalize-isel"], None),
        ("llc", ["-mcpu=gfx942", "-O2", "-load=/x.so", "-filetype=obj"], None),
        ("llc", ["-mcpu=gfx942", "-O2", "-filetype=null"], None),
        ("ld.lld", ["-S", "-O3"], None),
    ],
)
def test_the_plain_command_lines(program, words, request_):
    words = [*words, *STREAMS] if program == "llc" else words
    assert requests.of(f"/usr/lib/llvm-22/bin/{program}", words) == request_


def test_llc_to_a_file_is_for_llc():
    assert requests.of("llc", ["-mcpu=gfx942", "-O2", "-filetype=obj", "-o", "k.o"]) is None


def test_the_library_is_the_programs_own():
    for name in ("opt", "llc"):
        path = requests.library_of(toolchain.find_program(name))
        assert path == os.path.realpath(toolchain.find_library())


def test_a_program_without_it_has_no_library(tmp_path: Path):
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "opt"
    script.write_text("#!/bin/sh\n")
    moved = folder / "llc"
    shutil.copy(toolchain.find_program("llc"), moved)
    for path in (script, moved, folder / "none", "/bin/cat"):
        assert requests.library_of(str(path)) is None
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libLLVM.so.22.1").write_text("")
    requests.library_of.cache_clear()
    assert requests.library_of(str(script)) is None
    assert requests.library_of(str(moved)) == str(tmp_path / "lib" / "libLLVM.so.22.1")
