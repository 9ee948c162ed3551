"""Rotary position embedding (Su et al., "RoFormer", arXiv:2104.09864).

The first elements of a row are pairs, each rotated by its own angle: elements i and i + pairs, or,
interleaved, 2i and 2i + 1. What follows the pairs stays as it is. A thread takes 16 elements of a
row: eight pairs, or 16 adjacent elements behind them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import fly.expr as fx
from fly.kernels.attention.vectors import WIDTH, load_stored, store_vector
from fly.kernels.mixed_precision import in_order, one_by_one, rounds_elements

ITEM = 2 * WIDTH  # elements of a thread
THREADS, LANES = 256, 64  # of a block, and of a wave
EVEN, ODD = list(range(0, ITEM, 2)), list(range(1, ITEM, 2))
ALTERNATING = [place for i in range(WIDTH) for place in (i, i + WIDTH)]


class Rotation(NamedTuple):
    """How rows of d elements are rotated: `pairs` of them, interleaved or not."""

    d: int
    pairs: int
    interleaved: bool

    @property
    def items(self) -> int:
        """The threads of a row."""
        return self.d // ITEM

    def paired(self, item: Any) -> Any:
        """Whether the thread's elements are pairs."""
        return 2 * self.pairs == self.d or item * WIDTH < self.pairs

    def places(self, item: Any) -> tuple[Any, Any]:
        """Where the thread's two vectors are in a row."""
        apart = not self.interleaved and self.paired(item)
        first = fx.where(apart, item * WIDTH, item * ITEM)
        return first, first + fx.where(apart, self.pairs, WIDTH)

    def apply(self, item: Any, held: Item, cos: Any, sin: Any, in_turn: bool = False) -> Item:
        """The thread's elements, rotated by the angles of a row of cosines and one of sines."""
        if not self.paired(item):
            return held
        angles = [load_stored(one, item * WIDTH) for one in (cos, sin)]
        return self.turned(held, *angles, in_turn)

    def turned(self, held: Item, c: Any, s: Any, in_turn: bool = False) -> Item:
        """Pairs, rotated by the angles of these cosines and sines. in_turn: on AMD, the second
        numbers of pairs are computed behind the first ones, which takes fewer registers."""
        x, y, dtype = held.a, held.b, held.a.dtype
        if self.interleaved:
            x, y = x.shuffle(y, EVEN), x.shuffle(y, ODD)
        if rounds_elements(dtype, fx.Float32, [dtype]):
            first = one_by_one(first_rotated, x, y, c, s)
            if in_turn:
                in_order()
            x, y = first, one_by_one(second_rotated, x, y, c, s)
        else:
            x, y, c, s = [one.to(fx.Float32) for one in (x, y, c, s)]
            x, y = [(one - two).to(dtype) for one, two in ((x * c, y * s), (x * s, -y * c))]
        if self.interleaved:
            x, y = x.shuffle(y, ALTERNATING[:WIDTH]), x.shuffle(y, ALTERNATING[WIDTH:])
        return Item(x, y)

    def threads(self, heads: int) -> int:
        """The threads of a block for so many heads: whole waves, no more than it has work for."""
        return max(LANES, min(THREADS, -(-heads * self.items // LANES) * LANES))


class Item(NamedTuple):
    """A thread's elements: two vectors, of the type of the row."""

    a: Any
    b: Any

    @classmethod
    def load(cls, row: Any, places: tuple[Any, Any]) -> Item:
        """Those of a row."""
        return cls(*[load_stored(row, place) for place in places])

    def store(self, row: Any, places: tuple[Any, Any]) -> None:
        """Stores them in a row."""
        for vector, place in zip(self, places, strict=True):
            store_vector(row, place, vector)


def first_rotated(x: Any, y: Any, c: Any, s: Any) -> Any:
    """The first number of a pair, by its cosine and sine: x·c - y·s."""
    return fx.fma(x, c, -fx.fma(y, s, 0.0))


def second_rotated(x: Any, y: Any, c: Any, s: Any) -> Any:
    """The second number of a pair: x·s + y·c."""
    return fx.fma(x, s, fx.fma(y, c, 0.0))
