"""Partitions of layouts for a thread or a block, and layouts for partitioning."""

from __future__ import annotations

from fly_dialect.algebra.arithmetic import product_each
from fly_dialect.algebra.composition import composition
from fly_dialect.algebra.construction import compact, ordered_strides
from fly_dialect.algebra.coordinates import get_flat_coord, size, slice_
from fly_dialect.algebra.division import zipped_divide
from fly_dialect.algebra.inverse import right_inverse
from fly_dialect.algebra.multiplication import raked_product, tiled_product
from fly_dialect.algebra.structure import modes, take
from fly_dialect.layouts.int_tuple import Tree, is_static, rank, text
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import AnyLayout, Layout
from fly_dialect.layouts.tile import Tile


def local_tile(layout: AnyLayout, tile: Tile, coord: Tree) -> AnyLayout:
    """The tile at `coord`: the modes of the tile, then those of the rest where `coord` is `*` or
    missing. Its offset is `slice_offset(zipped_divide(layout, tile), tile_coord(…))`."""
    zipped = zipped_divide(layout, tile)
    return slice_(zipped, tile_coord(zipped, coord))


def tile_coord(zipped: AnyLayout, coord: Tree) -> Tree:
    """The coordinate of the tile at `coord` in a zipped division, with `*` for its elements."""
    tiles, rest = zipped.shape
    return _free(rank(tiles)), _filled(coord, rank(rest), zipped)


def local_partition(layout: AnyLayout, threads: Layout, index: Tree) -> AnyLayout:
    """The part of thread `index` of `threads`, in a layout divided into tiles of one element per
    thread: the modes of the rest."""
    zipped = zipped_divide(layout, thread_tile(threads))
    return slice_(zipped, thread_coord(zipped, threads, index))


def thread_tile(threads: Layout) -> Tile:
    """The tile with one element per thread."""
    return Tile(modes(product_each(threads.shape)))


def thread_coord(zipped: AnyLayout, threads: Layout, index: Tree) -> Tree:
    """The coordinate of thread `index`'s part in a zipped division, with `*` for its elements."""
    tiles, rest = zipped.shape
    coord = _filled(get_flat_coord(index, threads), rank(tiles), zipped)
    return coord, _free(rank(rest))


def _free(count: int) -> Tree:
    return (None,) * count


def _filled(coord: Tree, count: int, layout: AnyLayout) -> Tree:
    """The coordinate padded with `*` to `count` modes."""
    given = modes(coord)
    if len(given) > count:
        raise ValueError(f"coordinate {text(coord)} has more than {count} modes of {layout}")
    return (*given, *_free(count - len(given)))


def make_layout_tv(threads: Layout, values: Layout) -> tuple[Tree, Layout]:
    """The tile that the threads' values cover, and its thread-value layout, from (thread, value) to
    the index of an element in the tile, with the first mode fastest."""
    for layout in (threads, values):
        if not layout.is_static:
            raise ValueError(f"{layout} is not known at compile time")
    elements = raked_product(threads, values)
    count = size(threads)
    pairs = Layout((count, size(values)), (Int(1), count))
    tile = product_each(elements.shape)
    return tile, composition(right_inverse(elements), pairs).linear


def make_fragment_layout_like(layout: AnyLayout) -> Layout:
    """The register layout for a partition with `layout`: the first mode is contiguous, the others
    follow in the order of their strides. Raises ValueError if the shape is dynamic."""
    linear = layout.linear
    shape = linear.shape
    if not is_static(shape):
        raise ValueError(
            f"a fragment's shape must be known at compile time, but {linear} is dynamic"
        )
    if rank(shape) == 1:
        return Layout(shape, compact(shape))
    first = Layout(shape[0], compact(shape[0]))
    rest = take(linear, 1)
    ordered = Layout(rest.shape, ordered_strides(rest.shape, rest.stride))
    return tiled_product(first, ordered).linear
