"""Products of layouts: a block that is repeated as given by a tiler.

logical_product   (block, tiler)
zipped_product    (block, tiler)
tiled_product     (block, mode 0 of the tiler, mode 1, …)
flat_product      (mode 0 of the block, …, mode 0 of the tiler, …)
blocked_product   ((mode 0 of the block, mode 0 of the tiler), …): blocks side by side
raked_product     ((mode 0 of the tiler, mode 0 of the block), …): blocks interleaved
"""

from __future__ import annotations

from fly_dialect.algebra import leaf
from fly_dialect.algebra.arithmetic import ceil_div, product_each
from fly_dialect.algebra.composition import canonical, composition
from fly_dialect.algebra.construction import make_ordered_layout
from fly_dialect.algebra.coordinates import cosize, size
from fly_dialect.algebra.inverse import complement
from fly_dialect.algebra.structure import append, expand
from fly_dialect.layouts.int_tuple import Tree, rank
from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import AnyLayout, Layout


def logical_product(block: AnyLayout, tiler: Layout) -> AnyLayout:
    return block.with_linear(_product(block.linear, tiler))


def _product(block: Layout, tiler: Layout) -> Layout:
    end = leaf.multiply(size(block), cosize(tiler))
    repeated = composition(complement(block, end), tiler).linear
    return canonical(Layout((block.shape, repeated.shape), (block.stride, repeated.stride)))


def zipped_product(block: AnyLayout, tiler: Layout) -> AnyLayout:
    return logical_product(block, tiler)


def tiled_product(block: AnyLayout, tiler: Layout) -> AnyLayout:
    found = _product(block.linear, tiler)
    return block.with_linear(found.mapped(lambda tree: expand(tree, 1)))


def flat_product(block: AnyLayout, tiler: Layout) -> AnyLayout:
    found = _product(block.linear, tiler)
    return block.with_linear(found.mapped(lambda tree: expand(tree, 0, 1)))


def blocked_product(block: AnyLayout, tiler: Layout) -> AnyLayout:
    found = _padded_product(block.linear, tiler)
    return block.with_linear(found.mapped(lambda tree: _zipped(tree[0], tree[1])))


def raked_product(block: AnyLayout, tiler: Layout) -> AnyLayout:
    found = _padded_product(block.linear, tiler)
    return block.with_linear(found.mapped(lambda tree: _zipped(tree[1], tree[0])))


def _padded_product(block: Layout, tiler: Layout) -> Layout:
    """The product after padding both to the same rank."""
    count = max(rank(block.shape), rank(tiler.shape))
    return _product(append_ones(block, count), append_ones(tiler, count))


def append_ones(layout: Layout, count: int) -> Layout:
    """The layout with modes of extent 1 appended until it has `count`."""
    if rank(layout.shape) >= count:
        return layout
    return append(layout, Layout(Int(1), Int(0)), count)


def _zipped(first: Tree, second: Tree) -> Tree:
    """((mode 0 of first, mode 0 of second), …). If both have one mode, the product may have removed
    the tuple around it."""
    if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        return tuple(zip(first, second, strict=True))
    return first, second


def tile_to_shape(block: AnyLayout, shape: Tree, order: Tree) -> AnyLayout:
    """The block repeated to fill `shape`, with the repetitions in `order`."""
    linear = block.linear
    padded = append_ones(linear, rank(shape))
    counts = ceil_div(product_each(shape), product_each(padded.shape))
    return block.with_linear(blocked_product(padded, make_ordered_layout(counts, order)).linear)
