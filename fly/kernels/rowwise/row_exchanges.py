"""How the warps that have a row combine numbers: those of a block, or of a cluster's blocks.

A barrier of a cluster would wait for all of a thread's stores, those of results too. Here each warp
sends its numbers to the shared memory of all blocks, where each warp reads them: a word has a
number of 32 bits and the count of the row, and readers wait for the count. Nothing else is ordered,
nor needs to be. No block reads another one's memory, so that it may end when it has its results;
and a warp that has sent its numbers may compute something else meanwhile (`each_row_in_two`).
"""

from __future__ import annotations

from typing import Any

import fly.expr as fx
from fly.kernels.rowwise.row_plans import Plan

LANES = 32  # of a warp
TURNS = 4  # rows whose numbers are exchanged meanwhile
NUMBERS = 5  # that are exchanged of a row, at most
SCOPE = "device"  # of accesses to the words, which blocks share


def first_row(plan: Plan) -> Any:
    """The number of the block's first row: of the block, or of its cluster."""
    return fx.block_idx.x if plan.cluster == 1 else fx.cluster.idx.x


class Exchange:
    """Exchanges of a block's warps, or of a cluster's. `count` is the number of rows that the block
    has taken before.

    Each number of a row has words of its own, which are used again `TURNS` rows later. A warp that
    sends its number of row i has those of row i - 2, or of a later one, from all warps. They have
    sent these, at the latest, before they read what they need of row i - 3, and so they have read
    all of row i - 4.
    """

    def __init__(self, plan: Plan):
        """Tells the cluster, if there is one, that this block has begun."""
        self.plan, self.has_begun = plan, False
        self.next_row(fx.Int32(0))
        self.warps = plan.threads // LANES
        self.size = plan.cluster * self.warps
        assert self.size & (self.size - 1) == 0, "lanes take the words of as many warps each"
        self.turns = TURNS if plan.ahead else 1
        count = self.turns * NUMBERS * self.size
        self.words = fx.shared_array(fx.Uint64, count)
        for first in fx.range_constexpr(0, count, plan.threads):
            place = first + fx.thread_idx.x
            if place < count:
                self.words[place] = 0
        fx.cluster.arrive()

    def begin(self) -> None:
        """Waits until all threads have begun, the first time."""
        if not self.has_begun:
            fx.cluster.wait()
        self.has_begun = True

    def next_row(self, count: Any) -> None:
        """Begins with the exchanges of a row."""
        self.count, self.sent, self.taken = count, 0, 0

    def reduce(self, value: Any, op: str) -> Any:
        """Numbers of 32 bits of each thread, combined over the cluster, for all threads: a number
        or a tuple. op: "add" or "max". The order is fixed: all threads get the same bits."""
        several = value if isinstance(value, tuple) else (value,)
        own = fx.warp.reduce(several, op)
        self.send(own)
        made = self.over_warps(self.received([one.dtype for one in own]), op)
        return made if isinstance(value, tuple) else made[0]

    def over_warps(self, found: list[tuple[Any, ...]], op: str = "add") -> tuple[Any, ...]:
        """What `received` returned, or what was made of it, combined."""
        made = found[0]
        for other in found[1:]:
            made = tuple(_combined(op, a, b) for a, b in zip(made, other, strict=True))
        return fx.warp.reduce(made, op, width=self.size if self.size < LANES else None)

    def _first(self, used: int, count: int) -> Any:
        """The place of the words of so many numbers of the row, behind those that it has used."""
        assert used + count <= NUMBERS, f"a row has {NUMBERS} numbers to exchange, at most"
        return (self.count % self.turns * NUMBERS + used) * self.size

    def send(self, numbers: Any) -> None:
        """Stores a warp's numbers of 32 bits to all blocks."""
        self.begin()
        first = self._first(self.sent, len(numbers))
        self.sent += len(numbers)
        tag = (self.count + 1).to(fx.Uint64) << 32
        place = first + fx.cluster.rank() * self.warps + fx.thread_idx.x // LANES
        to, blocks = self.words, self.plan.cluster
        if blocks > 1:
            # Of the thread's number, which LLVM does not know to be less in the branch: addresses
            # of blocks that there are not would be taken before it.
            to = fx.cluster.remote(to, fx.thread_idx.x % blocks)
        if fx.lane_id() < blocks:
            for i, one in enumerate(numbers):
                word = tag | one.bitcast(fx.Uint32).to(fx.Uint64)
                fx.atomic_store(to, place + i * self.size, word, scope=SCOPE)

    def received(self, types: list[Any]) -> list[tuple[Any, ...]]:
        """All warps' numbers, as tuples: a lane has those of every 32nd warp, or if there are less,
        those of one."""
        first = self._first(self.taken, len(types))
        self.taken += len(types)
        tag = (self.count + 1).to(fx.Uint32)
        places = [
            first + i * self.size + (other + fx.lane_id()) % self.size
            for other in fx.range_constexpr(0, self.size, LANES)
            for i in fx.range_constexpr(len(types))
        ]
        words = [fx.atomic_load(self.words, place, scope=SCOPE) for place in places]
        while _is_missing(words, tag):
            words = [fx.atomic_load(self.words, place, scope=SCOPE) for place in places]
        numbers = [
            word.to(fx.Uint32).bitcast(types[i % len(types)]) for i, word in enumerate(words)
        ]
        return [tuple(numbers[i : i + len(types)]) for i in range(0, len(numbers), len(types))]


def _is_missing(words: list[Any], tag: Any) -> Any:
    """Whether a word is not of this row."""
    found = (words[0] >> 32).to(fx.Uint32) ^ tag
    for word in words[1:]:
        found |= (word >> 32).to(fx.Uint32) ^ tag
    return found != 0


def _combined(op: str, one: Any, other: Any) -> Any:
    return one + other if op == "add" else fx.max(one, other)
