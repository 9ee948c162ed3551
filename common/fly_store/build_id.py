"""The build ID of a shared library or program: a digest that the linker writes into it.

Linkers make it of the output's content (`ld --build-id`, ELF note NT_GNU_BUILD_ID), so that it can
be read where hashing the file would take 0.7 ms a megabyte.
"""

from __future__ import annotations

import os
import struct

_HEADER = struct.Struct("<16s HHI QQQ I HHH HHH")  # Elf64_Ehdr
_SEGMENT = struct.Struct("<II QQQ QQQ")  # Elf64_Phdr
_NOTE = struct.Struct("<III")  # sizes of name and description, type
_ELF64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
_PT_NOTE, _NT_GNU_BUILD_ID = 4, 3
MOST = 1 << 16  # bytes of a note segment; a larger one is not looked at


def build_id(path: str) -> str | None:
    """Returns the build ID in hexadecimal; None for a file without one, or that is not ELF. Raises
    OSError if the file cannot be read."""
    with open(path, "rb") as file:
        head = file.read(_HEADER.size)
        if len(head) < _HEADER.size or not head.startswith(_ELF64_LITTLE_ENDIAN):
            return None
        _, _, _, _, _, at, _, _, _, size, count, *_ = _HEADER.unpack(head)
        end = os.fstat(file.fileno()).st_size
        if size != _SEGMENT.size or at > end:
            return None
        file.seek(at)
        table = file.read(size * count)
        for start in range(0, len(table) - size + 1, size):
            kind, _, offset, _, _, length, _, _ = _SEGMENT.unpack_from(table, start)
            if kind == _PT_NOTE and offset <= end and length <= MOST:
                file.seek(offset)
                if found := _in_notes(file.read(length)):
                    return found
    return None


def _in_notes(data: bytes) -> str | None:
    at = 0
    while at + _NOTE.size <= len(data):
        name_size, size, kind = _NOTE.unpack_from(data, at)
        name = at + _NOTE.size
        content = name + (name_size + 3) // 4 * 4
        if kind == _NT_GNU_BUILD_ID and data[name : name + name_size] == b"GNU\0":
            return data[content : content + size].hex() or None
        at = content + (size + 3) // 4 * 4
    return None
