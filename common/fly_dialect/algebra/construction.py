"""Construction of layouts from shapes, orders and other layouts."""

from __future__ import annotations

from itertools import combinations

from fly_common.record import record

from fly_dialect.algebra import leaf
from fly_dialect.algebra.arithmetic import product
from fly_dialect.algebra.structure import modes, transform
from fly_dialect.layouts.int_tuple import Tree, rank, static_value, text
from fly_dialect.layouts.integers import Basis, Int
from fly_dialect.layouts.layout import Layout


def compact(shape: Tree, start: Tree = Int(1)) -> Tree:
    """The compact strides of a shape, with the first mode fastest, beginning with `start`."""
    return _compact(shape, start)[0]


def _compact(shape: Tree, start: Tree) -> tuple[Tree, Tree]:
    """The strides, and the size of the shape times `start`."""
    if not isinstance(shape, tuple):
        return start, leaf.multiply(start, shape)
    strides = []
    for extent in shape:
        stride, start = _compact(extent, start)
        strides.append(stride)
    return tuple(strides), start


def make_ordered_layout(shape: Tree, order: Tree) -> Layout:
    """The compact layout with modes in the given order: (0,1) makes the first mode the fastest,
    (1,0) the second. Dynamic parts of the order come after static ones, from left to right."""
    for one, other in combinations(_places(shape, order), 2):
        if one.number is not None and one.number == other.number and not (one.one or other.one):
            raise ValueError(
                f"order {text(order)} gives two modes of {text(shape)} the same position"
            )
    return Layout(shape, ordered_strides(shape, order))


def ordered_strides(shape: Tree, order: Tree) -> Tree:
    """The strides of the compact layout in that order. Ties are broken from left to right."""
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


@record
class _Place:
    """A leaf of the order: its number, if known, and the size of the part that it orders."""

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
    """The compact layout with the same shape and the same order of modes. Strides of 0 are kept."""
    shape, stride = layout.shape, layout.stride
    compacted = ordered_strides(filter_zeros(stride, shape), stride)
    kept = transform(lambda old, new: old if leaf.is_zero(old) else new, stride, compacted)
    return Layout(shape, kept)


def filter_zeros(stride: Tree, shape: Tree) -> Tree:
    """The shape with extent 1 in place of the modes of stride 0."""
    return transform(lambda step, extent: Int(1) if leaf.is_zero(step) else extent, stride, shape)


def make_identity_layout(shape: Tree) -> Layout:
    """The layout that maps a coordinate to itself: its strides are bases."""

    def bases(part: Tree, path: tuple[int, ...]) -> Tree:
        if isinstance(part, tuple):
            return tuple(bases(mode, (*path, index)) for index, mode in enumerate(part))
        return Basis(Int(1), path) if path else Int(1)

    return Layout(shape, bases(shape, ()))
