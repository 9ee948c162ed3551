"""What faults of memory say, on devices that check each access."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

FAR = 1 << 32  # bytes: more than any slightly wrong index can span
LOW = 4096  # addresses below are null pointers

HINTS = {
    "unmapped": "check the index against the buffer's size before the access",
    "read-only": "bind the buffer as writable, or do not store to it",
    "trap": "an assertion failed, or unreachable code was reached",
}


class Region(Protocol):
    """`length` bytes at address `low`."""

    @property
    def name(self) -> str: ...
    @property
    def low(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def end(self) -> int: ...


def nearest(regions: Iterable[Region], address: int, size: int) -> str:
    """Describes an address relative to the regions."""
    if address < LOW:
        return "a null pointer, or an offset from one"
    region = min(regions, key=lambda one: _distance(one, address))
    of = f"`{region.name}` ({region.length} bytes)"
    if _distance(region, address) > FAR:
        return f"no buffer is near it; the nearest is {of} at 0x{region.low:x}"
    if address < region.low:
        return f"{region.low - address} bytes before the start of {of}"
    beyond = address - region.end
    if beyond < 0:
        over = address + size - region.end
        return f"the last {over} of its bytes are past the end of {of}"
    where = "at" if beyond == 0 else f"{beyond} bytes past"
    return f"{where} the end of {of}"


def _distance(region: Region, address: int) -> int:
    if address < region.low:
        return region.low - address
    return max(0, address - region.end + 1)
