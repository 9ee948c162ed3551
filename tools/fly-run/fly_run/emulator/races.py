"""Two waves, or two lanes, at the same byte of LDS, with nothing that orders them.

An access is over when a wait has covered it. Two accesses of different waves to a byte, at least
one of them a plain store, are a race unless the first one was over before its wave reached a
barrier that the second one's wave has passed too. Atomics do not race with atomics.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fly_run.emulator.accesses import Destination
from fly_run.emulator.instruction import Instruction
from fly_run.emulator.semantics.access import Access as Detail
from fly_run.emulator.waits import Outstanding

NEVER = 1 << 62


@dataclass(eq=False)
class Access:
    """What one instruction of a wave did to LDS. It is ordered before everything behind barrier
    number `until` of the workgroup."""

    instruction: Instruction
    wave: int
    kind: str  # load, store, atomic
    until: int = NEVER


@dataclass
class SharedBytes:
    """The LDS of a workgroup: for each byte the last store or atomic, and the last loads by two
    different waves (a third one's race with a store is that of one of them, too)."""

    size: int
    accesses: list[Access] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stored = np.full(self.size, -1, np.int64)
        self.loaded = np.full((2, self.size), -1, np.int64)
        self.loader = np.full(self.size, -1, np.int64)  # the wave of loaded[0]

    def access(self, made: Access, places: np.ndarray, barriers: int) -> tuple[Access, int] | None:
        """Notes an access to the bytes `places` (in any shape) by a wave that has passed
        `barriers` barriers. The result is another one that it races with, and the byte."""
        places = np.unique(places)
        places = places[(places >= 0) & (places < self.size)]
        number = len(self.accesses)
        self.accesses.append(made)
        for table in [self.stored] if made.kind == "load" else [self.stored, *self.loaded]:
            for index in np.unique(table[places]):
                other = self.accesses[index] if index >= 0 else made
                ordered = other.wave == made.wave or other.until <= barriers
                if not ordered and not made.kind == other.kind == "atomic":
                    return other, int(places[table[places] == index][0])
        if made.kind == "load":
            moved = places[self.loader[places] != made.wave]
            self.loaded[1, moved] = self.loaded[0, moved]
            self.loaded[0, places], self.loader[places] = number, made.wave
        else:
            self.stored[places], self.loaded[:, places] = number, -1
            self.loader[places] = -1
        return None


def order(done: list[Outstanding], made: dict[Outstanding, Access], barriers: int) -> None:
    """Tells accesses that a wait has covered: the wave's next barrier orders them."""
    for one in done:
        found = made.pop(one, None)
        if found is not None:
            found.until = barriers + 1


def clash(
    detail: Detail, where: Destination, rows: list[np.ndarray]
) -> tuple[int, int, int] | None:
    """Two lanes of a store of `rows` of registers that put different values at a byte, and it."""
    lanes = np.flatnonzero(where.lanes)
    offsets = (where.offsets[lanes, None] + np.arange(detail.size)).ravel()
    if len(np.unique(offsets)) == len(offsets):
        return None
    data = np.stack(rows, 1)[lanes]
    if detail.half == "high":
        data = data >> np.uint32(16)
    moved = np.ascontiguousarray(data).view(np.uint8)[:, : detail.size].ravel()
    order = np.lexsort((moved, offsets))
    alike = offsets[order][1:] == offsets[order][:-1]
    found = np.flatnonzero(alike & (moved[order][1:] != moved[order][:-1]))
    if not len(found):
        return None
    first, second = sorted(order[found[0] : found[0] + 2] // detail.size)
    return int(lanes[first]), int(lanes[second]), int(offsets[order][found[0]])
