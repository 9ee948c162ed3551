"""Links one object without undefined symbols in this process, as `ld.lld -shared` does.

A kernel's object needs little of a linker: its sections are placed, the distances among them are
filled in, and tables of its symbols are added. Starting ld.lld takes ten times as long. `linked`
returns ld.lld's bytes for the objects that LLVM's code generation makes of a kernel, and None for
everything else: other sections, symbols or relocations, of which each may have rules of its own.

Sources: the System V ABI (ELF-64, `.hash`), the GNU hash table as glibc reads it, LLVM's "User
Guide for AMDGPU Backend" (relocations), and the output of ld.lld 22.1, which chooses the order and
the addresses of sections.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from fly_common.record import record
from fly_image.elf import (
    ET_DYN,
    HEADER,
    SHF_ALLOC,
    SHT_DYNSYM,
    SHT_NOBITS,
    SHT_NOTE,
    SHT_RELA,
    SHT_SYMTAB,
    Section,
    Symbol,
)

from fly_link.backends.amd.hash_tables import gnu_hash, hash_table, strings
from fly_link.backends.amd.placement import (
    HEADER_SIZE,
    PAGE,
    SEGMENT,
    Output,
    aligned,
    place,
    program_headers,
)

if TYPE_CHECKING:
    from fly_link.backends.amd.inputs import Input

ABSOLUTE = 0xFFF1  # the section of a symbol that is a number
LOCAL, GLOBAL = 0, 1  # bindings
SECTION_SYMBOL, PLAIN = 3, (0, 1, 2)  # types; the plain ones are none, object and function
DEFAULT, HIDDEN, PROTECTED = 0, 2, 3  # visibilities
SHT_PROGBITS, SHT_STRTAB, SHT_HASH, SHT_DYNAMIC, SHT_GNU_HASH = 1, 3, 5, 6, 0x6FFFFFF6
WRITE, ALLOC, EXECUTE, INFO_LINK = 1, SHF_ALLOC, 4, 0x40  # flags of sections
MERGED = 0x30  # flags of a section of strings that may be merged
DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_GNU_HASH = 4, 5, 6, 10, 11, 0x6FFFFEF5
ABIS = ((64, 2), (64, 3), (64, 4))  # AMDGPU_HSA with the versions of the code objects 4 to 6
MOST = 1 << 32  # bytes of a section

_SYMBOL = struct.Struct("<IBBHQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_RELOCATION = struct.Struct("<QQq")
# The relocations: where the distance S + A - P is written, and how far it is shifted right.
_WORD, _LONG = struct.Struct("<I"), struct.Struct("<Q")
_FIELDS = {5: (_LONG, 0), 10: (_WORD, 0), 11: (_WORD, 32)}  # REL64, REL32_LO, REL32_HI

# The sections that have a place in the image: type and flags that they must have.
_PLACED = {
    ".note": (SHT_NOTE, ALLOC),
    ".rodata": (SHT_PROGBITS, ALLOC),
    ".text": (SHT_PROGBITS, ALLOC | EXECUTE),
    ".bss": (SHT_NOBITS, ALLOC | WRITE),
}
_NEEDED = (".note", ".rodata", ".text")
_RELOCATED = (".rodata", ".text")
_KEPT = (".fly.", ".AMDGPU.")  # the names of sections that are copied as they are
_ABOUT = {".strtab": SHT_STRTAB, ".symtab": SHT_SYMTAB, ".note.GNU-stack": SHT_PROGBITS}


@record
class _Parts:
    """The sections of an object: those with a place in the image by name, those that are copied,
    and the relocations by the name of the section that they apply to."""

    placed: dict[str, Section]
    copied: list[Section]
    relocations: dict[str, bytes]
    aligns: dict[str, int]


def linked(item: Input, comment: bytes) -> bytes | None:
    """Returns the shared object that ld.lld makes of `item`, or None if that may need more than is
    here. `comment` is ld.lld's own text in the section `.comment`, with a NUL at its end."""
    parts = _parts(item)
    if parts is None:
        return None
    symbols = _symbols(item, parts)
    if symbols is None:
        return None
    return _image(item, parts, *symbols, comment)


def _parts(item: Input) -> _Parts | None:
    placed: dict[str, Section] = {}
    copied: list[Section] = []
    relocations: dict[str, bytes] = {}
    aligns: dict[str, int] = {}
    elf, sections = item.elf, item.elf.sections
    names = [section.name for section in sections]
    if (elf.abi, elf.abi_version) not in ABIS or len(set(names)) < len(names):
        return None
    for section, align in zip(sections[1:], _aligns(item.data), strict=False):
        name = section.name
        aligns[name] = align
        if align & (align - 1) or align > PAGE or section.size > MOST:
            return None
        if name in _PLACED:
            if (section.type, section.flags) != _PLACED[name] or section.entry_size:
                return None
            placed[name] = section
        elif section.type == SHT_RELA:
            of = [names[at] if at < len(names) else "" for at in (section.info, section.link)]
            if section.flags != INFO_LINK or of[0] not in _RELOCATED or of[1] != ".symtab":
                return None
            relocations[of[0]] = section.data
        elif name.startswith(_KEPT):
            if section.type != SHT_PROGBITS or section.flags or section.entry_size:
                return None
            copied.append(section)
        elif _ABOUT.get(name) != section.type or section.flags:
            return None
    if not all(name in placed for name in _NEEDED) or not all(one.size for one in placed.values()):
        return None
    return _Parts(placed, copied, relocations, aligns)


def _aligns(data: bytes) -> list[int]:
    """The alignments of the sections but the first. The table is known to be in the file."""
    at, count = HEADER.unpack_from(data, 16)[5], HEADER.unpack_from(data, 16)[11]
    return [max(_SECTION.unpack_from(data, at + 64 * n)[8], 1) for n in range(1, count)]


def _symbols(item: Input, parts: _Parts) -> tuple[list[Symbol], list[Symbol]] | None:
    """The local and the global symbols of the image, with their sections in the object."""
    locals_: list[Symbol] = []
    globals_: list[Symbol] = []
    sections = item.elf.sections
    for symbol in item.symbols[1:]:
        section = sections[symbol.section] if symbol.section < len(sections) else None
        inside = section and section.name in parts.placed and symbol.value <= section.size
        if not inside and symbol.section != ABSOLUTE:
            return None
        if symbol.bind == LOCAL and symbol.type == SECTION_SYMBOL:
            continue
        # A backslash may stand for a byte that is not UTF-8.
        if symbol.type not in PLAIN or "\\" in symbol.name:
            return None
        if symbol.bind == LOCAL:
            if symbol.other or symbol.name.startswith(".L"):
                return None
            locals_.append(symbol)
        elif symbol.bind == GLOBAL and inside and symbol.other in (DEFAULT, PROTECTED):
            globals_.append(symbol)
        else:
            return None
    return (locals_, globals_) if len({one.name for one in globals_}) == len(globals_) else None


def _image(
    item: Input, parts: _Parts, locals_: list[Symbol], globals_: list[Symbol], comment: bytes
) -> bytes | None:
    dynstr, names = strings([symbol.name for symbol in globals_])
    exported, gnu_table = gnu_hash(list(zip(globals_, names, strict=True)))
    table = hash_table([symbol.name for symbol, _ in exported])
    symbols_size = (len(exported) + 1) * _SYMBOL.size

    def of_object(name: str) -> Output:
        section = parts.placed[name]
        kind, flags = _PLACED[name]
        return Output(name, kind, flags, section.data, parts.aligns[name], size=section.size)

    def made_here(name: str, kind: int, data: bytes, align: int, **more: int) -> Output:
        return Output(name, kind, ALLOC, data, align, size=len(data), **more)

    segments = [
        [
            of_object(".note"),
            made_here(
                *(".dynsym", SHT_DYNSYM, bytes(symbols_size), 8),
                link=5,
                info=1,
                entry_size=_SYMBOL.size,
            ),
            made_here(".gnu.hash", SHT_GNU_HASH, gnu_table, 8, link=2),
            made_here(".hash", SHT_HASH, table, 4, link=2, entry_size=4),
            made_here(".dynstr", SHT_STRTAB, dynstr, 1),
            of_object(".rodata"),
        ],
        [of_object(".text")],
        [made_here(".dynamic", SHT_DYNAMIC, bytes(14 * 8), 8, link=5, entry_size=16)],
        *([[of_object(".bss")]] if ".bss" in parts.placed else ()),
    ]
    read_only, (text,), (dynamic,), *_ = segments
    dynamic.flags |= WRITE
    segment_count = len(segments) + 5
    end = place(segments, HEADER_SIZE + segment_count * SEGMENT.size)
    after = dynamic.address + dynamic.size
    if not after % PAGE:
        return None  # the page of what is read-only after relocation ends here: no padding
    padding = Output(".relro_padding", SHT_NOBITS, ALLOC | WRITE, b"", 1)
    padding.size = aligned(after, PAGE) - after
    padding.address, padding.offset = after, dynamic.offset + dynamic.size
    segments[2].append(padding)
    made = [one for segment in segments for one in segment]
    where = {one.name: (at, one.address) for at, one in enumerate(made, start=1)}

    def entry(symbol: Symbol, name: int) -> bytes:
        section, value = symbol.section, symbol.value
        if section != ABSOLUTE:
            section, address = where[item.elf.sections[section].name]
            value += address
        info = symbol.bind << 4 | symbol.type
        return _SYMBOL.pack(name, info, symbol.other, section, value, symbol.size)

    _, dynsym, gnu, sysv, names_table, rodata = read_only
    dynsym.data = b"".join([bytes(_SYMBOL.size), *(entry(*one) for one in exported)])
    dynamic.data = struct.pack(
        "<14Q",
        *(DT_SYMTAB, dynsym.address, DT_SYMENT, _SYMBOL.size),
        *(DT_STRTAB, names_table.address, DT_STRSZ, names_table.size),
        *(DT_GNU_HASH, gnu.address, DT_HASH, sysv.address, 0, 0),
    )
    for one in (text, rodata):
        filled = _relocated(item, one, {name: at for name, (_, at) in where.items()}, parts)
        if filled is None:
            return None
        one.data = filled

    # Behind what is loaded: copies, and the tables for other programs.
    for section in parts.copied:
        align = parts.aligns[section.name]
        made.append(Output(section.name, SHT_PROGBITS, 0, section.data, align))
    made.append(Output(".comment", SHT_PROGBITS, MERGED, comment, 1, entry_size=1))
    strtab, names = strings([one.name for one in (*locals_, *globals_)])
    strtab, (own,) = strtab + b"_DYNAMIC\0", (len(strtab),)
    known = [entry(*one) for one in zip((*locals_, *globals_), names, strict=True)]
    number, address = where[".dynamic"]
    known.insert(len(locals_), _SYMBOL.pack(own, 0, HIDDEN, number, address, 0))
    symtab = b"".join([bytes(_SYMBOL.size), *known])
    made.append(
        Output(
            *(".symtab", SHT_SYMTAB, 0, symtab, 8),
            link=len(made) + 3,
            info=len(locals_) + 2,
            entry_size=_SYMBOL.size,
        )
    )
    shstrtab, names = strings([one.name for one in made] + [".shstrtab", ".strtab"])
    made.append(Output(".shstrtab", SHT_STRTAB, 0, shstrtab, 1))
    made.append(Output(".strtab", SHT_STRTAB, 0, strtab, 1))
    for one in made[len(where) :]:
        one.offset, one.size = aligned(end, one.align), len(one.data)
        end = one.offset + one.size

    table_at = aligned(end, 8)
    image = bytearray(table_at)
    image[:HEADER_SIZE] = _header(item, table_at, segment_count, len(made) + 1)
    entries = program_headers(segments, segment_count)
    image[HEADER_SIZE : HEADER_SIZE + len(entries)] = entries
    for one in made:
        image[one.offset : one.offset + len(one.data)] = one.data
    image += bytes(_SECTION.size)
    for one, name in zip(made, names, strict=True):
        image += _SECTION.pack(
            *(name, one.type, one.flags, one.address, one.offset, one.size),
            *(one.link, one.info, one.align, one.entry_size),
        )
    return bytes(image)


def _header(item: Input, table: int, segments: int, sections: int) -> bytes:
    return item.data[:16] + HEADER.pack(
        *(ET_DYN, item.elf.machine, 1, 0, HEADER_SIZE, table, item.elf.flags),
        *(HEADER_SIZE, SEGMENT.size, segments, _SECTION.size, sections, sections - 2),
    )


def _relocated(
    item: Input, target: Output, addresses: dict[str, int], parts: _Parts
) -> bytes | None:
    """The content of a section with the distances to symbols filled in."""
    relocations = parts.relocations.get(target.name, b"")
    if not relocations:
        return target.data
    if len(relocations) % _RELOCATION.size:
        return None
    data = bytearray(target.data)
    for offset, info, addend in _RELOCATION.iter_unpack(relocations):
        kind, index = info & 0xFFFFFFFF, info >> 32
        if index >= len(item.symbols) or kind not in _FIELDS:
            return None
        symbol, (field, shift) = item.symbols[index], _FIELDS[kind]
        # A symbol with the default visibility may be another library's.
        if symbol.section == ABSOLUTE or (symbol.bind == GLOBAL and symbol.other != PROTECTED):
            return None
        if not index or offset + field.size > len(data):
            return None
        start = addresses[item.elf.sections[symbol.section].name] + symbol.value
        distance = start + addend - target.address - offset
        field.pack_into(data, offset, distance >> shift & (1 << 8 * field.size) - 1)
    return bytes(data)
