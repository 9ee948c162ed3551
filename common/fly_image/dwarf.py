"""Which source line a machine instruction was made from: DWARF's line tables, read by pyelftools.

    table = lines.table_of(code.data)
    line = table.find(pc)               None where nothing is known
    line.place()                        for an error, with the source line's text where it is there

`pc` is an address in the ELF file's own numbering. Line tables say the innermost place; the calls
that were inlined around it stand in other tables, which are not read. Debug information is a help
and never a condition: what is damaged, cut off or of a kind that is not known gives no lines, and
no error.
"""

from __future__ import annotations

import bisect
import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING

from fly_common.errors import Place

if TYPE_CHECKING:
    from elftools.construct import Construct
    from elftools.construct.lib.container import Container
    from elftools.dwarf.dwarfinfo import DWARFInfo
    from elftools.dwarf.lineprogram import LineProgram, LineState

LONGEST_SOURCE = 16 << 20  # bytes of a source file that an error's excerpt is looked for in
MOST_NAMES = 1 << 16  # entries that a table of a line program's header may have


@dataclass(frozen=True)
class Line:
    """A place in a source file: `line` from 1 on; `column` from 1 on, 0 where it is not known."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        """`file:line`, as one would name the file from here."""
        return f"{_from_here(self.file)}:{self.line}"

    def place(self) -> Place:
        """For an error message, with the line's text where the file can be read."""
        text = source_line(self.file, self.line)
        column = self.column or (len(text) - len(text.lstrip()) + 1 if text else None)
        return Place(_from_here(self.file), self.line, column, text)


@dataclass
class LineTable:
    """Lines by address. A sequence is a stretch of code whose rows ascend; each row holds up to
    the next one."""

    _starts: list[int] = field(default_factory=list)
    _lines: list[Line | None] = field(default_factory=list)

    def find(self, pc: int) -> Line | None:
        """The line of the instruction at `pc`. None where the table has none, or says that the
        compiler made the instruction up (line 0)."""
        at = bisect.bisect_right(self._starts, pc) - 1
        return self._lines[at] if at >= 0 else None

    def __bool__(self) -> bool:
        return bool(self._starts)


def table_of(data: bytes) -> LineTable:
    """The line table of an ELF file; an empty one where it has none. Units are read up to the first
    one that is damaged."""
    found: dict[int, Line | None] = {}
    # pyelftools trusts what it reads: damage is any error at all, of its own kinds, of Python's, of
    # `construct`'s.
    try:
        from elftools.elf.elffile import ELFFile

        # An object's addresses are no addresses yet, and pyelftools knows no relocations of AMDGPU.
        elf = ELFFile(BytesIO(data))
        if elf.has_dwarf_info(strict=True):
            _read(elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False), found)
    except Exception:
        pass
    starts = sorted(found)
    return LineTable(starts, [found[start] for start in starts])


def _read(dwarf: DWARFInfo, found: dict[int, Line | None]) -> None:
    """Adds the lines of all units by their addresses, in their order."""
    for unit in dwarf.iter_CUs():
        _bound(unit.structs.Dwarf_lineprog_header)
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        files = _files(program)
        for *rows, end in _sequences(program):
            # A linker writes 0 for the address of code that it has discarded.
            if rows and rows[0].address:
                for row in rows:
                    name = files.get(row.file)
                    line = Line(name, row.line, row.column) if name and row.line > 0 else None
                    found[row.address] = line
                found.setdefault(end.address, None)


def _sequences(program: LineProgram) -> Iterator[list[LineState]]:
    """The rows of each sequence, its end last."""
    rows: list[LineState] = []
    for entry in program.get_entries():
        if entry.state is not None:
            rows.append(entry.state)
            if entry.state.end_sequence:
                yield rows
                rows = []


def _files(program: LineProgram) -> dict[int, str]:
    """The paths of a unit's files by number. Up to version 4 they count from 1, and folder 0 is the
    compiler's own, which is not named; from version 5 on both count from 0, and the first folder is
    the compiler's."""
    header = program.header
    modern = header["version"] >= 5
    named = [name.decode(errors="backslashreplace") for name in header["include_directory"]]
    folders = named if modern else ["", *named]
    base = folders[0] if folders else ""
    files: dict[int, str] = {}
    for number, entry in enumerate(header["file_entry"], 0 if modern else 1):
        index = entry["dir_index"] or 0
        folder = folders[index] if index < len(folders) else ""
        name = entry["name"].decode(errors="backslashreplace")
        files[number] = os.path.join(base, folder, name)
    return files


def _bound(part: Construct) -> None:
    """Bounds the arrays in a description of pyelftools'. It believes any count: entries that take
    no bytes, as damage makes them, it would read without end."""
    from elftools.construct import ArrayError, Construct, MetaArray

    if isinstance(part, MetaArray) and not isinstance(part.countfunc, functools.partial):
        told = part.countfunc

        def count(context: Container, *, most: int) -> int:
            if (number := told(context)) > most:
                raise ArrayError(f"{number} entries")
            return number

        part.countfunc = functools.partial(count, most=MOST_NAMES)
    inner = [getattr(part, name, None) for name in ("subcon", "default")]
    cases = getattr(part, "cases", {})
    for one in (*inner, *getattr(part, "subcons", ()), *cases.values()):
        if isinstance(one, Construct):
            _bound(one)


# -- sources ----------------------------------------------------------------------------------


def _from_here(path: str) -> str:
    """A path as a person would name it: relative where the file lies below the current folder."""
    try:
        here = os.path.join(os.getcwd(), "")
    except OSError:
        return path
    return path.removeprefix(here)


def source_line(path: str, line: int) -> str | None:
    """A line of a file, or None where that can't be read."""
    text = _source(path)
    return text[line - 1] if text is not None and 0 < line <= len(text) else None


@functools.lru_cache(maxsize=8)
def _source(path: str) -> list[str] | None:
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > LONGEST_SOURCE:
            return None
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except (OSError, ValueError):
        return None
