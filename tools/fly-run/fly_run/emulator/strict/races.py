"""Detects unordered accesses of two waves, or two lanes, to one byte of LDS.

An access completes when a wait covers it. Two accesses of different waves to a byte, at least one
of them a plain store, race unless the first completed before its wave signalled a barrier that the
second one's wave has passed since, directly or through others (`ordering`). Atomics do not race
with atomics, nor does a store with the previous content if it stores the same value: compilers let
all waves store a value that all have computed. An arrival at a barrier in LDS does not race with
loads, with which waves poll. A wave's own accesses are ordered, except for loads from memory
straight to LDS.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.semantics.base.access import Access as Detail
from fly_run.emulator.strict.accesses import Destination
from fly_run.emulator.strict.ordering import Clock
from fly_run.emulator.strict.waits import Outstanding

NEVER = 1 << 62


@dataclass(eq=False)
class Access:
    """An access of one instruction of a wave to LDS, by wave `wave` of workgroup `rank` of its
    cluster. It is ordered before everything behind signal number `until` of the wave, and behind
    the phases of barriers in LDS in `arrivals`. `straight`: a load from memory to LDS, which is not
    ordered with the wave's own accesses until a wait covers it."""

    instruction: Instruction
    wave: int
    kind: str  # load, store, atomic, arrival (at a barrier)
    straight: bool = False
    rank: int = 0
    until: int = NEVER
    arrivals: list[tuple[Hashable, int]] = field(default_factory=list)

    def before(self, other: Access, clock: Clock) -> bool:
        """Whether this completes before the other, whose wave has this clock, starts."""
        if any(clock.get(key, 0) >= phase for key, phase in self.arrivals):
            return True
        if self.wave == other.wave:
            return not self.straight or self.until != NEVER
        return clock.get((self.rank, self.wave), 0) >= self.until

    def excuses(self, other: Access) -> bool:
        """Whether two accesses need no order: two atomics, or an arrival at a barrier and a load,
        with which a wave polls."""
        kinds = {self.kind, other.kind}
        return kinds == {"atomic"} or ("arrival" in kinds and "store" not in kinds)


@dataclass
class SharedBytes:
    """The LDS of a workgroup: for each byte the last store or atomic, and the last loads by two
    different waves (if a third one's load races with a store, one of theirs does too). `content` is
    the value of the last store, and `alike` a bit mask of the waves that stored it; 0 if
    unknown."""

    size: int
    accesses: list[Access] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stored = np.full(self.size, -1, np.int64)
        self.loaded = np.full((2, self.size), -1, np.int64)
        self.loader = np.full(self.size, -1, np.int64)  # the wave of loaded[0]
        self.content = np.zeros(self.size, np.uint8)
        self.alike = np.zeros(self.size, np.uint64)

    def access(
        self, made: Access, places: np.ndarray, clock: Clock, data: np.ndarray | None = None
    ) -> tuple[Access, int] | None:
        """Records an access to the bytes `places` (in any shape) by a wave with this clock; `data`:
        the value of a store, if known. Returns another access that it races with, and the
        byte."""
        places, first = np.unique(places, return_index=True)
        inside = (places >= 0) & (places < self.size)
        places, first = places[inside], first[inside]
        put = None if data is None else data.ravel()[first]
        number, own = len(self.accesses), np.uint64(1 << made.wave)
        self.accesses.append(made)
        equal = self._equal(places, put)
        excused = (self.alike[places] & own) > 0 if made.kind == "load" else equal
        for table in [self.stored] if made.kind == "load" else [self.stored, *self.loaded]:
            for index in (one for one in np.unique(table[places]) if one >= 0):
                other = self.accesses[index]
                if other.before(made, clock) or made.excuses(other):
                    continue
                racing = places[(table[places] == index) & ~excused]
                if len(racing):
                    return other, int(racing[0])
        if made.kind == "load":
            moved = places[self.loader[places] != made.wave]
            self.loaded[1, moved] = self.loaded[0, moved]
            self.loaded[0, places], self.loader[places] = number, made.wave
            return None
        self.stored[places] = number
        if made.kind != "arrival":  # a later store must be ordered behind those that poll, too
            self.loaded[:, places], self.loader[places] = -1, -1
        if put is None:
            self.alike[places] = 0
        else:
            self.content[places] = put
            self.alike[places] = np.where(equal, self.alike[places] | own, own)
        return None

    def _equal(self, places: np.ndarray, put: np.ndarray | None) -> np.ndarray:
        """Tests where a store does not change the content."""
        if put is None:
            return np.zeros(len(places), bool)
        return (self.alike[places] > 0) & (self.content[places] == put)


def order(done: list[Outstanding], made: dict[Outstanding, Access], until: int) -> None:
    """Orders accesses that a wait has covered before the wave's next signal, which is number
    `until`."""
    for one in done:
        found = made.pop(one, None)
        if found is not None:
            found.until = until


def moved(detail: Detail, lanes: np.ndarray, rows: list[np.ndarray]) -> np.ndarray:
    """Returns the bytes that these lanes of a store of `rows` move: uint8[lanes, size]."""
    data = np.stack(rows, 1)[lanes]
    if detail.half == "high":
        data = data >> np.uint32(16)
    return np.ascontiguousarray(data).view(np.uint8)[:, : detail.size]


def clash(
    detail: Detail, where: Destination, rows: list[np.ndarray]
) -> tuple[int, int, int] | None:
    """Returns two lanes of a store of `rows` that store different values to one byte, and the
    byte."""
    lanes = np.flatnonzero(where.lanes)
    offsets = (where.offsets[lanes, None] + np.arange(detail.size)).ravel()
    if len(np.unique(offsets)) == len(offsets):
        return None
    data = moved(detail, lanes, rows).ravel()
    order = np.lexsort((data, offsets))
    alike = offsets[order][1:] == offsets[order][:-1]
    found = np.flatnonzero(alike & (data[order][1:] != data[order][:-1]))
    if not len(found):
        return None
    first, second = sorted(order[found[0] : found[0] + 2] // detail.size)
    return int(lanes[first]), int(lanes[second]), int(offsets[order][found[0]])
