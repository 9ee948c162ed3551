"""Layouts without `fly_dialect`: a layout here is a shape and a stride of nested Python integers,
and its function is evaluated coordinate by coordinate. Includes strategies that generate such
layouts.

`Known` is a leaf that carries a number besides the static knowledge about it, as a pass's leaf
carries an SSA value: the algebra can run on leaves with unknown values, and its result be
evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product as pairs
from math import gcd, prod

from fly_dialect.layouts.integers import Basis, Int
from fly_dialect.layouts.layout import Layout
from hypothesis import strategies as st
from index_functions import flat, offsets, size


def coordinates(shape):
    """Returns all coordinates of a shape that index each leaf."""
    if not isinstance(shape, tuple):
        return list(range(shape))
    return [tuple(part) for part in pairs(*map(coordinates, shape))]


def compact(shape, start=1):
    """Returns the strides of a shape without gaps, the first mode varying fastest."""
    if not isinstance(shape, tuple):
        return start
    strides = []
    for extent in shape:
        strides.append(compact(extent, start))
        start *= size(extent)
    return tuple(strides)


# -- to and from the data of fly_dialect ----------------------------------------------------------
def layout(shape, stride):
    return Layout(shape, stride)


def plain(tree):
    """Converts a tree of leaves to nested Python integers."""
    if isinstance(tree, tuple):
        return tuple(map(plain, tree))
    assert not isinstance(tree, Basis)
    if isinstance(tree, Int):
        assert tree.value is not None
    return tree.value


def meant(result):
    """Returns shape and stride of a layout as nested Python integers."""
    assert isinstance(result, Layout), type(result)
    return plain(result.shape), plain(result.stride)


def meant_offsets(result):
    return offsets(*meant(result))


# -- leaves that carry a number -------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Known:
    """A number and what the algebra may know of it. Raises an error if that knowledge is wrong."""

    value: int
    type: Int

    def __post_init__(self):
        assert isinstance(self.type, Int)
        if self.type.value is not None:
            assert self.type.value == self.value, self
        else:
            assert self.value % self.type.divisibility == 0, self
            assert abs(self.value) < 2 ** (self.type.width - 1), self

    def __str__(self):
        return str(self.type)

    def constant(self, value):
        return Known(value.value, value)

    def _of(self, other, value, type_):
        assert isinstance(other, Known), "both operands are leaves of one class"
        return Known(value, type_)

    def __add__(self, other):
        return self._of(other, self.value + other.value, self.type + other.type)

    def __sub__(self, other):
        return self._of(other, self.value - other.value, self.type - other.type)

    def __mul__(self, other):
        return self._of(other, self.value * other.value, self.type * other.type)

    def __floordiv__(self, other):
        return self._of(other, self.value // other.value, self.type // other.type)

    def __mod__(self, other):
        return self._of(other, self.value % other.value, self.type % other.type)

    def ceildiv(self, other):
        return self._of(other, -(-self.value // other.value), self.type.ceildiv(other.type))

    def minimum(self, other):
        return self._of(other, min(self.value, other.value), self.type.minimum(other.type))

    def widened(self):
        return Known(self.value, self.type.widened())

    def swizzled(self, swizzle):
        high = self.value >> (swizzle.base + swizzle.shift)
        bits = (high & ((1 << swizzle.mask) - 1)) << swizzle.base
        return Known(self.value ^ bits, self.type.swizzled(swizzle))

    def less(self, other):
        return self._of(other, int(self.value < other.value), self.type.less(other.type))

    def equals(self, other):
        return self._of(other, int(self.value == other.value), self.type.equals(other.type))

    def both(self, other):
        truth = int(self.value != 0 and other.value != 0)
        return self._of(other, truth, self.type.both(other.type))


def hidden(draw, tree):
    """Returns the tree with `Known` leaves, some dynamic: 32 or 64 bits, and a divisor."""
    if isinstance(tree, tuple):
        return tuple(hidden(draw, part) for part in tree)
    kind = draw(st.sampled_from(["static", "static", "i32", "i64"]))
    if kind == "static":
        return Known(tree, Int(tree))
    divisor = gcd(tree, draw(st.sampled_from([1, 2, 3, 4, 8]))) if tree else 1
    return Known(tree, Int(None, 64 if kind == "i64" else 32, divisor))


def hidden_layout(draw, shape, stride):
    return Layout(hidden(draw, shape), hidden(draw, stride))


# -- strategies -----------------------------------------------------------------------------------
extents = st.sampled_from([1, 2, 2, 3, 4, 4, 5, 6, 8])


def trees(leaf, most=4):
    return st.recursive(
        leaf, lambda part: st.lists(part, min_size=1, max_size=3).map(tuple), max_leaves=most
    )


shapes = trees(extents).filter(lambda shape: size(shape) <= 400)


def like(tree, leaf):
    """Returns trees of the same structure with other leaves."""
    if isinstance(tree, tuple):
        return st.tuples(*(like(part, leaf) for part in tree))
    return leaf


strides = st.sampled_from([0, 1, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 40])
# Any layout: gaps, overlaps, broadcasts.
layouts = shapes.flatmap(lambda shape: st.tuples(st.just(shape), like(shape, strides)))


@st.composite
def permuted(draw, gaps=False, shape=shapes):
    """A layout whose modes are compact in any order; with `gaps`, with padding between them."""
    found = draw(shape)
    leaves = flat(found)
    order = draw(st.permutations(range(len(leaves))))
    steps, step = [0] * len(leaves), 1
    for index in order:
        if gaps:
            step *= draw(st.sampled_from([1, 1, 2, 3]))
        steps[index] = step
        step *= leaves[index]
    remaining = iter(steps)

    def filled(part):
        return tuple(map(filled, part)) if isinstance(part, tuple) else next(remaining)

    return found, filled(found)


def divisors(number):
    return st.sampled_from([d for d in range(1, number + 1) if number % d == 0])


@st.composite
def walked_mode(draw, leaves):
    """A count and a stride that traverse flat modes without splitting one."""
    first = draw(st.integers(0, len(leaves) - 1))
    step = draw(divisors(leaves[first]))
    stride = prod(leaves[:first]) * step
    count = leaves[first] // step
    more = draw(st.integers(first, len(leaves) - 1))
    if more == first:
        return draw(divisors(count)), stride
    count *= prod(leaves[first + 1 : more])
    return count * draw(divisors(leaves[more])), stride


@st.composite
def walks(draw, shape):
    """A layout whose modes traverse those of `shape` without splitting one."""
    modes = draw(st.lists(walked_mode(flat(shape)), min_size=1, max_size=2))
    while prod(count for count, _ in modes) > 400:
        modes.pop()
    if len(modes) == 1:
        return modes[0]
    return tuple(count for count, _ in modes), tuple(stride for _, stride in modes)
