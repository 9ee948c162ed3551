"""Line tables: what llvm-dwarfdump reads in clang's own, and damage of any kind."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from fly_common import toolchain
from fly_image import dwarf
from fly_image.elf import Elf

SOURCE = """int helper(int x) { return x * 3; }
kernel void k(global int *A, int n) {
  int i = __builtin_amdgcn_workitem_id_x();
  if (i < n)
    A[i] = helper(i);
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("lines")
    (made / "k.cl").write_text(SOURCE)
    return made


def compiled(folder: Path, *options: str) -> bytes:
    words = ["-x", "cl", "-nogpulib", "-target", "amdgcn-amd-amdhsa", "-mcpu=gfx942", *options]
    words += [str(folder / "k.cl"), "-o", "-"]
    done = toolchain.run_program("clang", words, b"")
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.parametrize("version", [2, 3, 4, 5])
@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_every_row_is_llvms(folder: Path, version: int, level: str) -> None:
    data = compiled(folder, level, "-g", f"-gdwarf-{version}")
    table = dwarf.table_of(data)
    (folder / "k.hsaco").write_bytes(data)
    path = str(folder / "k.hsaco")
    shown = toolchain.run_program("llvm-dwarfdump", ["--debug-line", path], b"").stdout.decode()
    rows = re.findall(r"^0x([0-9a-f]{16}) +(\d+) +(\d+) .*?(end_sequence)?$", shown, re.MULTILINE)
    last = {int(at, 16): (int(line), int(column), end) for at, line, column, end in rows}
    assert len(last) > 5
    for address, (line, column, end) in last.items():
        found = table.find(address)
        if end or line == 0:
            assert found is None
        else:
            assert found is not None
            assert (found.line, found.column) == (line, column)
            # Up to version 4 a file in the compiler's own folder has no folder in the table.
            assert Path(found.file).name == "k.cl"
    assert table.find(min(last) - 1) is None


def test_a_place_shows_the_source(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    line = dwarf.Line(str(folder / "k.cl"), 5, 10)
    assert str(line) == "k.cl:5"
    assert line.place().excerpt() == "      A[i] = helper(i);\n           ^"
    # Without a column the caret stands at the line's first word.
    assert dwarf.Line("k.cl", 4).place().column == 3
    assert dwarf.Line("gone.cl", 4).place().excerpt() == ""
    assert dwarf.Line("k.cl", 400).place().text is None


def test_no_debug_information(folder: Path) -> None:
    assert not dwarf.table_of(compiled(folder, "-O3"))
    assert not dwarf.table_of(b"")
    assert dwarf.table_of(b"\x7fELF").find(0) is None


@pytest.mark.parametrize("version", [4, 5])
def test_damage_gives_fewer_lines_and_no_error(folder: Path, version: int) -> None:
    elf = Elf.parse(compiled(folder, "-O0", "-g", f"-gdwarf-{version}"))
    program, texts, strings = (
        section.data if (section := elf.section(name)) else b""
        for name in (".debug_line", ".debug_line_str", ".debug_str")
    )
    whole = dwarf.read(program, texts, strings)
    assert whole
    for size in range(len(program)):
        dwarf.read(program[:size], texts, strings).find(0x1A00)
    assert not dwarf.read(program, b"", b"") or version == 4
    noise = random.Random(1)
    for _ in range(2000):
        damaged = bytearray(program)
        for _ in range(noise.randint(1, 4)):
            damaged[noise.randrange(len(damaged))] = noise.choice((0, 1, 0x7F, 0x80, 0xFF))
        dwarf.read(bytes(damaged), texts, strings).find(0x1A00)
