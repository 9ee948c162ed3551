"""Reading AMD GPU ELF files: header, sections, symbols, segments.

Only what the stages need, and only the one form LLVM writes for AMD GPUs: 64 bits, little endian.
Every offset and length in the file is checked before it is followed, so that damaged bytes end in
an InputError and never in another exception. Layout: ELF-64 object file format; processor numbers
and header flags: LLVM's AMDGPU guide, "ELF Code Object".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from fly_common.errors import InputError

MACHINE = 224  # EM_AMDGPU
RELOCATABLE, SHARED = 1, 3  # e_type: what llc makes, what ld.lld -shared makes

# e_flags & 0xff → processor. The numbers are the order in which AMD asked for them.
_PROCESSORS = {
    0x20: "gfx600", 0x21: "gfx601", 0x22: "gfx700", 0x23: "gfx701", 0x24: "gfx702",
    0x25: "gfx703", 0x26: "gfx704", 0x28: "gfx801", 0x29: "gfx802", 0x2A: "gfx803",
    0x2B: "gfx810", 0x2C: "gfx900", 0x2D: "gfx902", 0x2E: "gfx904", 0x2F: "gfx906",
    0x30: "gfx908", 0x31: "gfx909", 0x32: "gfx90c", 0x33: "gfx1010", 0x34: "gfx1011",
    0x35: "gfx1012", 0x36: "gfx1030", 0x37: "gfx1031", 0x38: "gfx1032", 0x39: "gfx1033",
    0x3A: "gfx602", 0x3B: "gfx705", 0x3C: "gfx805", 0x3D: "gfx1035", 0x3E: "gfx1034",
    0x3F: "gfx90a", 0x40: "gfx940", 0x41: "gfx1100", 0x42: "gfx1013", 0x43: "gfx1150",
    0x44: "gfx1103", 0x45: "gfx1036", 0x46: "gfx1101", 0x47: "gfx1102", 0x48: "gfx1200",
    0x49: "gfx1250", 0x4A: "gfx1151", 0x4B: "gfx941", 0x4C: "gfx942", 0x4E: "gfx1201",
    0x4F: "gfx950", 0x51: "gfx9-generic", 0x52: "gfx10-1-generic", 0x53: "gfx10-3-generic",
    0x54: "gfx11-generic", 0x55: "gfx1152", 0x58: "gfx1153", 0x59: "gfx12-generic",
    0x5A: "gfx1251", 0x5F: "gfx9-4-generic",
}  # fmt: skip
# Two bits each: 0 the processor has no such thing, 1 either setting runs it, 2 off, 3 on.
_SETTINGS = (("sramecc", 10), ("xnack", 8))

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NO_DATA, _SYMBOL_TABLE, _DYNAMIC_SYMBOLS = 8, 2, 11  # section types NOBITS, SYMTAB, DYNSYM

UNDEFINED = 0  # a symbol's section index: defined elsewhere
ABSOLUTE = 0xFFF1
LOCAL, GLOBAL, WEAK = 0, 1, 2  # a symbol's binding


@dataclass(frozen=True)
class Section:
    """`data` is empty where the section has none in the file (`.bss`)."""

    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    entry_size: int
    data: bytes


@dataclass(frozen=True)
class Segment:
    """`flags`: 1 executable, 2 writable, 4 readable. `data` is what the file holds; the rest up to
    `memory_size` is zeros."""

    type: int
    flags: int
    offset: int
    address: int
    memory_size: int
    align: int
    data: bytes


@dataclass(frozen=True)
class Symbol:
    """`kind`: 1 an object, 2 a function. `section` indexes `Elf.sections`, or is UNDEFINED or
    ABSOLUTE. `value` is an address in a linked file, an offset into the section in an object."""

    name: str
    value: int
    size: int
    binding: int
    kind: int
    visibility: int
    section: int


@dataclass(frozen=True)
class Elf:
    """`type` is RELOCATABLE or SHARED. `symbols` are those of the fullest symbol table: `.symtab`,
    else `.dynsym`."""

    type: int
    flags: int
    abi: int
    abi_version: int
    entry: int
    sections: tuple[Section, ...]
    segments: tuple[Segment, ...]
    symbols: tuple[Symbol, ...]
    data: bytes

    @property
    def target(self) -> str:
        """The processor with its settings, as LLVM writes it: `gfx942`, `gfx90a:sramecc+:xnack-`."""
        words = [self.processor]
        for name, shift in _SETTINGS:
            setting = self.flags >> shift & 3
            if setting >= 2:
                words.append(f"{name}{'-' if setting == 2 else '+'}")
        return ":".join(words)

    @property
    def processor(self) -> str:
        """`gfx942`; a number this version doesn't know is written out."""
        number = self.flags & 0xFF
        return _PROCESSORS.get(number, f"processor {number:#x}")

    def section(self, name: str) -> Section | None:
        return next((section for section in self.sections if section.name == name), None)


def parse(data: bytes) -> Elf:
    """Reads an ELF file. InputError if it is none, not AMD GPU's, or damaged."""
    if data[:4] != b"\x7fELF":
        raise InputError("this is not an ELF file")
    if len(data) < _HEADER.size:
        raise _cut("its header", len(data))
    ident, kind, machine, _, entry, segments_at, sections_at, flags, _, seg_size, seg_count, \
        sec_size, sec_count, names_index = _HEADER.unpack_from(data)  # fmt: skip
    if machine != MACHINE or ident[4:6] != b"\x02\x01":
        raise InputError(
            f"this ELF file is for another machine (number {machine}; AMD GPU's is {MACHINE})"
        )
    rows = _table(data, sections_at, sec_size, sec_count, _SECTION, "section")
    names = _body(data, rows[names_index], "section names") if names_index < len(rows) else b""
    sections = tuple(_section(data, row, names) for row in rows)
    segments = tuple(
        _segment(data, row)
        for row in _table(data, segments_at, seg_size, seg_count, _SEGMENT, "segment")
    )
    return Elf(
        kind, flags, ident[7], ident[8], entry, sections, segments, _symbols(sections), data
    )  # fmt: skip


def _cut(what: str, size: int) -> InputError:
    return InputError(
        f"the ELF file is damaged: {what} reaches past its end ({size} bytes)",
        hint="it was cut short on its way: make it again",
    )


def _slice(data: bytes, offset: int, size: int, what: str) -> bytes:
    if offset + size > len(data):
        raise _cut(what, len(data))
    return data[offset : offset + size]


def _table(
    data: bytes, offset: int, size: int, count: int, form: struct.Struct, what: str
) -> list[tuple[int, ...]]:
    """The rows of the section or segment table."""
    if not count:
        return []
    if size != form.size:
        raise InputError(f"the ELF file is damaged: {what} headers of {size} bytes")
    table = _slice(data, offset, size * count, f"the {what} table")
    return list(form.iter_unpack(table))


def _body(data: bytes, row: tuple[int, ...], what: str) -> bytes:
    kind, offset, size = row[1], row[4], row[5]
    return b"" if kind in (0, _NO_DATA) else _slice(data, offset, size, what)


def _text(table: bytes, offset: int) -> str:
    end = table.find(b"\0", offset)
    return table[offset : end if end >= 0 else len(table)].decode(errors="replace")


def _section(data: bytes, row: tuple[int, ...], names: bytes) -> Section:
    name = _text(names, row[0])
    body = _body(data, row, f"section {name or '?'}")
    _, kind, flags, address, offset, size, link, info, _, entry_size = row
    return Section(name, kind, flags, address, offset, size, link, info, entry_size, body)


def _segment(data: bytes, row: tuple[int, ...]) -> Segment:
    kind, flags, offset, address, _, size, memory_size, align = row
    if memory_size < size:
        raise InputError("the ELF file is damaged: a segment is larger in the file than in memory")
    return Segment(
        kind, flags, offset, address, memory_size, align, _slice(data, offset, size, "a segment")
    )


def _symbols(sections: tuple[Section, ...]) -> tuple[Symbol, ...]:
    for wanted in (_SYMBOL_TABLE, _DYNAMIC_SYMBOLS):
        for section in sections:
            if section.type == wanted:
                return _read_symbols(section, sections)
    return ()


def _read_symbols(table: Section, sections: tuple[Section, ...]) -> tuple[Symbol, ...]:
    if len(table.data) % _SYMBOL.size or table.link >= len(sections):
        raise InputError(f"the ELF file is damaged: symbol table {table.name} is malformed")
    names = sections[table.link].data
    symbols = []
    for name, info, other, section, value, size in _SYMBOL.iter_unpack(table.data):
        if ABSOLUTE > section >= len(sections) and section < 0xFF00:
            raise InputError(f"the ELF file is damaged: a symbol lies in section {section}")
        symbols.append(
            Symbol(_text(names, name), value, size, info >> 4, info & 15, other & 3, section)
        )
    return tuple(symbols)
