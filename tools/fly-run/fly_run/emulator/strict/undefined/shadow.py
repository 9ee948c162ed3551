"""Shadow memory: the undefined bits of a wave's registers and memories.

Registers and private memory start undefined, except for those that the hardware sets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fly_run.emulator import state
from fly_run.emulator.strict.dataflow import Place
from fly_run.emulator.strict.undefined.definedness import ALL_32, U64, WIDTHS, ones

SHARED, PRIVATE = -1, -2  # origins that are not offsets in the wave state


@dataclass(frozen=True)
class Use:
    """A use of an undefined value that affects the result: what it decides, in which lane (None: in
    the whole wave), and its origin (Shadow)."""

    what: str
    lane: int | None
    origin: int


class Memory:
    """The shadow of LDS, or of the lanes' private memory with a row each: the undefined bits of
    `bytes`, and for each dword the origin of its undefined value: a register's offset in the wave
    state, or the memory itself (`origin`) if nothing was stored."""

    def __init__(self, shape: tuple[int, ...], origin: int):
        *rows, size = shape
        self.bytes = np.full(shape, 0xFF, np.uint8)
        self.origins = np.full((*rows, -(-size // 4)), origin, np.int32)


class Shadow:
    """The shadow of a wave: `bits` has a u32 for each dword of the wave state up to `end`, in which
    1 is undefined; `origins` has the origin of an undefined dword's value: a register's offset in
    the wave state, SHARED or PRIVATE; `private` is the shadow of the lanes' memory. `lanes` is the
    width of the wave."""

    def __init__(self, end: int, scratch: int, lanes: int):
        self.bits = np.zeros(end // 4, np.uint32)
        self.origins = np.zeros(end // 4, np.int32)
        self.private = Memory((state.LANES, scratch), PRIVATE)
        self.lanes = lanes
        self.end = end

    def start(self, scalars: int, vectors: int = 1) -> None:
        """Sets the initial state of a wave: `scalars` scalar and `vectors` vector registers, EXEC
        and the trap handler's registers are defined."""
        self.bits[:] = 0
        self.bits[scalars : state.M0 // 4 + 1] = ALL_32
        self.bits[102:106] = self.bits[108:124] = 0
        rows = self.bits[(state.VGPR + vectors * state.ROW) // 4 :].reshape(-1, state.LANES)
        rows[:, : self.lanes] = ALL_32
        self.bits[state.SCC // 4] = ALL_32
        words = np.arange(len(self.bits), dtype=np.int32) * 4
        firsts = state.VGPR + (words - state.VGPR) // state.ROW * state.ROW
        self.origins[:] = np.where(words >= state.VGPR, firsts, words)

    def row(self, word: int) -> slice:
        """Returns the slice of the row of lanes at this offset in the wave state."""
        return slice(word // 4, word // 4 + state.LANES)

    def read(self, place: Place) -> np.ndarray:
        """Returns the shadow bits of a place, as u64 for each lane, or for all together."""
        if place.offset >= self.end:  # a constant
            return np.zeros(1, U64)
        if place.element == "mask":
            words = np.zeros(2, np.uint32)
            at = place.offset // 4
            words[: place.count] = self.bits[at : at + place.count]
            return np.unpackbits(words.view(np.uint8), bitorder="little").astype(U64)
        total = np.zeros(state.LANES if place.lanes else 1, U64)
        for number, word in enumerate(place.words()):
            part = self.bits[self.row(word)] if place.lanes else self.bits[word // 4]
            # For more than two dwords, resources or data, callers only test whether any bit is set.
            total = total | np.asarray(part, U64) << U64(32 * (number % 2))
        return total & ones(WIDTHS[place.element] if place.count == 1 else 64)

    def origin(self, places: tuple[Place, ...], lane: int | None = None) -> int:
        """Returns the origin of the first undefined value in the places, in one lane if given."""
        for place in places:
            for word in place.words() if place.offset < self.end else ():
                where = self.row(word) if place.lanes else slice(word // 4, word // 4 + 1)
                if place.lanes and lane is not None:
                    where = slice(word // 4 + lane, word // 4 + lane + 1)
                found = np.flatnonzero(self.bits[where])
                if len(found):
                    return int(self.origins[where][found[0]])
        return 0

    def origins_of(self, place: Place) -> np.ndarray:
        """Returns the origins of a place's undefined values, i32 for each lane, or for all
        together; of several dwords, that of the first undefined one."""
        if place.element == "mask" or not place.lanes:
            return np.array([self.origin((place,))], np.int32)
        found = np.zeros(state.LANES, np.int32)
        for word in reversed(place.words()):
            row = self.row(word)
            found = np.where(self.bits[row] != 0, self.origins[row], found)
        return found

    def write(
        self,
        place: Place,
        bits: np.ndarray,
        active: np.ndarray,
        origin: np.ndarray | int,
        keep: bool = False,
    ) -> None:
        """Sets the shadow of a place, and the origins of its undefined values: for each lane, or
        one for all. `keep` preserves the upper halves of registers."""
        origin = np.asarray(origin, np.int32).reshape(-1)
        if place.element == "mask":
            lanes = np.zeros(state.LANES, bool)
            lanes[:] = (bits != 0) & active
            words = np.packbits(lanes, bitorder="little").view(np.uint32)[: self.lanes // 32]
            at = place.offset // 4
            self.bits[at : at + len(words)] = words
            first = np.flatnonzero(lanes)
            origins = np.broadcast_to(origin, lanes.shape)
            self.origins[at : at + len(words)] = origins[first[0]] if len(first) else 0
            return
        for number, word in enumerate(place.words()):
            part = (bits >> U64(32 * number) & U64(ALL_32)).astype(np.uint32)
            if not place.lanes:
                self.bits[word // 4], self.origins[word // 4] = part[0], _first(origin)
                continue
            row, origins = self.bits[self.row(word)], self.origins[self.row(word)]
            part = np.broadcast_to(part, row.shape)
            changed = active & (part != 0)
            if keep:
                changed = active & (part & np.uint32(0xFFFF) != 0)
                part = (row & np.uint32(0xFFFF_0000)) | (part & np.uint32(0xFFFF))
            row[active] = part[active]
            origins[changed] = np.broadcast_to(origin, row.shape)[changed]


def _first(origins: np.ndarray) -> int:
    """Returns the first valid origin."""
    found = np.flatnonzero(origins)
    return int(origins[found[0]]) if len(found) else 0
