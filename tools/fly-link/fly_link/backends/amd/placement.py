"""Where the sections of an image are: addresses, offsets in the file, and segments.

The order and the addresses are ld.lld's for `-shared`: each segment begins on a page of its own, at
the place in it that the file has reached.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from fly_common.record import record

PAGE = 0x1000  # ld.lld's page size for AMDGPU
HEADER_SIZE = 64
SEGMENT = struct.Struct("<IIQQQQQQ")
PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_PHDR = 1, 2, 4, 6
PT_GNU_STACK, PT_GNU_RELRO = 0x6474E551, 0x6474E552
R, W, X = 4, 2, 1  # flags of segments


@record(frozen=False)
class Output:
    """A section of the image. Where it is placed is filled in later."""

    name: str
    type: int
    flags: int
    data: bytes
    align: int
    link: int = 0
    info: int = 0
    entry_size: int = 0
    size: int = 0  # in memory
    address: int = 0
    offset: int = 0


def aligned(value: int, align: int) -> int:
    return value + align - 1 & -align


def place(segments: Sequence[Sequence[Output]], position: int) -> int:
    """Gives the sections their addresses and offsets, from `position` on, and returns the end of
    the file. A segment begins on another page, at the place in it that the file has reached, so
    that the file needs no padding."""
    offset = address = position
    for segment in segments:
        if segment is not segments[0]:
            address = aligned(address, PAGE) + address % PAGE
        for one in segment:
            before, address = address, aligned(address, one.align)
            offset = offset + address - before if one is not segment[0] else offset
            offset += (address - offset) % PAGE
            one.address, one.offset = address, offset
            address += one.size
            offset += len(one.data)
    return offset


def program_headers(segments: Sequence[Sequence[Output]], count: int) -> bytes:
    """The program headers."""

    def over(kind: int, flags: int, align: int, held: Sequence[Output]) -> bytes:
        first, last = held[0], held[-1]
        filled = max(one.offset + len(one.data) for one in held) - first.offset
        size = last.address + last.size - first.address
        return SEGMENT.pack(
            kind, flags, first.offset, first.address, first.address, filled, size, align
        )

    read_only, text, relro, *bss = segments
    table = count * SEGMENT.size
    end = read_only[-1].offset + read_only[-1].size
    return b"".join(
        [
            SEGMENT.pack(PT_PHDR, R, HEADER_SIZE, HEADER_SIZE, HEADER_SIZE, table, table, 8),
            SEGMENT.pack(PT_LOAD, R, 0, 0, 0, end, end, PAGE),
            over(PT_LOAD, R | X, PAGE, text),
            *(over(PT_LOAD, R | W, PAGE, one) for one in (relro, *bss)),
            over(PT_DYNAMIC, R | W, 8, relro[:1]),
            over(PT_GNU_RELRO, R, 1, relro),
            SEGMENT.pack(PT_GNU_STACK, R | W, 0, 0, 0, 0, 0, 0),
            over(PT_NOTE, R, 4, read_only[:1]),
        ]
    )
