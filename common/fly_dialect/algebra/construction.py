"""Layouts made of shapes, orders and other layouts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from fly_dialect.algebra import leaf
from fly_dialect.algebra.arithmetic import product
from fly_dialect.algebra.structure import modes, transform
from fly_dialect.layouts.int_tuple import Tree, rank, static_value, text
from fly_dialect.layouts.integers import Basis, Int
from fly_dialect.layouts.layout import Layout


def compact(shape: Tree, start: Tree = Int(1)) -> Tree:
    """The strides of a shape whose first mode is the fastest, from `start` on."""
    return _compact(shape, start)[0]


def _compact(shape: Tree, start: Tree) -> tuple[Tree, Tree]:
    """The strides, and the size they span."""
    if not isinstance(shape, tuple):
        return start, leaf.multiply(start, shape)
    strides = []
    for extent in shape:
        stride, start = _compact(extent, start)
        strides.append(stride)
    return tuple(strides), start


def make_ordered_layout(shape: Tree, order: Tree) -> Layout:
    """The compact layout whose modes are as fast as `order` says: of (0,1) the first, of (1,0)
    the second. What of the order is dynamic comes after what is static, from left to right."""
    for one, other in combinations(_places(shape, order), 2):
        if one.number is not None and one.number == other.number and not (one.one or other.one):
            raise ValueError(
                f"order {text(order)} gives two modes of {text(shape)} the same position"
            )
    return Layout(shape, ordered_strides(shape, order))


def ordered_strides(shape: Tree, order: Tree) -> Tree:
    """The strides of the compact layout in that order; from left to right where it is equal."""
    places = _places(shape, order)
    index = -1

    def strides(part: Tree, at: Tree) -> Tree:
        nonlocal index
        if isinstance(at, tuple):
            return tuple(map(strides, modes(part), at))
        index += 1
        start: Tree = Int(1)
        for other, place in enumerate(places):
            if _before(place, other, places[index], index):
                start = leaf.multiply(start, place.size)
        return compact(part, start)

    return strides(shape, order)


@dataclass(frozen=True, slots=True)
class _Place:
    """What a leaf of the order says: its number, if it is known, and the size of what it orders."""

    number: int | None
    size: Tree

    @property
    def one(self) -> bool:
        return leaf.is_one(self.size)


def _places(shape: Tree, order: Tree) -> list[_Place]:
    if not isinstance(order, tuple):
        number = order.scale if isinstance(order, Basis) else leaf.integer(order)
        return [_Place(static_value(number), product(shape))]
    if rank(shape) != len(order):
        raise ValueError(f"order {text(order)} does not fit shape {text(shape)}")
    return [place for part in map(_places, modes(shape), order) for place in part]


def _before(one: _Place, index: int, other: _Place, other_index: int) -> bool:
    if one.number is None or other.number is None:
        return one.number is not None or (other.number is None and index < other_index)
    if one.number == other.number and not (one.one or other.one):
        return index < other_index
    return one.number < other.number


def make_layout_like(layout: Layout) -> Layout:
    """A compact layout of the same shape, with modes as fast in the same order. Strides of 0 stay:
    what is broadcast is broadcast."""
    shape, stride = layout.shape, layout.stride
    compacted = ordered_strides(filter_zeros(stride, shape), stride)
    kept = transform(lambda old, new: old if leaf.is_zero(old) else new, stride, compacted)
    return Layout(shape, kept)


def filter_zeros(stride: Tree, shape: Tree) -> Tree:
    """The shape with 1 where the stride is 0."""
    return transform(lambda step, extent: Int(1) if leaf.is_zero(step) else extent, stride, shape)


def make_identity_layout(shape: Tree) -> Layout:
    """The layout that maps a coordinate to itself: its strides are bases."""

    def bases(part: Tree, path: tuple[int, ...]) -> Tree:
        if isinstance(part, tuple):
            return tuple(bases(mode, (*path, index)) for index, mode in enumerate(part))
        return Basis(Int(1), path) if path else Int(1)

    return Layout(shape, bases(shape, ()))
