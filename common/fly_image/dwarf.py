"""Maps machine instructions to source lines, by DWARF's line tables as pyelftools reads them.

    table = dwarf.table_of(code.data)
    line = table.find(pc)               None if it is not known
    line.place()                        for an error, with the source line's text if available

`pc` is an address relative to the ELF file. Line tables give the innermost location, and
`inlined_calls` the calls around it, which `table.place(pc)` has too. Debug information is optional:
damaged, truncated or unknown data gives no lines and no error.
"""

from __future__ import annotations

import bisect
import functools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING

from fly_common.errors import Place
from fly_common.record import replace

if TYPE_CHECKING:
    from elftools.construct import Construct
    from elftools.construct.lib.container import Container
    from elftools.dwarf.dwarfinfo import DWARFInfo
    from elftools.dwarf.lineprogram import LineProgram, LineState

    from fly_image.inlined_calls import Call

LONGEST_SOURCE = 16 << 20  # bytes of a source file that is read for an excerpt
LENGTH_BYTES = 4  # of a line program's first field, which does not count itself
MOST_NAMES = 1 << 16  # entries of a table in a line program's header


@dataclass(frozen=True)
class Line:
    """A source location. `line` and `column` count from 1; `column` is 0 if it is not known."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        """Returns `file:line`, with the path relative to the current folder if possible."""
        return f"{_relative_path(self.file)}:{self.line}"

    def place(self) -> Place:
        """Returns the location for a message, with the line's text if the file is readable."""
        text = source_line(self.file, self.line)
        column = self.column or (len(text) - len(text.lstrip()) + 1 if text else None)
        return Place(_relative_path(self.file), self.line, column, text)


@dataclass
class LineTable:
    """Lines by address. A sequence is a run of rows with ascending addresses; each row applies up
    to the next one."""

    _starts: list[int] = field(default_factory=list)
    _lines: list[Line | None] = field(default_factory=list)
    _data: bytes = b""  # the ELF file

    def find(self, pc: int) -> Line | None:
        """Returns the line of the instruction at `pc`, or None if the table has none or marks the
        instruction as compiler-generated (line 0)."""
        at = bisect.bisect_right(self._starts, pc) - 1
        return self._lines[at] if at >= 0 else None

    def place(self, pc: int) -> Place | None:
        """Returns the place of the instruction at `pc` for a message, with the calls of helpers
        that lead there."""
        line = self.find(pc)
        if line is None:
            return None
        inside = [
            call for call in self._calls if any(low <= pc < high for low, high in call.ranges)
        ]
        inside.sort(key=lambda call: -call.depth)
        calls = tuple(Line(call.file, call.line, call.column).place() for call in inside)
        return replace(line.place(), calls=calls)

    @functools.cached_property
    def _calls(self) -> list[Call]:
        from fly_image import inlined_calls

        return inlined_calls.read(self._data, files_of)

    def __bool__(self) -> bool:
        return bool(self._starts)


def table_of(data: bytes) -> LineTable:
    """Returns the line table of an ELF file. Reading stops at the first damaged unit."""
    found: dict[int, Line | None] = {}
    # pyelftools trusts its input, so a damaged file may raise any exception: its own, Python's or
    # `construct`'s.
    try:
        from elftools.elf.elffile import ELFFile

        # No relocations: an object's addresses are not final, and pyelftools does not know
        # AMDGPU's.
        elf = ELFFile(BytesIO(data))
        dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
        units = elf.has_dwarf_info(strict=True)
        _read(_programs(dwarf) if units else _programs_alone(dwarf), found)
    except Exception:
        pass
    starts = sorted(found)
    return LineTable(starts, [found[start] for start in starts], data)


def _programs(dwarf: DWARFInfo) -> Iterator[LineProgram]:
    """Yields the line programs of all units."""
    for unit in dwarf.iter_CUs():
        _bound(unit.structs.Dwarf_lineprog_header)
        program = dwarf.line_program_for_CU(unit)
        if program is not None:
            yield program


def _programs_alone(dwarf: DWARFInfo) -> Iterator[LineProgram]:
    """Yields the line programs of a file without units, as `ptxas -lineinfo` writes it: they lie
    one after another."""
    section = dwarf.debug_line_sec
    at = 0
    while section is not None and at < section.size:
        _bound(dwarf.structs.Dwarf_lineprog_header)
        program = dwarf._parse_line_program_at_offset(at, dwarf.structs)
        yield program
        at += LENGTH_BYTES + program.header["unit_length"]


def _read(programs: Iterable[LineProgram], found: dict[int, Line | None]) -> None:
    """Adds the lines of the programs to `found`, by address."""
    for program in programs:
        files = files_of(program)
        for *rows, end in _sequences(program):
            # A linker sets the address of discarded code to 0.
            if rows and rows[0].address:
                for row in rows:
                    name = files.get(row.file)
                    line = Line(name, row.line, row.column) if name and row.line > 0 else None
                    found[row.address] = line
                found.setdefault(end.address, None)


def _sequences(program: LineProgram) -> Iterator[list[LineState]]:
    """Yields the rows of each sequence, including the end row."""
    rows: list[LineState] = []
    for entry in program.get_entries():
        if entry.state is not None:
            rows.append(entry.state)
            if entry.state.end_sequence:
                yield rows
                rows = []


def files_of(program: LineProgram) -> dict[int, str]:
    """Maps file numbers of a unit to paths. Up to version 4, numbers start at 1, and folder 0 is
    the compilation folder, which the table does not name. From version 5 on, both start at 0, and
    the first folder is the compilation folder."""
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
    """Limits the array sizes in a pyelftools description. pyelftools trusts any count, so a damaged
    file with entries of zero bytes would make it loop forever."""
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


def _relative_path(path: str) -> str:
    """Returns a path relative to the current folder if the file is below it."""
    try:
        here = os.path.join(os.getcwd(), "")
    except OSError:
        return path
    return path.removeprefix(here)


def source_line(path: str, line: int) -> str | None:
    """Returns a line of a file, or None if it cannot be read."""
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
