"""Guest memory: which guest addresses stand for which host memory.

Guest addresses are made here and are never host addresses. Between any two regions lie at least
4 KiB that belong to nobody, so that an access past the end of one is a fault and not an access to
the next.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from fly_common.errors import InputError

from fly_run.emulator import state

GAP = 4096
ALIGNMENT = 4096  # of a region's first address; hardware allocations are page-aligned too
FIRST = 0x7F10_8000_0000  # whoever takes the low dword for a signed number goes elsewhere
LAST = 0x7FFF_FFFF_0000
CAPACITY = 1024
FAR = 1 << 32  # bytes: no index that is a little wrong leads there


@dataclass(frozen=True)
class Region:
    name: str
    low: int
    length: int
    host: int
    writable: bool
    owner: int = 0  # regions of one name are told apart by it


class Arena:
    """The regions, and the table of them that handlers search. The table never moves: a memory
    site may keep a pointer into it from one launch to the next."""

    def __init__(self) -> None:
        self._table = ctypes.create_string_buffer((CAPACITY + 1) * state.REGION_SIZE)
        self._regions: list[Region] = []
        self._next = FIRST
        self.version = 0  # changes with the table

    @property
    def null_region(self) -> int:
        """The address of a region that holds nothing: it comes before the table."""
        return ctypes.addressof(self._table)

    @property
    def table(self) -> int:
        return self.null_region + state.REGION_SIZE

    def __len__(self) -> int:
        return len(self._regions)

    def __iter__(self):
        return iter(self._regions)

    def bind(self, name: str, host: int, length: int, writable: bool, owner: int = 0) -> int:
        """Gives host memory a guest address. A region of this name and owner is replaced, unless
        it is the same one."""
        for region in self._regions:
            if region.name == name and region.owner == owner:
                if (region.host, region.length, region.writable) == (host, length, writable):
                    return region.low
                self._regions.remove(region)
                break
        low = self.reserve(length)
        self._add(Region(name, low, length, host, writable, owner))
        return low

    def map(self, name: str, low: int, host: int, length: int, writable: bool) -> None:
        """Puts host memory at a guest address that `reserve` gave."""
        self._add(Region(name, low, length, host, writable))

    def _add(self, region: Region) -> None:
        if len(self._regions) >= CAPACITY:
            raise InputError(f"more than {CAPACITY} buffers are bound at once")
        self._regions.append(region)
        self._write()

    def reserve(self, length: int) -> int:
        """A free range of guest addresses."""
        low = self._next
        following = low + length + GAP
        following += -following % ALIGNMENT
        if following > LAST:
            raise InputError(f"no {length} bytes are left among the emulator's addresses")
        self._next = following
        return low

    def drop(self, name: str, owner: int = 0) -> None:
        """Forgets a region."""
        self._regions = [r for r in self._regions if (r.name, r.owner) != (name, owner)]
        self._write()

    def _write(self) -> None:
        self.version += 1
        for number, region in enumerate(self._regions):
            state.REGION.pack_into(
                self._table,
                (number + 1) * state.REGION_SIZE,
                region.low,
                region.length,
                region.host - region.low,
                state.WRITABLE if region.writable else 0,
            )

    def nearest(self, address: int, size: int) -> str:
        """Where an address is in terms of the regions: what a fault tells."""
        if not self._regions:
            return "no buffer is bound"
        if address < GAP:
            return "a null pointer, or an offset from one"
        region = min(self._regions, key=lambda r: _distance(r, address))
        of = f"`{region.name}` ({region.length} bytes)"
        if _distance(region, address) > FAR:
            return f"no buffer is near it; the nearest is {of} at 0x{region.low:x}"
        if address < region.low:
            return f"{region.low - address} bytes before the start of {of}"
        beyond = address - (region.low + region.length)
        if beyond < 0:
            over = address + size - region.low - region.length
            return f"the last {over} of its bytes lie past the end of {of}"
        where = "at" if beyond == 0 else f"{beyond} bytes past"
        return f"{where} the end of {of}"


def _distance(region: Region, address: int) -> int:
    if address < region.low:
        return region.low - address
    return max(0, address - (region.low + region.length) + 1)
