"""Conversion between coordinates and offsets, and the sizes of their ranges."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

from fly_dialect.algebra import leaf
from fly_dialect.algebra.arithmetic import add, inner_product, product, total
from fly_dialect.algebra.structure import (
    at,
    flatten,
    integers,
    kept_by_slice,
    modes,
    scalar,
    slice_tuple,
    transform,
    zeros_for_free,
)
from fly_dialect.layouts.int_tuple import Tree, rank, static_value, text
from fly_dialect.layouts.integers import INT32_MAX, Basis, Int
from fly_dialect.layouts.layout import AnyLayout, ComposedLayout, Inner, Layout
from fly_dialect.layouts.swizzle import CoordSwizzle, Swizzle


def size(nested: AnyLayout | Tree) -> Any:
    """The number of coordinates of a layout or shape."""
    shape = nested.shape if isinstance(nested, (Layout, ComposedLayout)) else nested
    return product(shape)


def coshape(layout: AnyLayout) -> Tree:
    """The greatest offset plus one, for each mode of the offsets: an integer, or a tuple if the
    strides are bases."""
    linear = layout.linear
    last = transform(lambda extent: leaf.subtract(extent, Int(1)), linear.shape)
    greatest = inner_product(last, linear.stride)
    return transform(_one_more, greatest)


def _one_more(number: Any) -> Any:
    if isinstance(number, Basis):
        raise ValueError(f"{number} is not an integer")
    return leaf.plus(number, Int(1))


def coprofile(layout: AnyLayout) -> Tree:
    """The structure of the offsets, with 0 for each leaf."""
    return transform(lambda _: Int(0), total(layout.linear.stride))


def cosize(layout: AnyLayout) -> Any:
    """The product of `coshape`."""
    return product(coshape(layout))


# -- coordinates → offset -------------------------------------------------------------------------
def crd2idx(coord: Tree, layout: Inner) -> Tree:
    """The offset of `coord`: the sum of coordinates times strides. For a swizzle, the permuted
    offset; for a coord swizzle, the permuted coordinate.

    A leaf coordinate for a tuple shape is split with the first mode fastest, the order of FlyDSL
    and CuTe. The last mode takes the rest, so a coordinate beyond the shape is valid.

    The offset is computed with 64 bits if it may not fit 32: if a stride, or an extent whose stride
    is not 1, has 64 bits, or if the static shape spans more than 2³¹ − 1 elements. (FlyDSL uses the
    widest operand and overflows silently.) A 32-bit dynamic extent or stride is the program's
    promise that offsets fit.
    """
    if isinstance(layout, Swizzle):
        return scalar(coord).swizzled(layout)
    if isinstance(layout, CoordSwizzle):
        return _coord_swizzled(coord, layout)
    if isinstance(layout, ComposedLayout):
        return crd2idx(add(layout.offset, crd2idx(coord, layout.outer)), layout.inner)
    terms: list[tuple[Tree, Tree]] = []
    _pair(coord, layout.shape, layout.stride, terms, (coord, layout.shape))
    places: Iterable[tuple[Tree, Tree]] = terms
    if any(static_value(place) is None for place, _ in terms) and _spans_more_than_32_bits(layout):
        places = ((place.widened(), step) for place, step in terms)
    return reduce(add, (leaf.multiply(place, step) for place, step in places))


def _pair(coord: Tree, shape: Tree, stride: Tree, terms: list, whole: tuple[Tree, Tree]) -> None:
    """Appends (coordinate leaf, stride leaf) for each leaf of the shape."""
    if isinstance(coord, tuple):
        if len(coord) != rank(shape):
            raise ValueError(f"coordinate {text(whole[0])} does not fit shape {text(whole[1])}")
        for part in zip(coord, modes(shape), modes(stride), strict=True):
            _pair(*part, terms, whole)
    elif coord is None or isinstance(coord, Basis):
        raise ValueError(f"coordinate {text(whole[0])} contains {text(coord)}")
    elif isinstance(shape, tuple):
        _count(coord, shape, stride, terms)
    else:
        terms.append((coord, stride))


def _count(coord: Tree, shape: tuple, stride: tuple, terms: list) -> None:
    """Splits a flat coordinate over the modes of `shape`, the first fastest."""
    left = coord
    for index, (extent, step) in enumerate(zip(shape, stride, strict=True)):
        if index == len(shape) - 1:
            here = left
        else:
            count = product(extent)
            here, left = leaf.remainder(left, count), leaf.divide(left, count)
        if isinstance(extent, tuple):
            _count(here, extent, step, terms)
        else:
            terms.append((here, step))


def _spans_more_than_32_bits(layout: Layout) -> bool:
    span = 0
    for extent_leaf, step_leaf in zip(integers(layout.shape), flatten(layout.stride), strict=True):
        if step_leaf is None or isinstance(step_leaf, Basis):
            continue
        extent, step = leaf.known(extent_leaf), leaf.known(step_leaf)
        if step.value is not None and extent.value is not None:
            span += max(0, extent.value - 1) * abs(step.value)
        elif step.value == 1 and extent.width == 64:
            # The coordinate has already been computed with its own width, so nothing more can be
            # lost.
            span += INT32_MAX
        elif max(extent.width, step.width) == 64:
            return True
    return span > INT32_MAX


def _coord_swizzled(coord: Tree, swizzle: CoordSwizzle) -> Tree:
    if swizzle.is_trivial:
        return coord
    row, col = at(coord, swizzle.mode_row), at(coord, swizzle.mode_col)
    row, col = leaf.alike(row, col)
    return _replaced(coord, swizzle.mode_col, col.coord_swizzled(row, swizzle))


def _replaced(tree: Tree, path: tuple[int, ...], part: Tree) -> Tree:
    if not path or not isinstance(tree, tuple):
        return part
    index = path[0]
    return (*tree[:index], _replaced(tree[index], path[1:], part), *tree[index + 1 :])


# -- offset → coordinates -------------------------------------------------------------------------
def idx2crd(index: Tree, layout: Layout) -> Tree:
    """The coordinate whose offset is `index`: (index // stride) % extent, leaf by leaf."""
    return _idx2crd(index, layout.shape, layout.stride, layout)


def _idx2crd(index: Tree, shape: Tree, stride: Tree, layout: Layout) -> Tree:
    if isinstance(index, tuple):
        if len(index) != rank(shape):
            raise ValueError(f"index {text(index)} does not fit shape {text(layout.shape)}")
        parts = zip(index, modes(shape), modes(stride), strict=True)
        return tuple(_idx2crd(*part, layout) for part in parts)
    if isinstance(shape, tuple):
        return tuple(_idx2crd(index, *part, layout) for part in zip(shape, stride, strict=True))
    if leaf.is_one(shape):
        return Int(0)
    if leaf.is_zero(stride):
        raise ValueError(f"{layout} maps several coordinates to one offset: it has no inverse")
    return leaf.remainder(leaf.divide(index, stride), shape)


def flat_index(coord: Tree, shape: Tree) -> Any:
    """The index of a coordinate, with the first mode fastest. A leaf is its own index."""
    if not isinstance(coord, tuple):
        return coord
    if len(coord) != rank(shape):
        raise ValueError(f"coordinate {text(coord)} does not fit shape {text(shape)}")
    extents = modes(shape)
    number = flat_index(coord[-1], extents[-1])
    for part, extent in zip(reversed(coord[:-1]), reversed(extents[:-1]), strict=True):
        number = leaf.plus(flat_index(part, extent), leaf.multiply(product(extent), number))
    return number


def get_1d_coord(index: Tree, layout: Layout) -> Any:
    """The index of the coordinate whose offset is `index`."""
    return flat_index(idx2crd(index, layout), layout.shape)


def get_flat_coord(index: Tree, layout: Layout) -> Tree:
    """The coordinate whose offset is `index`, with one index per mode."""
    coord = idx2crd(index, layout)
    if not isinstance(layout.shape, tuple):
        return coord
    return tuple(map(flat_index, coord, layout.shape))


def origin(layout: AnyLayout) -> Tree:
    """The offset of the first coordinate."""
    if isinstance(layout, Layout):
        return Int(0)
    return crd2idx(add(layout.offset, origin(layout.outer)), layout.inner)


# -- slices ---------------------------------------------------------------------------------------
def slice_(nested: Any, coord: Tree) -> Any:
    """The modes of a tree or a layout where `coord` is `*`.

    The result for a layout does not include the slice's offset (`slice_offset`). The result for a
    composed layout does: it is added to the offset next to the linear layout.
    """
    if isinstance(nested, Layout):
        return kept_by_slice(nested, coord)
    if not isinstance(nested, ComposedLayout):
        return slice_tuple(nested, coord)
    outer = nested.outer
    if isinstance(outer, ComposedLayout):
        return ComposedLayout(nested.inner, nested.offset, slice_(outer, coord))
    offset = add(nested.offset, slice_offset(outer, coord))
    return ComposedLayout(nested.inner, offset, kept_by_slice(outer, coord))


def slice_offset(layout: AnyLayout, coord: Tree) -> Tree:
    """The offset of a slice's first element."""
    return crd2idx(zeros_for_free(coord), layout)
