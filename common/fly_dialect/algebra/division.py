"""Division of a layout by a layout or a tile, into the elements of a tile and the tiles.

    logical_divide    ((tile, rest) of mode 0, (tile, rest) of mode 1, …)
    zipped_divide     ((tile of mode 0, tile of mode 1, …), (rest of mode 0, …))
    tiled_divide      ((tiles), rest of mode 0, rest of mode 1, …)
    flat_divide       (tile of mode 0, tile of mode 1, …, rest of mode 0, …)

Sizes that the divisor does not divide are rounded up: the last tile then extends beyond the layout.
If a stride of the divisor is not a multiple of the span of its smaller strides, the complement of
the divisor omits offsets, and the tiles omit elements.
"""

from __future__ import annotations

from fly_dialect.algebra.coalescing import coalesce
from fly_dialect.algebra.composition import as_layout, composition
from fly_dialect.algebra.coordinates import size
from fly_dialect.algebra.inverse import complement
from fly_dialect.algebra.structure import expand, modes
from fly_dialect.layouts.int_tuple import Tree, rank
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import AnyLayout, Layout
from fly_dialect.layouts.tile import Mode, Tile


def logical_divide(layout: AnyLayout, divisor: Layout | Tile) -> AnyLayout:
    linear = layout.linear
    return layout.with_linear(_divided(linear, divisor))


def _divided(layout: Layout, divisor: Mode) -> Layout:
    if isinstance(divisor, Tile):
        if not isinstance(divisor.modes, tuple):
            return _divided(layout, divisor.modes)
        return _divided_by_mode(layout, divisor.modes, divisor)
    if divisor is None:
        return layout
    inner = as_layout(divisor)
    rest = complement(inner, size(coalesce(layout))).linear
    both = Layout((inner.shape, rest.shape), (inner.stride, rest.stride))
    try:
        return composition(layout, both).linear
    except ValueError:
        # A last mode of size 1 defines the offsets of coordinates beyond the layout (`coalesced`).
        # These are not elements, so the layout may be divided without that mode.
        shorter = coalesce(layout)
        if shorter == layout:
            raise
    return composition(shorter, both).linear


def _divided_by_mode(layout: Layout, divisors: tuple[Mode, ...], tile: Tile) -> Layout:
    pairs = list(zip(modes(layout.shape), modes(layout.stride), strict=True))
    if len(divisors) > len(pairs):
        raise ValueError(f"{layout} does not have the modes of the tile {tile}")
    for index, divisor in enumerate(divisors):
        if divisor is not None:
            part = _divided(Layout(*pairs[index]), divisor)
            pairs[index] = part.shape, part.stride
    return Layout(tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs))


def zipped_divide(layout: AnyLayout, divisor: Layout | Tile) -> AnyLayout:
    divided = _divided(layout.linear, divisor)
    guide = divisor if isinstance(divisor, Tile) else Tile(Int(1))
    shape = _unzipped(divided.shape, guide, Int(1))
    return layout.with_linear(Layout(shape, _unzipped(divided.stride, guide, Int(0))))


def _unzipped(tree: Tree, guide: Mode, whole: Tree) -> tuple[Tree, Tree]:
    """Splits ((tile, rest), …) into (tiles, rests). A mode that is not divided is a tile whose rest
    has extent 1. `whole` is its extent or stride."""
    if guide is None:
        return tree, whole
    if not isinstance(guide, Tile):
        return tree[0], tree[1]
    if not isinstance(guide.modes, tuple):
        return _unzipped(tree, guide.modes, whole)
    parts = modes(tree)
    pairs = [_unzipped(*pair, whole) for pair in zip(parts, guide.modes, strict=False)]
    beyond = parts[rank(guide.modes) :]
    return tuple(pair[0] for pair in pairs), (*(pair[1] for pair in pairs), *beyond)


def tiled_divide(layout: AnyLayout, divisor: Layout | Tile) -> AnyLayout:
    zipped = zipped_divide(layout, divisor)
    return zipped.with_linear(zipped.linear.mapped(lambda tree: expand(tree, 1)))


def flat_divide(layout: AnyLayout, divisor: Layout | Tile) -> AnyLayout:
    zipped = zipped_divide(layout, divisor)
    return zipped.with_linear(zipped.linear.mapped(lambda tree: expand(tree, 0, 1)))
