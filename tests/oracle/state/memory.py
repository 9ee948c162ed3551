"""Memory: buffers bound at guest addresses, separated by gaps; every access is checked.

Offsets are arrays [n, 64] with a lane mask (None for all lanes). A value wider than a dword is a
list of dwords.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

FIRST_ADDRESS = 0x7E00_0000_0000
GAP = 0x10000


class Fault(Exception):
    """An access outside every buffer, or a write to a read-only one."""


@dataclass
class Region:
    name: str
    base: int
    size: int
    data: np.ndarray = field(repr=False)  # uint8, padded so that aligned dwords can be viewed
    writable: bool = True
    host: np.ndarray | None = field(default=None, repr=False)


def padded(size: int, fill: int = 0) -> np.ndarray:
    words = np.full((size + 31) // 16 * 4, fill, np.uint32)
    return words.view(np.uint8)


class Memory:
    def __init__(self):
        self.regions: list[Region] = []
        self._next = FIRST_ADDRESS
        self._last: Region | None = None

    def bind(self, name: str, host: np.ndarray, writable: bool = True) -> int:
        """Copies in a C-contiguous array, and returns its guest address; `synchronize` copies it
        back."""
        raw = host.reshape(-1).view(np.uint8)
        data = padded(raw.nbytes)
        data[: raw.nbytes] = raw
        return self.place(name, data, raw.nbytes, writable, raw).base

    def place(self, name, data, size, writable, host=None, base=None) -> Region:
        if base is None:
            base = self._next
            self._next += (size + 2 * GAP) // GAP * GAP
        region = Region(name, base, size, data, writable, host)
        self.regions.append(region)
        return region

    def remove(self, region: Region) -> None:
        self.regions.remove(region)
        self._last = None

    def synchronize(self) -> None:
        for region in self.regions:
            if region.host is not None and region.writable:
                region.host[:] = region.data[: region.size]

    def find(self, low: int, high: int) -> Region | None:
        """Returns the region that holds bytes [low, high)."""
        last = self._last
        if last and last.base <= low and high <= last.base + last.size:
            return last
        for region in self.regions:
            if region.base <= low and high <= region.base + region.size:
                self._last = region
                return region
        return None

    def split(self, addresses: np.ndarray, lanes: np.ndarray | None, size: int, write: bool):
        """Yields (region, offsets, lanes) that partition an access by regions. Raises Fault."""
        flat = addresses.ravel() if lanes is None else addresses[lanes]
        if flat.size == 0:
            return
        low, high = int(flat.min()), int(flat.max()) + size
        region = self.find(low, high)
        if region is not None:
            self._check(region, low, write)
            yield region, (addresses - np.uint64(region.base)).view(np.int64), lanes
            return
        left = np.ones(addresses.shape, bool) if lanes is None else lanes.copy()
        for region in self.regions:
            end = region.base + region.size - size
            here = left & (addresses >= np.uint64(region.base))
            if end < region.base or not here.any():
                continue
            here &= addresses <= np.uint64(end)
            if here.any():
                self._check(region, region.base, write)
                yield region, (addresses - np.uint64(region.base)).view(np.int64), here
                left &= ~here
        if left.any():
            row, lane = (int(index[0]) for index in np.nonzero(left))
            raise Fault(f"no buffer at {int(addresses[row, lane]):#x}, wave {row} lane {lane}")

    def _check(self, region: Region, address: int, write: bool) -> None:
        if write and not region.writable:
            raise Fault(f"{region.name} at {address:#x} is read-only")

    def load(self, addresses: np.ndarray, lanes: np.ndarray | None, size: int) -> list[np.ndarray]:
        """Loads `size` bytes per lane: a list of uint32[n, 64], lowest first."""
        result = None
        for region, offsets, here in self.split(addresses, lanes, size, False):
            values = gather(region.data, offsets, here, size)
            if result is None:
                result = values
            else:
                for total, value in zip(result, values, strict=True):
                    np.copyto(total, value, where=here)
        if result is None:
            return [np.zeros(addresses.shape, np.uint32) for _ in range(max(1, size // 4))]
        return result

    def store(self, addresses, lanes, size: int, values: list[np.ndarray]) -> None:
        for region, offsets, here in self.split(addresses, lanes, size, True):
            scatter(region.data, offsets, here, size, values)

    def read_bytes(self, address: int, size: int) -> np.ndarray:
        region = self.find(address, address + size)
        if region is None:
            raise Fault(f"no buffer at {address:#x}")
        return region.data[address - region.base : address - region.base + size]


UNITS = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def unit_of(offsets: np.ndarray, size: int) -> int:
    """Returns the widest unit to which every offset is aligned, at most a dword."""
    unit = min(size, 4)
    low = int(np.bitwise_or.reduce(offsets, axis=None)) | size
    while low & (unit - 1):
        unit //= 2
    return unit


def consecutive(index: np.ndarray) -> bool:
    flat = index.ravel()
    return int(flat[-1]) - int(flat[0]) == flat.size - 1 and bool((np.diff(flat) == 1).all())


def gather(data: np.ndarray, offsets: np.ndarray, lanes, size: int) -> list[np.ndarray]:
    if lanes is not None:
        offsets = np.where(lanes, offsets, 0)
    unit = unit_of(offsets, size)
    source = data.view(UNITS[unit])
    index = offsets // unit if unit > 1 else offsets
    if size == unit:
        if consecutive(index):
            start = int(index.flat[0])
            chunk = source[start : start + index.size].reshape(index.shape)
            return [chunk.astype(np.uint32)]
        return [source[index].astype(np.uint32)]
    pieces = [source[index + k].astype(np.uint32) for k in range(size // unit)]
    per_dword = max(1, min(4, size) // unit)
    if per_dword == 1:
        return pieces
    return [
        sum(
            piece << np.uint32(8 * unit * k)
            for k, piece in enumerate(pieces[first : first + per_dword])
        )
        for first in range(0, len(pieces), per_dword)
    ]


def scatter(data: np.ndarray, offsets: np.ndarray, lanes, size: int, values) -> None:
    """If lanes overlap, the highest one's value remains (NumPy assigns in order)."""
    values = [np.broadcast_to(value, offsets.shape) for value in values]
    if lanes is not None:
        offsets, values = offsets[lanes], [value[lanes] for value in values]
        if offsets.size == 0:
            return
    unit = unit_of(offsets, size)
    target = data.view(UNITS[unit])
    index = offsets // unit if unit > 1 else offsets
    if size == unit and consecutive(index):
        start = int(index.flat[0])
        target[start : start + index.size] = values[0].ravel()
        return
    per_dword = max(1, min(4, size) // unit)
    for k in range(size // unit):
        piece = values[k // per_dword] >> np.uint32(8 * unit * (k % per_dword))
        target[index + k] = piece.astype(UNITS[unit])
