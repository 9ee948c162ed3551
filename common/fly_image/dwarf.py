"""Which source line a machine instruction was made from: a reader of DWARF's line tables.

    table = lines.table_of(code.data)
    line = table.find(pc)               None where nothing is known
    line.place()                        for an error, with the source line's text where it is there

`pc` is an address in the ELF file's own numbering. Line tables say the innermost place; the calls
that were inlined around it stand in other tables, which are not read. Debug information is a help
and never a condition: what is damaged, cut off or of a kind that is not known gives no lines, and
no error.

Source: DWARF Debugging Information Format, versions 4 and 5, section 6.2 "Line Number Information".
"""

from __future__ import annotations

import bisect
import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from fly_common.errors import InputError, Place

from fly_image.elf import Elf

VERSIONS = (2, 3, 4, 5)
LONGEST_SOURCE = 16 << 20  # bytes of a source file that an error's excerpt is looked for in

# Standard opcodes, extended opcodes, content types and forms, by their numbers in the standard.
COPY, ADVANCE_PC, ADVANCE_LINE, SET_FILE, SET_COLUMN = 1, 2, 3, 4, 5
CONST_ADD_PC, FIXED_ADVANCE_PC = 8, 9
END_SEQUENCE, SET_ADDRESS = 1, 2
PATH, DIRECTORY = 1, 2


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


@dataclass(frozen=True)
class _Row:
    address: int
    file: int
    line: int
    column: int


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
    """The line table of an ELF file; an empty one where it has none."""
    try:
        elf = Elf.parse(data)
    except InputError:
        return LineTable()
    sections = {section.name: section.data for section in elf.sections}
    return read(
        sections.get(".debug_line", b""),
        sections.get(".debug_line_str", b""),
        sections.get(".debug_str", b""),
    )


def read(program: bytes, line_strings: bytes = b"", strings: bytes = b"") -> LineTable:
    """The table of a `.debug_line` section; the others hold the names that it refers to. Units are
    read up to the first one that is damaged."""
    found: dict[int, Line | None] = {}
    cursor = _Cursor(program)
    try:
        while cursor.left:
            for sequence, files in _unit(cursor, line_strings, strings):
                *rows, end = sequence
                # A linker writes 0 for the address of code that it has discarded.
                if rows and rows[0].address:
                    for row in rows:
                        found[row.address] = _line(row, files)
                    found.setdefault(end.address, None)
    except _Damaged:
        pass
    starts = sorted(found)
    return LineTable(starts, [found[start] for start in starts])


def _line(row: _Row, files: dict[int, str]) -> Line | None:
    name = files.get(row.file)
    return Line(name, row.line, row.column) if name and row.line > 0 else None


# -- reading ----------------------------------------------------------------------------------


class _Damaged(Exception):
    """The bytes are no line table."""


@dataclass
class _Cursor:
    """A place in bytes; `end` is behind the last one that may be read."""

    data: bytes
    at: int = 0
    end: int = -1

    def __post_init__(self) -> None:
        self.end = len(self.data) if self.end < 0 else self.end

    @property
    def left(self) -> int:
        return self.end - self.at

    def take(self, size: int) -> bytes:
        if not 0 <= size <= self.left:
            raise _Damaged
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def uleb(self) -> int:
        """A number in 7 bits a byte, low ones first."""
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise _Damaged

    def sleb(self) -> int:
        start = self.at
        value = self.uleb()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> bits - 1 & 1 else value

    def string(self) -> str:
        stop = self.data.find(b"\0", self.at, self.end)
        if stop < 0:
            raise _Damaged
        text = self.take(stop - self.at).decode(errors="backslashreplace")
        self.take(1)
        return text

    def part(self, size: int) -> _Cursor:
        """A cursor on the next `size` bytes, which this one passes over."""
        start = self.at
        self.take(size)
        return _Cursor(self.data, start, self.at)


@dataclass(frozen=True)
class _Header:
    """What the opcodes of a unit mean."""

    step: int  # bytes of the shortest instruction
    line_base: int
    line_range: int
    lengths: tuple[int, ...]  # how many operands opcode n + 1 has
    files: dict[int, str]


def _unit(
    cursor: _Cursor, line_strings: bytes, strings: bytes
) -> Iterator[tuple[list[_Row], dict[int, str]]]:
    """The sequences of the next unit, with its files by number."""
    length, width = cursor.number(4), 4
    if length == 0xFFFF_FFFF:
        length, width = cursor.number(8), 8
    unit = cursor.part(length)
    version = unit.number(2)
    if version not in VERSIONS:
        return
    if version >= 5:
        unit.take(2)  # sizes of an address and of a segment selector
    header = unit.part(unit.number(width))
    step = header.number(1)
    if version >= 4:
        header.take(1)  # operations an instruction: this is no VLIW machine
    header.take(1)  # is_stmt at the start
    line_base = (header.number(1) ^ 0x80) - 0x80
    line_range, base = header.number(1), header.number(1)
    if not line_range or not base:
        raise _Damaged
    lengths = tuple(header.take(base - 1))
    if version >= 5:
        files = _files_5(header, width, line_strings, strings)
    else:
        files = _files_4(header)
    yield from (
        (rows, files)
        for rows in _sequences(unit, _Header(step, line_base, line_range, lengths, files))
    )


def _files_4(header: _Cursor) -> dict[int, str]:
    """Directories and files up to version 4: strings up to an empty one, counted from 1."""
    folders = [""]
    while folder := header.string():
        folders.append(folder)
    files: dict[int, str] = {}
    while name := header.string():
        index = header.uleb()
        _ = header.uleb(), header.uleb()  # time and size
        folder = folders[index] if index < len(folders) else ""
        files[len(files) + 1] = os.path.join(folder, name)
    return files


def _files_5(header: _Cursor, width: int, line_strings: bytes, strings: bytes) -> dict[int, str]:
    """Directories and files of version 5: tables that say their own columns, counted from 0. The
    first directory is the one the compiler ran in."""

    def offset_in(names: bytes) -> str:
        start = header.number(width)
        if start >= len(names):
            raise _Damaged
        return _Cursor(names, start).string()

    forms: dict[int, Callable[[], str | int | bytes]] = {
        0x08: header.string,
        0x0E: lambda: offset_in(strings),
        0x1F: lambda: offset_in(line_strings),
        0x0B: lambda: header.number(1),
        0x05: lambda: header.number(2),
        0x06: lambda: header.number(4),
        0x07: lambda: header.number(8),
        0x0F: header.uleb,
        0x1E: lambda: header.take(16),
        0x09: lambda: header.take(header.uleb()),
    }

    def table() -> list[dict[int, str | int | bytes]]:
        columns = [(header.uleb(), header.uleb()) for _ in range(header.number(1))]
        count = header.uleb()
        if count > header.left or any(form not in forms for _, form in columns):
            raise _Damaged
        return [{content: forms[form]() for content, form in columns} for _ in range(count)]

    folders = [str(entry.get(PATH, "")) for entry in table()]
    base = folders[0] if folders else ""
    files: dict[int, str] = {}
    for number, entry in enumerate(table()):
        index = entry.get(DIRECTORY, 0)
        folder = folders[index] if isinstance(index, int) and index < len(folders) else ""
        files[number] = os.path.join(base, folder, str(entry.get(PATH, "")))
    return files


def _sequences(unit: _Cursor, header: _Header) -> Iterator[list[_Row]]:
    """Runs the line number program: the rows of each sequence, its end last."""
    fresh = _Row(0, 1, 1, 0)
    row, rows = fresh, list[_Row]()

    def moved(row: _Row, advance: int, lines: int = 0) -> _Row:
        address = row.address + advance * header.step & (1 << 64) - 1
        return replace(row, address=address, line=row.line + lines)

    while unit.left:
        opcode = unit.number(1)
        if opcode > len(header.lengths):
            advance, lines = divmod(opcode - len(header.lengths) - 1, header.line_range)
            row = moved(row, advance, header.line_base + lines)
            rows.append(row)
        elif opcode == 0:
            extended = unit.part(unit.uleb())
            kind = extended.number(1)
            if kind == END_SEQUENCE:
                yield [*rows, row]
                row, rows = fresh, []
            elif kind == SET_ADDRESS:
                row = replace(row, address=extended.number(extended.left))
        elif opcode == COPY:
            rows.append(row)
        elif opcode == ADVANCE_PC:
            row = moved(row, unit.uleb())
        elif opcode == ADVANCE_LINE:
            row = replace(row, line=row.line + unit.sleb())
        elif opcode == SET_FILE:
            row = replace(row, file=unit.uleb())
        elif opcode == SET_COLUMN:
            row = replace(row, column=unit.uleb())
        elif opcode == CONST_ADD_PC:
            row = moved(row, (255 - len(header.lengths) - 1) // header.line_range)
        elif opcode == FIXED_ADVANCE_PC:
            address = row.address + unit.number(2) & (1 << 64) - 1
            row = replace(row, address=address)
        else:
            # What only debuggers need, or what a later version has added: passed over.
            for _ in range(header.lengths[opcode - 1]):
                unit.uleb()


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
