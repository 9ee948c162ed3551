"""Rows that the blocks of a cluster share: which one they take, and how they combine numbers.

A barrier of the cluster would wait for all of a thread's stores, those of results too. Here each
warp sends its numbers to the shared memory of all blocks, where each warp reads them: a word has a
number of 32 bits and the count of the exchange, and readers wait for the count. Nothing else is
ordered, nor needs to be. No block reads another one's memory, so that it may end when it has its
results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import fly.expr as fx
from fly.kernels.approximations import reciprocal
from fly.kernels.row_plans import Plan

if TYPE_CHECKING:
    from fly.kernels.rows import Line, Row

LANES = 32  # of a warp
TURNS = 4  # rows whose numbers are exchanged meanwhile
NUMBERS = 5  # that are exchanged of a row, at most
SCOPE = "device"  # of accesses to the words, which blocks share


def first_row(plan: Plan) -> Any:
    """The number of the block's first row: of the block, or of its cluster."""
    return fx.block_idx.x if plan.cluster == 1 else fx.cluster.idx.x


class Exchange:
    """Exchanges of a cluster's blocks. `count` is the number of rows that the block has taken
    before.

    Each number of a row has words of its own, which are used again `TURNS` rows later. A warp that
    sends its number of row i has those of row i - 2, or of a later one, from all warps. They have
    sent these, at the latest, before they read what they need of row i - 3, and so they have read
    all of row i - 4.
    """

    def __init__(self, plan: Plan):
        """Tells the cluster that this block has begun."""
        self.plan, self.has_begun = plan, False
        self.next_row(fx.Int32(0))
        self.warps = plan.threads // LANES
        self.size = plan.cluster * self.warps  # a power of two, as threads and blocks are
        self.turns = TURNS if plan.ahead else 1
        count = self.turns * NUMBERS * self.size
        self.words = fx.shared_array(fx.Uint64, count)
        for first in fx.range_constexpr(0, count, plan.threads):
            place = first + fx.thread_idx.x
            if place < count:
                self.words[place] = 0
        fx.cluster.arrive()

    def begin(self) -> None:
        """Waits until all blocks of the cluster have begun, the first time."""
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
        """Stores a warp's numbers to all blocks."""
        self.begin()
        first = self._first(self.sent, len(numbers))
        self.sent += len(numbers)
        tag = (self.count + 1).to(fx.Uint64) << 32
        place = first + fx.cluster.rank() * self.warps + fx.thread_idx.x // LANES
        # Of the thread's number, which LLVM does not know to be less in the branch: addresses of
        # blocks that there are not would be taken before it.
        to = fx.cluster.remote(self.words, fx.thread_idx.x % self.plan.cluster)
        if fx.lane_id() < self.plan.cluster:
            for i, one in enumerate(numbers):
                word = tag | one.bitcast(fx.Uint32).to(fx.Uint64)
                fx.atomic_store(to, place + i * self.size, word, scope=SCOPE)

    def received(self, types: list[Any]) -> list[Any]:
        """All warps' numbers, as tuples: a lane has those of every 32nd warp."""
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


def moments(row: Row, x: Line, *others: Line) -> tuple[Any, ...]:
    """The mean and the variance of a row that a cluster shares, for all threads, by one exchange;
    of each other line its mean, and that of its products with x less its mean."""
    send_moments(row, x, *others)
    return received_moments(row, len(others))


def send_moments(row: Row, x: Line, *others: Line) -> None:
    """The first half of `moments`. Warps take their own means off, so that no digits are lost, and
    what they have then is taken to the mean of all (Chan, Golub and LeVeque, 1979)."""
    (total,) = row.own_sums(x)
    size = row.own_sums(row.ones())[0] if not row.plan.whole else fx.Float32(0)
    total, size = fx.warp.reduce((total, size))
    if row.plan.whole:
        size = fx.Float32(row.plan.share // row.exchange.warps)
    near = total / fx.max(size, 1)
    away = row.map(lambda x: x - near, x)
    with fx.fastmath("contract"):
        products = [row.map(lambda x, y: x * y, away, one) for one in (away, *others)]
    sums = fx.warp.reduce(row.own_sums(*products, *others))
    given = [total] if row.plan.whole else [total, size]
    row.exchange.send((*given, *sums))


def received_moments(row: Row, others: int) -> tuple[Any, ...]:
    """The second half of `moments`, with so many other lines."""
    exchange = row.exchange
    found = exchange.received([fx.Float32] * (2 + 2 * others + (not row.plan.whole)))
    (whole,) = exchange.over_warps([(one[0],) for one in found])
    each = fx.Float32(row.plan.share // exchange.warps)
    per = reciprocal(fx.Float32(row.columns))
    mean = whole * per

    def moved(total, *own):
        """A warp's sums, with respect to the mean of all."""
        count, own = (each, own) if row.plan.whole else (own[0], own[1:])
        shift = total / fx.max(count, 1) - mean
        square, *along = own[: 1 + others]
        plain = own[1 + others :]
        with fx.fastmath("contract"):
            square += count * shift * shift
            along = [one + shift * other for one, other in zip(along, plain, strict=True)]
        return square, *along, *plain

    square, *rest = exchange.over_warps([moved(*one) for one in found])
    along, plain = rest[:others], rest[others:]
    return (
        mean,
        square * per,
        *[one * per for pair in zip(plain, along, strict=True) for one in pair],
    )


def _is_missing(words: list[Any], tag: Any) -> Any:
    """Whether a word is not of this row."""
    found = (words[0] >> 32).to(fx.Uint32) ^ tag
    for word in words[1:]:
        found |= (word >> 32).to(fx.Uint32) ^ tag
    return found != 0


def _combined(op: str, one: Any, other: Any) -> Any:
    return one + other if op == "add" else fx.max(one, other)
