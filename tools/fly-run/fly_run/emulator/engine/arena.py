"""Guest memory: the mapping from guest addresses to host memory.

Guest addresses are assigned here and are never host addresses. Regions are separated by at least
4 KiB of unmapped addresses, so that an access past the end of one faults instead of reaching the
next.

    Buffers   what a device has adopted or allocated: the memory that kernels are given
    Arena     what the launches of one module see: its code and data, the regions of a launch,
              and the device's buffers

Each module has its own arena, so that a kernel can't access another module's memory. Arenas use
the same addresses for the same purposes; a buffer has the same address in all of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fly_common.errors import InputError

from fly_run.devices.memory_faults import nearest
from fly_run.emulator import state

GAP = 4096
ALIGNMENT = 4096  # of a region's address; hardware allocations are page-aligned too
# Bit 31 is set, so that code that sign-extends the low dword of an address is exposed.
FIRST, LAST = 0x7F10_8000_0000, 0x7FE0_0000_0000  # buffers
LAUNCH_AT = 0x7FE0_8000_0000  # queue, dispatch packet, arguments
CODE_AT = 0x7FF0_8000_0000  # a module's segments
# What is not a buffer's: address and size, rounded up.
OWN = ((LAUNCH_AT, 1 << 30), (CODE_AT, 1 << 31))
CAPACITY = 1024  # maximum number of writable buffers, and of read-only ones
LAUNCH_REGIONS = 3


class Region(NamedTuple):
    """`length` bytes of host memory at `host`, mapped to guest address `low`. Faults call it
    `name`."""

    name: str
    low: int
    length: int
    host: int
    writable: bool

    @property
    def end(self) -> int:
        return self.low + self.length

    def row(self) -> bytes:
        """Returns the region's entry in the handlers' table."""
        flags = state.WRITABLE if self.writable else 0
        return state.REGION.pack(self.low, self.length, self.host - self.low, flags)


class Buffers:
    """The buffers of a device, and their rows in the table that handlers search.

    A memory site caches a pointer to the row that it used last, across launches. It checks the
    row's bounds each time, but its permission only when it looks the row up: so a row's permission
    is fixed (even and odd rows differ), and a row without a buffer holds zeros.
    """

    def __init__(self) -> None:
        self._table = ctypes.create_string_buffer(2 * CAPACITY * state.REGION_SIZE)
        self._held: dict[int, tuple[tuple[str, int, int, int, bool], int]] = {}  # Region, row
        self._next = FIRST
        self._given = [0, 0]  # rows of each kind ever used
        self._free: tuple[list[int], list[int]] = ([], [])
        self._around: dict[int, int] = {}  # buffer → what it lies in
        self.rows = 0  # only the rows below this one may hold a buffer

    @property
    def table(self) -> int:
        return ctypes.addressof(self._table)

    def __iter__(self) -> Iterator[Region]:
        return (Region(*region) for region, _ in self._held.values())

    def __len__(self) -> int:
        return len(self._held)

    def add(self, name: str, host: int, length: int, writable: bool) -> int:
        """Assigns a guest address to host memory."""
        low = self._reserved(length)
        self.place(Region(name, low, length, host, writable))
        return low

    def add_within(self, margin: int, name: str, host: int, length: int, writable: bool) -> int:
        """`add`, where `margin` bytes before the memory and behind it may be read."""
        outer = self._reserved(length + 2 * margin)
        low = outer + margin
        self.place(Region(name, low, length, host, writable))
        around = Region(f"the margin of {name}", outer, length + 2 * margin, host - margin, False)
        self.place(around, beneath=True)
        self._around[low] = outer
        return low

    def _reserved(self, length: int) -> int:
        """A free address."""
        low = self._next
        following = low + length + GAP
        following += -following % ALIGNMENT
        if following > LAST:
            low = self._gap(length)
        else:
            self._next = following
        return low

    def add_all(self, spans: Sequence[tuple[str, int, int, bool]]) -> list[int]:
        """`add` for each span, as (name, host, length, writable). Where there are no buffers yet,
        as between calls, this costs a fraction."""
        lows: list[int] = []
        if self._held or len(spans) > CAPACITY:
            try:
                for span in spans:
                    lows.append(self.add(*span))
            except InputError:
                self.remove_all(lows)
                raise
            return lows
        low, given, held = FIRST, [0, 0], self._held
        table, size, pack = self._table, state.REGION_SIZE, state.REGION.pack_into
        for name, host, length, writable in spans:
            kind = 0 if writable else 1
            row = 2 * given[kind] + kind
            given[kind] += 1
            pack(table, row * size, low, length, host - low, state.WRITABLE if writable else 0)
            held[low] = (name, low, length, host, writable), row
            lows.append(low)
            low += length + GAP
            low += -low % ALIGNMENT
        if low > LAST:
            self.remove_all(lows)
            raise InputError("the buffers are larger than the emulator's addresses")
        self._next, self._given = low, given
        self.rows = max(2 * given[0] - 1, 2 * given[1])
        return lows

    def remove_all(self, lows: Sequence[int]) -> None:
        """`remove` for each, the last first. KeyError where none begins at one."""
        if len(lows) == len(self._held) and all(map(self._held.__contains__, lows)):
            ctypes.memset(self.table, 0, self.rows * state.REGION_SIZE)
            self._held.clear()
            self._around.clear()
            self._next, self._given, self._free, self.rows = FIRST, [0, 0], ([], []), 0
            return
        for low in reversed(lows):
            self.remove(low)

    def place(self, region: Region, *, beneath: bool = False) -> None:
        """Inserts a buffer at its own address, which must be free. A read-only one that is beneath
        others may contain them: it is found where none of those that are there now is."""
        kind = 0 if region.writable else 1
        if beneath:
            self._given[1] = max(self._given)
        if self._free[kind] and not beneath:
            row = self._free[kind].pop()
        elif self._given[kind] < CAPACITY:
            row = 2 * self._given[kind] + kind
            self._given[kind] += 1
            self.rows = max(self.rows, row + 1)
        else:
            raise InputError(f"more than {CAPACITY} buffers are bound at once")
        flags = state.WRITABLE if region.writable else 0
        size = state.REGION_SIZE
        delta = region.host - region.low
        state.REGION.pack_into(self._table, row * size, region.low, region.length, delta, flags)
        self._held[region.low] = region, row

    def remove(self, low: int) -> Region:
        """Takes the buffer at this address away. KeyError where none begins there."""
        if (outer := self._around.pop(low, None)) is not None:
            self.remove(outer)
        held, row = self._held.pop(low)
        region = Region(*held)
        state.REGION.pack_into(self._table, row * state.REGION_SIZE, 0, 0, 0, 0)
        self._free[row & 1].append(row)
        # Reuse addresses if that is cheap: a call that adopts its arguments and releases them in
        # reverse order gets the same addresses each time.
        if not self._held:
            self._next, self._given, self._free, self.rows = FIRST, [0, 0], ([], []), 0
        elif region.end + GAP + -(region.end + GAP) % ALIGNMENT == self._next:
            self._next = low
        return region

    def find(self, address: int, size: int) -> Region | None:
        """Returns the buffer that contains `size` bytes at an address."""
        inside = (r for r in self if r.low <= address and address + size <= r.end)
        return next(inside, None)

    def _gap(self, length: int) -> int:
        """Returns a gap between buffers, once the addresses above the last one are exhausted."""
        low = FIRST
        for region in sorted(self, key=lambda one: one.low):
            if low + length + GAP <= region.low:
                return low
            low = region.end + GAP + -(region.end + GAP) % ALIGNMENT
        if low + length + GAP <= LAST:
            return low
        raise InputError(f"the emulator's address space has no {length} bytes left")


class Arena:
    """The memory that the launches of a module see. `segments` are its own; the table holds, in
    order, LAUNCH_REGIONS rows of the launch, the segments, and the device's buffers."""

    def __init__(self, buffers: Buffers, segments: Iterable[Region]):
        self._buffers, self._segments = buffers, tuple(segments)
        self._launch: tuple[Region, ...] = ()
        self._fixed = LAUNCH_REGIONS + len(self._segments)
        rows = 1 + self._fixed + 2 * CAPACITY
        # The row before the table is empty: every memory site initially points to it.
        self._memory = ctypes.create_string_buffer(rows * state.REGION_SIZE)
        for number, region in enumerate(self._segments, 1 + LAUNCH_REGIONS):
            ctypes.memmove(self._at(number), region.row(), state.REGION_SIZE)
        self._shown = 0
        self._buffers_at = self._at(1 + self._fixed)

    def _at(self, row: int) -> int:
        return ctypes.addressof(self._memory) + row * state.REGION_SIZE

    @property
    def null_region(self) -> int:
        return self._at(0)

    @property
    def table(self) -> int:
        return self._at(1)

    def __iter__(self) -> Iterator[Region]:
        yield from self._launch
        yield from self._segments
        yield from self._buffers

    def enter(self, regions: tuple[Region, ...]) -> None:
        """Sets the regions of the launch; none of them is writable."""
        if regions is not self._launch:
            assert len(regions) == LAUNCH_REGIONS
            rows = b"".join(region.row() for region in regions)
            ctypes.memmove(self.table, rows, len(rows))
            self._launch = regions

    def show_buffers(self) -> int:
        """Updates the table with the device's current buffers. Returns the number of rows to
        search."""
        rows = self._buffers.rows
        # Rows of removed buffers are overwritten with zeros.
        most = max(rows, self._shown)
        ctypes.memmove(self._buffers_at, self._buffers.table, most * state.REGION_SIZE)
        self._shown = rows
        return self._fixed + rows

    def nearest(self, address: int, size: int) -> str:
        """Describes an address relative to the regions, for fault messages."""
        return nearest(self, address, size)
