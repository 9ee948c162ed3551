"""Complements and inverses of layouts. For a composed layout, those of its linear layout."""

from __future__ import annotations

from fly_dialect.algebra import leaf
from fly_dialect.algebra.coalescing import Pair, coalesced
from fly_dialect.algebra.construction import filter_zeros
from fly_dialect.algebra.coordinates import cosize
from fly_dialect.algebra.structure import flatten, scalar
from fly_dialect.layouts.int_tuple import Tree, static_value
from fly_dialect.layouts.integers import Basis, Int
from fly_dialect.layouts.layout import AnyLayout, Layout


def complement(layout: AnyLayout, cotarget: Tree = None) -> AnyLayout:
    """The layout of the offsets that `layout` omits, up to `cotarget` or, without it, up to the
    cosize of `layout`. Sums of its offsets and those of `layout` are all different. They cover all
    offsets if each stride is a multiple of the span of the smaller ones: (2,2):(1,3) omits 2 and 5.

    Raises ValueError if `layout` maps two coordinates to one offset (other than by a stride of 0),
    if strides are bases, or if more than one mode has a dynamic stride.
    """
    linear = layout.linear
    shape, stride = coalesced(filter_zeros(linear.stride, linear.shape), linear.stride)
    end = cosize(Layout(shape, stride)) if cotarget is None else scalar(cotarget)
    return layout.with_linear(_complement(linear, flatten(shape), flatten(stride), end))


def _complement(layout: Layout, shape: list[Tree], stride: list[Tree], end: Tree) -> Layout:
    if any(isinstance(step, Basis) or step is None for step in stride):
        raise ValueError(f"{layout} has no complement: its strides are not integers")
    if len(stride) == 1 and leaf.is_zero(stride[0]):
        return Layout(end, Int(1))
    pairs = list(zip(shape, stride, strict=True))
    if len(pairs) > 1:
        pairs = sorted(pairs, key=lambda pair: _static_stride(layout, pair[1]))
    extents: list[Tree] = []
    steps: list[Tree] = [Int(1)]
    for extent, step in pairs:
        gap = leaf.divide(step, steps[-1])
        known_gap = static_value(gap)
        if known_gap is not None and known_gap < 1:
            raise ValueError(f"{layout} has no complement: it maps two coordinates to one offset")
        extents.append(gap)
        steps.append(leaf.multiply(step, extent))
    extents.append(leaf.ceil_divide(end, steps[-1]))
    return Layout(*coalesced(tuple(extents), tuple(steps)))


def _static_stride(layout: Layout, stride: Tree) -> int:
    known = static_value(stride)
    if known is None:
        raise ValueError(f"{layout} has no complement: its strides are not known at compile time")
    return known


def right_inverse(layout: AnyLayout) -> AnyLayout:
    """The layout r with layout(r(i)) == i, for the longest possible range of i from 0. Modes with
    dynamic stride or extent are ignored."""
    shape, stride, places = _flat_places(layout.linear)
    found: list[Pair] = [(Int(1), Int(0))]
    expected = 1
    for index in _by_stride(stride):
        extent = static_value(shape[index])
        if extent is None or static_value(stride[index]) != expected:
            continue
        found.append((shape[index], places[index]))
        expected *= extent
    extents, steps = (tuple(part) for part in zip(*found, strict=True))
    return layout.with_linear(Layout(*coalesced(extents, steps)))


def left_inverse(layout: AnyLayout) -> AnyLayout:
    """The layout l with l(layout(i)) == i. With strides of 0, l(layout(i)) is the least coordinate
    with that offset. Raises ValueError if a stride is not static, or not a multiple of the offsets
    below it."""
    linear = layout.linear
    shape, stride, places = _flat_places(linear)
    order = [index for index in _by_stride(stride) if not leaf.is_zero(stride[index])]
    if len(order) + sum(map(leaf.is_zero, stride)) != len(stride):
        raise ValueError(f"{linear} has no left inverse: its strides are not known integers")
    extents: list[Tree] = []
    steps: list[Tree] = [Int(0)]
    below = 1  # the stride of the previous mode
    taken: int | None = 1  # the number of offsets that the modes so far span
    for index in order:
        step = static_value(stride[index]) or 0
        if step < 0 or step % below or (taken is not None and step < taken):
            raise ValueError(f"{linear} has no left inverse: offsets of its modes overlap")
        extents.append(Int(step // below))
        steps.append(places[index])
        below = step
        extent = static_value(shape[index])
        taken = None if extent is None else step * extent
    extents.append(shape[order[-1]] if order else Int(1))
    return layout.with_linear(Layout(*coalesced(tuple(extents), tuple(steps))))


def _flat_places(layout: Layout) -> tuple[list[Tree], list[Tree], list[Tree]]:
    """The shape and strides of the coalesced layout, and the index by which each mode steps."""
    shape, stride = map(flatten, coalesced(layout.shape, layout.stride))
    places: list[Tree] = [Int(1)]
    for extent in shape[:-1]:
        places.append(leaf.multiply(places[-1], extent))
    return shape, stride, places


def _by_stride(stride: list[Tree]) -> list[int]:
    """The indices of static strides, in ascending order of the strides."""
    known = {index: static_value(step) for index, step in enumerate(stride)}
    found = [index for index, value in known.items() if value is not None]
    return sorted(found, key=lambda index: known[index])  # type: ignore[arg-type, return-value]
