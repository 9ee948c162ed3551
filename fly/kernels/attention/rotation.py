"""Rotary position embedding (Su et al., "RoFormer", arXiv:2104.09864).

The first elements of a row are pairs, each rotated by its own angle: elements i and i + pairs, or,
interleaved, 2i and 2i + 1. What follows the pairs stays as it is. A thread takes `width` pairs of a
row, or twice as many adjacent elements behind the pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import fly.expr as fx
from fly.kernels.attention.vectors import WIDTH, load_stored, store_vector
from fly.kernels.mixed_precision import in_order, one_by_one, rounds_elements

ITEM = 2 * WIDTH  # of which numbers of elements are multiples
THREADS, LANES = 256, 64  # of a block, and of a wave
HELD = 1 << 18  # threads that a device holds, at least


def width_for(elements: int) -> int:
    """The pairs of a thread where so many elements are taken. One, if a device can hold all threads
    then: more of them wait for memory at the same time. Otherwise eight, in the widest accesses."""
    return 1 if elements <= 2 * HELD else WIDTH


class Rotation(NamedTuple):
    """How rows of d elements are rotated: `pairs` of them, interleaved or not. A thread takes two
    vectors of `width`, a power of two up to 8."""

    d: int
    pairs: int
    interleaved: bool
    width: int = WIDTH

    @property
    def items(self) -> int:
        """The threads of a row."""
        return self.d // (2 * self.width)

    def paired(self, item: Any) -> Any:
        """Whether the thread's elements are pairs."""
        return 2 * self.pairs == self.d or item * self.width < self.pairs

    def places(self, item: Any) -> tuple[Any, Any]:
        """Where the thread's first vector is in a row, and how far behind it the second one is."""
        halves = not self.interleaved and self.paired(item)
        first = fx.where(halves, item * self.width, item * (2 * self.width))
        return first, fx.where(halves, self.pairs, self.width)

    def load(self, row: Any, places: tuple[Any, Any]) -> Item:
        """The thread's elements of a row."""
        own = from_place(row, places[0])
        return Item(*[load_stored(own, place, self.width) for place in (0, places[1])])

    def apply(self, item: Any, held: Item, cos: Any, sin: Any, in_turn: bool = False) -> Item:
        """The thread's elements, rotated by the angles of a row of cosines and one of sines."""
        if not self.paired(item):
            return held
        if self.width == 1:
            cos, sin = map(apart, (cos, sin))
        angles = [load_stored(one, item * self.width, self.width) for one in (cos, sin)]
        return self.turned(held, *angles, in_turn)

    def turned(self, held: Item, c: Any, s: Any, in_turn: bool = False) -> Item:
        """Pairs, rotated by the angles of these cosines and sines. in_turn: on AMD, the second
        numbers of pairs are computed behind the first ones, which takes fewer registers."""
        x, y, dtype = held.a, held.b, held.a.dtype
        count = 2 * self.width
        if self.interleaved:
            x, y = (x.shuffle(y, [*range(one, count, 2)]) for one in (0, 1))
        if rounds_elements(dtype, fx.Float32, [dtype]):
            first = one_by_one(first_rotated, x, y, c, s)
            if in_turn:
                in_order()
            x, y = first, one_by_one(second_rotated, x, y, c, s)
        else:
            x, y, c, s = [one.to(fx.Float32) for one in (x, y, c, s)]
            x, y = [(one - two).to(dtype) for one, two in ((x * c, y * s), (x * s, -y * c))]
        if self.interleaved:
            order = [place for i in range(self.width) for place in (i, i + self.width)]
            x, y = x.shuffle(y, order[: self.width]), x.shuffle(y, order[self.width :])
        return Item(x, y)

    def threads(self, heads: int, kv_heads: int) -> int:
        """The threads of a block for the heads of q, and of k and v, of a token: whole waves, no
        more than it has work for."""
        most = kv_heads if self.width == 1 else heads + 2 * kv_heads
        return max(LANES, min(THREADS, -(-most * self.items // LANES) * LANES))


class Item(NamedTuple):
    """A thread's elements: two vectors, of the type of the row."""

    a: Any
    b: Any

    def store(self, row: Any, places: tuple[Any, Any]) -> None:
        """Stores them in a row."""
        own = from_place(row, places[0])
        for vector, place in zip(self, (0, places[1]), strict=True):
            store_vector(own, place, vector)


def apart(row: Any) -> Any:
    """A row whose start is computed without places in it, which layouts would add first: it is the
    same for all threads, and in registers of the wave."""
    return fx.make_view(fx.recast_iter(row.dtype, fx.get_iter(row)), fx.get_layout(row))


def from_place(row: Any, place: Any) -> Any:
    """A row from a place on. What is at a constant distance has the same address in registers."""
    return fx.make_view(fx.get_iter(row) + place, fx.make_layout(1, 1))


def first_rotated(x: Any, y: Any, c: Any, s: Any) -> Any:
    """The first number of a pair, by its cosine and sine: x·c - y·s."""
    return fx.fma(x, c, -fx.fma(y, s, 0.0))


def second_rotated(x: Any, y: Any, c: Any, s: Any) -> Any:
    """The second number of a pair: x·s + y·c."""
    return fx.fma(x, s, fx.fma(y, c, 0.0))
