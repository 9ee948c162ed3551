"""Appends sections to a cubin.

Nothing that exists moves: the new data, a new table of names and a new table of section headers are
written behind the end of the file. `llvm-objcopy` must not be used for this: it renumbers symbols
that `.nv.info` names by number, and the kernel then fails at its launch.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from fly_common.errors import InputError

_TABLE_AT = 40  # e_shoff
_COUNTS_AT = 58  # e_shentsize, e_shnum, e_shstrndx
_HEADER = struct.Struct("<IIQQQQIIQQ")
_PROGBITS = 1


def with_sections(elf: bytes, sections: Mapping[str, bytes]) -> bytes:
    """Returns the ELF file with these sections. Raises InputError if it has no section table."""
    if not sections:
        return elf
    if len(elf) < 64:
        raise InputError(f"the ELF header is truncated: the file has {len(elf)} bytes")
    (table,) = struct.unpack_from("<Q", elf, _TABLE_AT)
    size, count, names = struct.unpack_from("<3H", elf, _COUNTS_AT)
    if size != _HEADER.size or names >= count or table + size * count > len(elf):
        raise InputError("the ELF file has no valid table of sections")
    heads = [list(_HEADER.unpack_from(elf, table + n * size)) for n in range(count)]
    at, length = heads[names][4:6]
    strings = bytearray(elf[at : at + length])
    made = bytearray(elf)
    for name, data in sections.items():
        made += bytes(-len(made) % 8)
        heads.append([len(strings), _PROGBITS, 0, 0, len(made), len(data), 0, 0, 1, 0])
        strings += name.encode() + b"\0"
        made += data
    heads[names][4:6] = len(made), len(strings)
    made += strings
    made += bytes(-len(made) % 8)
    struct.pack_into("<Q", made, _TABLE_AT, len(made))
    struct.pack_into("<H", made, _COUNTS_AT + 2, len(heads))
    return bytes(made) + b"".join(_HEADER.pack(*head) for head in heads)
