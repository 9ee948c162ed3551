"""Barriers in LDS (gfx1250) for `--strict`: what their phases order, and who has seen them.

A word of LDS is a barrier from its first arrival until it is stored again. What a wave gets from a
barrier are the phases that a load of the word has shown to be complete; an arrival hands over what
its wave has done. What is done in order is done too: with the arrival of a tensor data move the
wave's earlier ones (Triton's f16_gemm relies on it: the second of two moves arrives), with an
asynchronous arrival its earlier copies, with an arrival of lanes its earlier accesses of LDS.

A wave that waits for the wrong phase, or for none, is right as long as the others happen to be
early. So the first load that would show a phase complete which nothing orders before it shows the
word as it may still be, at a legal moment of the same execution. A program that waits for the right
phase loads again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import numpy as np

from fly_run.emulator.semantics.cdna5.lds_barriers import PENDING, PHASES, RELOAD, WIDTH
from fly_run.emulator.strict.ordering import Barrier, Clock, Timeline, join
from fly_run.emulator.strict.races import Access

BYTES = 8
KEPT_PHASES = 2  # how many phases late a wave may be shown a barrier


@dataclass(frozen=True)
class State:
    """The word after some arrivals, and how many phases were complete then."""

    word: int
    completed: int = 0


@dataclass
class LdsBarrier:
    """`key`: in clocks, of the phases that were complete. `known` is the state before `arrivals`,
    which are the accesses that arrived since with the state after each. `shown` has the phases that
    were complete in what each wave has been shown, `behind` the waves that were shown an older
    state last."""

    key: Hashable
    known: State
    barrier: Barrier = field(default_factory=Barrier)
    arrivals: list[tuple[Access, State]] = field(default_factory=list)
    shown: dict[int, int] = field(default_factory=dict)
    behind: set[int] = field(default_factory=set)

    @property
    def now(self) -> State:
        return self.arrivals[-1][1] if self.arrivals else self.known

    def arrive(self, made: Access, clock: Clock, amounts: Iterable[int]) -> None:
        """Lanes arrive, one after the other, or a copy."""
        word, completed = self.now.word, self.now.completed
        phase = completed + 1
        for amount in amounts:
            phase = completed + 1
            self.barrier.arrive(phase, clock | {self.key: phase})
            word, complete = arrived(word, amount)
            completed += complete
        made.arrivals.append((self.key, phase))
        self.arrivals.append((made, State(word, completed)))
        while completed - self.arrivals[0][1].completed > KEPT_PHASES:
            self.known = self.arrivals.pop(0)[1]

    def load(self, made: Access, clock: Clock) -> State:
        """Returns the state that a load of the word shows."""
        oldest, now = self.known, self.now
        for access, after in reversed(self.arrivals):
            if access.before(made, clock):
                oldest = after
                break
        seen, late = self.shown.get(made.wave, 0), made.wave in self.behind
        if late or not seen <= oldest.completed < now.completed:
            oldest = now
            self.behind.discard(made.wave)
        else:
            self.behind.add(made.wave)
        self.shown[made.wave] = oldest.completed
        return oldest


class LdsBarriers:
    """The barriers in the LDS of a workgroup, by address."""

    def __init__(self, rank: int, size: int) -> None:
        self._rank, self._count = rank, 0
        self._found: dict[int, LdsBarrier] = {}
        self._covered = np.zeros(size, bool)  # bytes that belong to one

    def arrive(
        self,
        made: Access,
        timeline: Timeline,
        arrivals: Iterable[tuple[int, int]],
        before: Iterable[Access],
        lds: np.ndarray,
    ) -> None:
        """`arrivals`: an address in `lds` and an amount for each lane; `before`: accesses of the
        wave that are done before this one, if nothing else says so."""
        amounts: dict[int, list[int]] = {}
        for address, amount in arrivals:
            if address % BYTES == 0 and 0 <= address <= len(lds) - BYTES:
                amounts.setdefault(address, []).append(amount)
        earlier = list(before)
        for address, many in amounts.items():
            barrier = self._found.get(address) or self._begin(address, lds)
            first = barrier.now.completed + 1
            barrier.arrive(made, timeline.hand_over(), many)
            for access in earlier:
                access.arrivals.append((barrier.key, first))

    def _begin(self, address: int, lds: np.ndarray) -> LdsBarrier:
        self._count += 1
        word = int.from_bytes(lds[address : address + BYTES].tobytes(), "little")
        made = LdsBarrier((self._rank, "LDS", address, self._count), State(word))
        self._covered[address : address + BYTES] = True
        self._found[address] = made
        return made

    def store(self, places: np.ndarray) -> None:
        """Bytes are stored: a barrier that they belong to ends."""
        for address in self._at(places):
            self._covered[address : address + BYTES] = False
            del self._found[address]

    def load(
        self, made: Access, clock: Clock, places: np.ndarray
    ) -> list[tuple[int, State, Clock]]:
        """Returns, for each barrier of which bytes are loaded, its address, the state to show, and
        what the wave gets when the load is done."""
        shown = []
        for address in self._at(places):
            barrier = self._found[address]
            seen = barrier.load(made, clock)
            gets = dict(barrier.barrier.after(seen.completed))
            join(gets, {barrier.key: seen.completed})
            shown.append((address, seen, gets))
        return shown

    def _at(self, places: np.ndarray) -> list[int]:
        if not self._found:
            return []
        inside = places[(places >= 0) & (places < len(self._covered))]
        return np.unique(inside[self._covered[inside]] & -BYTES).tolist()


def arrived(word: int, amount: int) -> tuple[int, bool]:
    """Returns the word after an arrival (`semantics.cdna5.lds_barriers`), and whether it completes
    the phase."""
    pending, phase, reload = word & PENDING, word >> WIDTH & PHASES, word >> 32 & RELOAD
    amount &= 0xFFFF_FFFF
    over = amount > pending
    pending, phase = (reload, phase - 1 & PHASES) if over else (pending - amount, phase)
    return pending | phase << WIDTH | reload << 32, over
