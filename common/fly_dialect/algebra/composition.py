"""Layouts of layouts: coalescing, composition, complement and inverses.

Of a composed layout the layout that takes the coordinate is composed, coalesced and so on.
"""

from __future__ import annotations

from fly_dialect.algebra import leaf
from fly_dialect.algebra.arithmetic import total
from fly_dialect.algebra.construction import filter_zeros
from fly_dialect.algebra.coordinates import cosize
from fly_dialect.algebra.structure import flatten, modes, scalar, transform, unwrap
from fly_dialect.int_tuple import Tree, rank, static_value, text
from fly_dialect.integers import Basis, Int
from fly_dialect.layout import AnyLayout, Layout
from fly_dialect.tile import Mode, Tile

# A shape and a stride.
Pair = tuple[Tree, Tree]


def coalesce(layout: AnyLayout, pattern: Tree = None) -> AnyLayout:
    """The same function of the flat coordinate with as few modes as possible. With `pattern`, of
    each mode that stands where `pattern` has a leaf; modes beyond it stay."""
    linear = layout.linear
    if pattern is None:
        return layout.with_linear(Layout(*_coalesced(linear.shape, linear.stride)))
    found = _coalesced_by(pattern, linear.shape, linear.stride, (linear, pattern))
    return layout.with_linear(Layout(*found))


def _coalesced_by(
    pattern: Tree, shape: Tree, stride: Tree, whole: tuple[Layout, Tree], boundary: bool = False
) -> Pair:
    if not isinstance(pattern, tuple):
        return _coalesced(shape, stride, boundary)
    if len(pattern) > rank(shape):
        raise ValueError(f"{whole[0]} has not the modes of the pattern {text(whole[1])}")
    pairs = list(zip(modes(shape), modes(stride), strict=True))
    for index, part in enumerate(pattern):
        pairs[index] = _coalesced_by(part, *pairs[index], whole, boundary)
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)


def _coalesced(shape: Tree, stride: Tree, boundary: bool = False) -> Pair:
    """Merges neighbours from the right. Only what is static can be seen to be contiguous.

    `boundary` keeps a last mode of size 1, as one of size 2: the layout then still says where
    coordinates beyond its end go, which a composition may ask for.
    """
    pairs = list(zip(flatten(shape), flatten(stride), strict=True))
    extent, step = pairs[-1]
    if boundary and leaf.is_one(extent):
        extent = Int(2)
    if len(pairs) == 1:
        if leaf.is_one(extent):
            return Int(1), Int(0)
        # Singleton tuples around it stay, as in FlyDSL.
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
    """Whether the second mode is known to go on where the first one ends."""
    if isinstance(step, Basis) and isinstance(next_step, Basis):
        if step.modes != next_step.modes:
            return False
        return _contiguous(extent, step.scale, next_extent, next_step.scale)
    numbers = [static_value(number) for number in (extent, step, next_extent, next_step)]
    if None in numbers:
        return False
    return numbers[0] * numbers[1] == numbers[3]  # type: ignore[operator]


# -- composition ----------------------------------------------------------------------------------
def composition(outer: AnyLayout, inner: Layout | Tile) -> AnyLayout:
    """The layout that maps c to outer(inner(c)), of the shape of `inner`; with a tile, each mode
    of `outer` composed with its mode of the tile.

    ValueError where mode by mode that is no layout: where a mode of `inner` leaves a mode of
    `outer` in the middle, or several together go beyond one. What is dynamic is taken to fit.
    """
    linear = outer.linear
    if isinstance(inner, Tile):
        return outer.with_linear(_composed_by_mode(linear, inner))
    return outer.with_linear(_composed(linear, inner))


def _composed(outer: Layout, inner: Layout) -> Layout:
    profile = transform(lambda _: Int(0), total(inner.stride))
    shape, stride = outer.shape, outer.stride
    if isinstance(profile, tuple):
        shape, stride = _coalesced_by(profile, shape, stride, (outer, profile), boundary=True)
    elif any(isinstance(step, Basis) for step in flatten(inner.stride)):
        pass  # The strides name modes of `outer`, which must therefore stay.
    else:
        shape, stride = _coalesced(shape, stride, boundary=True)
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
        raise ValueError(f"{outer} has not the modes of the tile {tile}")
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
    """An extent as a layout of that many neighbours."""
    return Layout(mode, Int(1)) if isinstance(mode, Int) else mode


def canonical(layout: Layout) -> Layout:
    """Without singleton tuples, and with stride 0 for modes of size 1."""

    def pair(shape: Tree, stride: Tree) -> Pair:
        if not isinstance(shape, tuple):
            return shape, Int(0) if leaf.is_one(shape) else stride
        if len(shape) == 1:
            return pair(shape[0], stride[0])
        pairs = list(map(pair, shape, stride))
        return tuple(found[0] for found in pairs), tuple(found[1] for found in pairs)

    return Layout(*pair(layout.shape, layout.stride))


class _Reached:
    """How far the modes of the inner layout together reach into those of the outer one. Composing
    mode by mode is right only if they never carry from one into the next."""

    def __init__(self) -> None:
        self.sums: dict[tuple[int, ...], tuple[tuple, list[int]]] = {}

    def note(
        self, path: tuple[int, ...], shape: tuple, index: int, count: Tree, step: Tree
    ) -> None:
        """`count` coordinates, `step` apart, in a mode of what a basis stride's `path` names."""
        sums = self.sums.setdefault(path, (shape, [0] * len(shape)))[1]
        known_count, known_step = static_value(count), static_value(step)
        if known_count is not None and known_step is not None:
            sums[index] += (known_count - 1) * known_step

    def check(self) -> None:
        for shape, sums in self.sums.values():
            for extent, reach in zip(shape[:-1], sums[:-1], strict=True):
                size = static_value(extent)
                if size is not None and reach >= size:
                    raise ValueError(f"its modes together go beyond the extent {size}")


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
        # So many steps along one mode of the outer layout.
        for mode in inner_stride.modes:
            if mode >= rank(shape):
                raise ValueError(f"there is no mode {mode}")
            shape, stride = modes(shape)[mode], modes(stride)[mode]
        if isinstance(shape, tuple):
            shape, stride = _coalesced(shape, stride, boundary=True)
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
    """`count` coordinates, `step` apart, through the flat modes of the outer layout."""
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
    """A step is so many whole modes, or within the mode."""
    size, by = static_value(extent), static_value(step)
    if size and by is not None and by >= size and by % size:
        raise ValueError(f"a stride of {by} is no multiple of the extent {size}")


def _check_count(taken: Tree, count: Tree, extent: Tree, step: Tree) -> None:
    """What goes on beyond a mode has used up the mode, to its end."""
    here, left = static_value(taken), static_value(count)
    size, by = static_value(extent), static_value(step)
    if here is None or left is None:
        return
    if left % here:
        raise ValueError(f"{left} steps are no multiple of the {here} in the extent {text(extent)}")
    if left > here and size is not None and by is not None and size % by:
        raise ValueError(f"a stride of {by} does not divide the extent {size} that it leaves")


# -- complement -----------------------------------------------------------------------------------
def complement(layout: AnyLayout, cotarget: Tree = None) -> AnyLayout:
    """The layout of the offsets that `layout` leaves out, up to `cotarget` (without it, up to the
    layout's cosize): its offsets plus those of `layout` are all different.

    ValueError if `layout` gives one offset to two coordinates (other than by a stride of 0), or if
    strides are bases, or dynamic in more than one mode.
    """
    linear = layout.linear
    shape, stride = _coalesced(filter_zeros(linear.stride, linear.shape), linear.stride)
    end = cosize(Layout(shape, stride)) if cotarget is None else scalar(cotarget)
    return layout.with_linear(_complement(linear, flatten(shape), flatten(stride), end))


def _complement(layout: Layout, shape: list[Tree], stride: list[Tree], end: Tree) -> Layout:
    if any(isinstance(step, Basis) or step is None for step in stride):
        raise ValueError(f"{layout} has no complement: its strides are no integers")
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
            raise ValueError(f"{layout} has no complement: it gives one offset to two coordinates")
        extents.append(gap)
        steps.append(leaf.multiply(step, extent))
    extents.append(leaf.ceil_divide(end, steps[-1]))
    return Layout(*_coalesced(tuple(extents), tuple(steps)))


def _static_stride(layout: Layout, stride: Tree) -> int:
    known = static_value(stride)
    if known is None:
        raise ValueError(f"{layout} has no complement: its strides are not known when compiling")
    return known


# -- inverses -------------------------------------------------------------------------------------
def right_inverse(layout: AnyLayout) -> AnyLayout:
    """The layout r with layout(r(i)) == i, for as many i from 0 on as there are. Modes of dynamic
    stride or extent are left out."""
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
    return layout.with_linear(Layout(*_coalesced(extents, steps)))


def left_inverse(layout: AnyLayout) -> AnyLayout:
    """The layout l with l(layout(i)) == i. Where strides are 0, l(layout(i)) is the least
    coordinate of that offset. ValueError if a stride is not known when compiling or no multiple
    of the offsets below it."""
    linear = layout.linear
    shape, stride, places = _flat_places(linear)
    order = [index for index in _by_stride(stride) if not leaf.is_zero(stride[index])]
    if len(order) + sum(map(leaf.is_zero, stride)) != len(stride):
        raise ValueError(f"{linear} has no left inverse: its strides are not known integers")
    extents: list[Tree] = []
    steps: list[Tree] = [Int(0)]
    below = 1  # the offsets between two of the mode at hand, so far
    taken: int | None = 1  # what the modes below take of them
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
    return layout.with_linear(Layout(*_coalesced(tuple(extents), tuple(steps))))


def _flat_places(layout: Layout) -> tuple[list[Tree], list[Tree], list[Tree]]:
    """The modes of the coalesced layout, and for each how far it steps through coordinates."""
    shape, stride = map(flatten, _coalesced(layout.shape, layout.stride))
    places: list[Tree] = [Int(1)]
    for extent in shape[:-1]:
        places.append(leaf.multiply(places[-1], extent))
    return shape, stride, places


def _by_stride(stride: list[Tree]) -> list[int]:
    """The indices of static strides, the smallest first."""
    known = {index: static_value(step) for index, step in enumerate(stride)}
    found = [index for index, value in known.items() if value is not None]
    return sorted(found, key=lambda index: known[index])  # type: ignore[arg-type, return-value]
