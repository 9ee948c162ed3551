"""Line tables: what llvm-dwarfdump reads in clang's own, and damage of any kind."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from fly_common.programs import toolchain
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


def sections(data: bytes) -> list[tuple[int, int]]:
    """Where an ELF file's debug sections are."""
    parsed = Elf.parse(data)
    names = (".debug_line", ".debug_info", ".debug_abbrev")
    found = [section for section in parsed.sections if section.name in names]
    return [(section.offset, section.offset + len(section.data)) for section in found]


@pytest.mark.parametrize("version", [4, 5])
def test_damage_gives_fewer_lines_and_no_error(folder: Path, version: int) -> None:
    data = compiled(folder, "-O0", "-g", f"-gdwarf-{version}")
    assert dwarf.table_of(data)
    for size in range(0, len(data), 97):
        dwarf.table_of(data[:size]).find(0x1A00)
    noise = random.Random(1)
    for begin, end in sections(data):
        for _ in range(150):
            damaged = bytearray(data)
            for _ in range(noise.randint(1, 4)):
                at = min(noise.randrange(begin, end), begin + noise.randrange(400))
                damaged[at] = noise.choice((0, 1, 0x7F, 0x80, 0xFF))
            dwarf.table_of(bytes(damaged)).find(0x1A00)


def test_entries_of_no_bytes_are_not_counted_to_the_end(folder: Path) -> None:
    """A table of 2^35 names, each of which takes no bytes: nothing to read it by would ever end."""
    data = bytearray(compiled(folder, "-O0", "-g", "-gdwarf-5"))
    (begin, _), *_ = (
        (section.offset, section)
        for section in Elf.parse(bytes(data)).sections
        if section.name == ".debug_line"
    )
    formats = begin + 17 + data[begin + 17]  # behind the lengths of the standard opcodes
    assert data[formats] == 1  # one column: a directory's name
    data[formats : formats + 7] = bytes([0, *[0xFF] * 5, 0x01])
    assert not dwarf.table_of(bytes(data))
