"""Composition of layouts. For a composed layout, its linear layout is composed."""

from __future__ import annotations

from fly_dialect.algebra import leaf
from fly_dialect.algebra.arithmetic import total
from fly_dialect.algebra.coalescing import Pair, coalesced, coalesced_by
from fly_dialect.algebra.structure import flatten, modes, transform, unwrap
from fly_dialect.layouts.int_tuple import Tree, rank, static_value, text
from fly_dialect.layouts.integers import Basis, Int
from fly_dialect.layouts.layout import AnyLayout, Layout
from fly_dialect.layouts.tile import Mode, Tile


def composition(outer: AnyLayout, inner: Layout | Tile) -> AnyLayout:
    """The layout that maps c to outer(inner(c)), with the shape of `inner`. With a tile, each mode
    of `outer` is composed with its mode of the tile.

    Raises ValueError if the mode-wise composition is not a layout: if a mode of `inner` ends within
    a mode of `outer`, or if several modes together exceed one. Dynamic integers are assumed to fit.
    """
    linear = outer.linear
    if isinstance(inner, Tile):
        return outer.with_linear(_composed_by_mode(linear, inner))
    return outer.with_linear(_composed(linear, inner))


def _composed(outer: Layout, inner: Layout) -> Layout:
    profile = transform(lambda _: Int(0), total(inner.stride))
    shape, stride = outer.shape, outer.stride
    if isinstance(profile, tuple):
        shape, stride = coalesced_by(profile, shape, stride, (outer, profile), boundary=True)
    elif any(isinstance(step, Basis) for step in flatten(inner.stride)):
        pass  # the strides name modes of `outer`, so these must be kept
    else:
        shape, stride = coalesced(shape, stride, boundary=True)
    try:
        reached = _Reached()
        found = _compose(shape, stride, inner.shape, inner.stride, reached)
        reached.check()
    except ValueError as error:
        raise ValueError(f"{outer} can't be composed with {inner}: {error}") from None
    return canonical(Layout(*found))


def _composed_by_mode(outer: Layout, tile: Tile) -> Layout:
    if not isinstance(tile.modes, tuple):
        return _composed_by(outer, tile.modes)
    pairs = list(zip(modes(outer.shape), modes(outer.stride), strict=True))
    if tile.rank > len(pairs):
        raise ValueError(f"{outer} does not have the modes of the tile {tile}")
    for index, mode in enumerate(tile.modes):
        if mode is not None:
            composed = _composed_by(Layout(*pairs[index]), mode)
            pairs[index] = composed.shape, composed.stride
    return canonical(Layout(tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)))


def _composed_by(outer: Layout, mode: Mode) -> Layout:
    if isinstance(mode, Tile):
        return _composed_by_mode(outer, mode)
    return outer if mode is None else _composed(outer, as_layout(mode))


def as_layout(mode: Int | Layout) -> Layout:
    """Converts an extent to a contiguous layout of that size."""
    return Layout(mode, Int(1)) if isinstance(mode, Int) else mode


def canonical(layout: Layout) -> Layout:
    """Removes singleton tuples, and sets the stride of modes of size 1 to 0."""

    def pair(shape: Tree, stride: Tree) -> Pair:
        if not isinstance(shape, tuple):
            return shape, Int(0) if leaf.is_one(shape) else stride
        if len(shape) == 1:
            return pair(shape[0], stride[0])
        pairs = list(map(pair, shape, stride))
        return tuple(found[0] for found in pairs), tuple(found[1] for found in pairs)

    return Layout(*pair(layout.shape, layout.stride))


class _Reached:
    """Tracks how far the modes of the inner layout together reach into each mode of the outer one.
    Mode-wise composition is only correct if there is no carry from one mode into the next."""

    def __init__(self) -> None:
        self.sums: dict[tuple[int, ...], tuple[tuple, list[int]]] = {}

    def note(
        self, path: tuple[int, ...], shape: tuple, index: int, count: Tree, step: Tree
    ) -> None:
        """Records `count` coordinates, `step` apart, in mode `index` of the part at `path`."""
        sums = self.sums.setdefault(path, (shape, [0] * len(shape)))[1]
        known_count, known_step = static_value(count), static_value(step)
        if known_count is not None and known_step is not None:
            sums[index] += (known_count - 1) * known_step

    def check(self) -> None:
        for shape, sums in self.sums.values():
            for extent, reach in zip(shape[:-1], sums[:-1], strict=True):
                size = static_value(extent)
                if size is not None and reach >= size:
                    raise ValueError(f"its modes together exceed the extent {size}")


def _compose(
    shape: Tree,
    stride: Tree,
    inner_shape: Tree,
    inner_stride: Tree,
    reached: _Reached,
    path: tuple[int, ...] = (),
) -> Pair:
    if isinstance(inner_shape, tuple):
        parts = zip(inner_shape, inner_stride, strict=True)
        pairs = [_compose(shape, stride, *part, reached, path) for part in parts]
        return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
    if isinstance(inner_stride, Basis):
        # The scale counts steps along one mode of the outer layout.
        for mode in inner_stride.modes:
            if mode >= rank(shape):
                raise ValueError(f"there is no mode {mode}")
            shape, stride = modes(shape)[mode], modes(stride)[mode]
        if isinstance(shape, tuple):
            shape, stride = coalesced(shape, stride, boundary=True)
        return _compose(shape, stride, inner_shape, inner_stride.scale, reached, inner_stride.modes)
    if leaf.is_zero(inner_stride):
        return inner_shape, inner_stride
    shape, stride = unwrap(shape), unwrap(stride)
    if not isinstance(shape, tuple):
        return inner_shape, leaf.multiply(stride, inner_stride)
    return _walk(shape, stride, inner_shape, inner_stride, reached, path)


def _walk(
    shape: tuple, stride: tuple, count: Tree, step: Tree, reached: _Reached, path: tuple[int, ...]
) -> Pair:
    """Composes `count` coordinates, `step` apart, with the flat modes of the outer layout."""
    known_step = static_value(step)
    if known_step is not None and known_step < 0:
        raise ValueError(f"a stride of {known_step} goes backwards through {text(shape)}")
    for extent in (*shape, count):
        known_extent = static_value(extent)
        if known_extent is not None and known_extent < 1:
            raise ValueError(f"there is an extent of {known_extent}")
    found: list[Pair] = []
    for index, (extent, own) in enumerate(zip(shape[:-1], stride[:-1], strict=True)):
        if not leaf.is_one(count):
            _check_step(extent, step)
        here, next_step = leaf.ceil_divide(extent, step), leaf.ceil_divide(step, extent)
        if not leaf.is_one(here) and not leaf.is_one(count):
            taken = leaf.minimum(here, count)
            _check_count(taken, count, extent, step)
            reached.note(path, shape, index, taken, step)
            found.append((taken, leaf.multiply(step, own)))
            count = leaf.divide(count, taken)
        step = next_step
    if not found or not leaf.is_one(count):
        found.append((count, leaf.multiply(step, stride[-1])))
    if len(found) == 1:
        return found[0]
    return tuple(pair[0] for pair in found), tuple(pair[1] for pair in found)


def _check_step(extent: Tree, step: Tree) -> None:
    """Checks that a step is a multiple of the extent, or less than it."""
    size, by = static_value(extent), static_value(step)
    if size and by is not None and by >= size and by % size:
        raise ValueError(f"a stride of {by} is not a multiple of the extent {size}")


def _check_count(taken: Tree, count: Tree, extent: Tree, step: Tree) -> None:
    """Checks that what continues beyond a mode uses the mode up to its end."""
    here, left = static_value(taken), static_value(count)
    size, by = static_value(extent), static_value(step)
    if here is None or left is None:
        return
    if left % here:
        raise ValueError(
            f"{left} steps are not a multiple of the {here} in the extent {text(extent)}"
        )
    if left > here and size is not None and by is not None and size % by:
        raise ValueError(f"a stride of {by} does not divide the extent {size}")
