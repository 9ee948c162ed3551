"""Coalescing: the same layout with fewer modes. A composed layout's linear layout is coalesced."""

from __future__ import annotations

from fly_dialect.algebra import leaf
from fly_dialect.algebra.structure import flatten, modes
from fly_dialect.layouts.int_tuple import Tree, rank, static_value, text
from fly_dialect.layouts.integers import Basis, Int
from fly_dialect.layouts.layout import AnyLayout, Layout

# A shape and a stride.
Pair = tuple[Tree, Tree]


def coalesce(layout: AnyLayout, pattern: Tree = None) -> AnyLayout:
    """The same function of the flat coordinate, with as few modes as possible. With `pattern`, each
    mode that corresponds to a leaf of `pattern` is coalesced separately; other modes are kept."""
    linear = layout.linear
    if pattern is None:
        return layout.with_linear(Layout(*coalesced(linear.shape, linear.stride)))
    found = coalesced_by(pattern, linear.shape, linear.stride, (linear, pattern))
    return layout.with_linear(Layout(*found))


def coalesced_by(
    pattern: Tree, shape: Tree, stride: Tree, whole: tuple[Layout, Tree], boundary: bool = False
) -> Pair:
    if not isinstance(pattern, tuple):
        return coalesced(shape, stride, boundary)
    if len(pattern) > rank(shape):
        raise ValueError(f"{whole[0]} does not have the modes of the pattern {text(whole[1])}")
    pairs = list(zip(modes(shape), modes(stride), strict=True))
    for index, part in enumerate(pattern):
        pairs[index] = coalesced_by(part, *pairs[index], whole, boundary)
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)


def coalesced(shape: Tree, stride: Tree, boundary: bool = False) -> Pair:
    """Merges adjacent modes from the right, if they are statically known to be contiguous.

    `boundary` keeps a last mode of size 1, as one of size 2. The layout then still defines the
    offsets of coordinates beyond its end, which a composition may need.
    """
    pairs = list(zip(flatten(shape), flatten(stride), strict=True))
    extent, step = pairs[-1]
    if boundary and leaf.is_one(extent):
        extent = Int(2)
    if len(pairs) == 1:
        if leaf.is_one(extent):
            return Int(1), Int(0)
        # Singleton tuples are kept, as in FlyDSL.
        return (shape, stride) if not boundary else (extent, step)
    merged: list[Pair] = []
    for left_extent, left_step in reversed(pairs[:-1]):
        if leaf.is_one(left_extent):
            continue
        if leaf.is_one(extent):
            extent, step = left_extent, left_step
        elif _contiguous(left_extent, left_step, extent, step):
            extent, step = leaf.multiply(left_extent, extent), left_step
        else:
            merged.append((extent, step))
            extent, step = left_extent, left_step
    if not merged:
        return (Int(1), Int(0)) if leaf.is_one(extent) else (extent, step)
    merged.append((extent, step))
    merged.reverse()
    return tuple(pair[0] for pair in merged), tuple(pair[1] for pair in merged)


def _contiguous(extent: Tree, step: Tree, next_extent: Tree, next_step: Tree) -> bool:
    """Whether the second mode is known to continue where the first one ends."""
    if isinstance(step, Basis) and isinstance(next_step, Basis):
        if step.modes != next_step.modes:
            return False
        return _contiguous(extent, step.scale, next_extent, next_step.scale)
    numbers = [static_value(number) for number in (extent, step, next_extent, next_step)]
    if None in numbers:
        return False
    return numbers[0] * numbers[1] == numbers[3]  # type: ignore[operator]
