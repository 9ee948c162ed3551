"""The layout algebra: coordinates and offsets, composition, inverses, divisions, products."""

from __future__ import annotations

from typing import Any

from fly_trace.core import tracing
from fly_trace.core.dialect_value import DialectValue, apply
from fly_trace.core.tracing import describe
from fly_trace.layouts.int_tuples import IntTuple, int_tuple
from fly_trace.layouts.layouts import Layout, get_shape, layout_of, make_layout
from fly_trace.layouts.tiles import tiler
from fly_trace.layouts.tuple_math import int_tuple_product_each, shaped
from fly_trace.layouts.tuple_math import slice as slice_
from fly_trace.values.dtypes import DType

__all__ = [
    "blocked_product",
    "coalesce",
    "complement",
    "composition",
    "coprofile",
    "coshape",
    "cosize",
    "crd2idx",
    "flat_divide",
    "flat_product",
    "get_1d_coord",
    "get_flat_coord",
    "idx2crd",
    "left_inverse",
    "local_partition",
    "local_tile",
    "logical_divide",
    "logical_product",
    "make_layout_tv",
    "raked_product",
    "recast_layout",
    "right_inverse",
    "size",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "zipped_divide",
    "zipped_product",
]


def size(int_tuple: Any) -> Any:
    """The number of elements of a shape, layout or tensor: a Python int if it is static."""
    return apply("size", shaped("size", int_tuple))


def coprofile(layout: Any) -> Any:
    """A tuple of zeros with the structure of the layout's codomain."""
    return apply("coprofile", layout_of(layout, "fx.coprofile"))


def coshape(layout: Any) -> Any:
    """The shape of the layout's codomain: its greatest offset plus one, for each mode."""
    return apply("coshape", layout_of(layout, "fx.coshape"))


def cosize(layout: Any) -> Any:
    """The greatest offset of a layout plus one."""
    return apply("cosize", layout_of(layout, "fx.cosize"))


def crd2idx(crd: Any, layout: Any) -> Any:
    """The offset of a coordinate: 9 for (1, 2) in (4,8):(1,4)."""
    return apply("crd2idx", int_tuple(crd, "fx.crd2idx"), layout_of(layout, "fx.crd2idx"))


def _from_index(name: str, meaning: str) -> Any:
    def function(index: Any, layout: Any) -> Any:
        what = f"fx.{name}"
        return apply(name, int_tuple(index, what), layout_of(layout, what))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = meaning
    return function


idx2crd = _from_index("idx2crd", "The coordinate whose offset is `index`, nested as the shape.")
get_flat_coord = _from_index(
    "get_flat_coord", "The coordinate whose offset is `index`, one number a mode."
)
get_1d_coord = _from_index(
    "get_1d_coord", "The number, first mode fastest, of the coordinate whose offset is `index`."
)


def coalesce(layout: Any, pattern: Any = None) -> Any:
    """The same function with as few modes as possible; with a pattern, mode by mode."""
    operands = [layout_of(layout, "fx.coalesce")]
    if pattern is not None:
        operands.append(int_tuple(pattern, "fx.coalesce"))
    return apply("coalesce", *operands)


def composition(layout: Any, tiler: Any) -> Any:
    """The composition of `layout` with `tiler`: coordinates of the second, offsets of the first. A
    tile is composed mode by mode."""
    return _both("composition", layout, tiler)


def complement(layout: Any, codomain_size: Any = None) -> Any:
    """The layout of the offsets that `layout` omits, up to `codomain_size`."""
    operands = [layout_of(layout, "fx.complement")]
    if codomain_size is not None:
        operands.append(int_tuple(codomain_size, "fx.complement"))
    return apply("complement", *operands)


def right_inverse(layout: Any) -> Any:
    """The layout R with layout(R(i)) = i."""
    return apply("right_inverse", layout_of(layout, "fx.right_inverse"))


def left_inverse(layout: Any) -> Any:
    """The layout L with L(layout(i)) = i."""
    return apply("left_inverse", layout_of(layout, "fx.left_inverse"))


def _both(name: str, layout: Any, other: Any) -> Any:
    what = f"fx.{name}"
    if not isinstance(other, DialectValue):
        other = tiler(other, what) if isinstance(other, (tuple, list)) else int_tuple(other, what)
    return apply(name, layout_of(layout, what), other)


def _divide(name: str, meaning: str) -> Any:
    def function(layout: Any, divisor: Any) -> Any:
        what = f"fx.{name}"
        return apply(name, layout_of(layout, what), tiler(divisor, what))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{meaning} `divisor` is a tile, a layout, or a tuple of extents."
    return function


logical_divide = _divide("logical_divide", "Each mode as (inside a tile, tile).")
zipped_divide = _divide("zipped_divide", "(inside a tile, which tile), each with all modes.")
tiled_divide = _divide("tiled_divide", "(inside a tile, tiles of mode 0, tiles of mode 1, …).")
flat_divide = _divide(
    "flat_divide", "The modes inside a tile, then the modes that count tiles, one after the other."
)


def _product(name: str, meaning: str) -> Any:
    def function(layout: Any, tiler: Any) -> Any:
        return _both(name, layout, tiler)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = meaning
    return function


logical_product = _product("logical_product", "`layout` repeated as `tiler` says, mode by mode.")
zipped_product = _product("zipped_product", "(a copy of `layout`, which copy).")
tiled_product = _product("tiled_product", "(a copy of `layout`, copies of mode 0, …).")
flat_product = _product("flat_product", "`layout`'s modes, then the modes that count copies.")
blocked_product = _product("blocked_product", "Copies of `layout` side by side, as blocks.")
raked_product = _product("raked_product", "Copies of `layout` interleaved.")


def recast_layout(layout: Any, old_type_bits: Any, new_type_bits: Any) -> Any:
    """The layout of the same memory in elements of another width, given in bits or as types."""
    return apply(
        "recast_layout",
        layout_of(layout, "fx.recast_layout"),
        new_type_bits=_bits(new_type_bits),
        old_type_bits=_bits(old_type_bits),
    )


def _bits(width: Any) -> int:
    if isinstance(width, DType):
        return width.bits
    if isinstance(width, int) and not isinstance(width, bool):
        return width
    return tracing.refuse(
        f"fx.recast_layout takes element types or widths in bits, not {describe(width)}"
    )


def tile_to_shape(block: Any, trg_shape: Any, ord_shape: Any) -> Any:
    """`block` repeated to fill the shape `trg_shape`, with the repetitions in order `ord_shape`."""
    what = "fx.tile_to_shape"
    return apply(
        "tile_to_shape",
        layout_of(block, what),
        int_tuple(trg_shape, what),
        int_tuple(ord_shape, what),
    )


def make_layout_tv(thr_layout: Layout, val_layout: Layout) -> tuple[Any, Layout]:
    """Returns (tile, TV layout) for threads arranged by `thr_layout`, and the values of each by
    `val_layout`. The TV layout maps (thread, value) to a position in the tile, first mode
    fastest."""
    for name, layout in (("thr_layout", thr_layout), ("val_layout", val_layout)):
        if not isinstance(layout, Layout) or not layout.is_static:
            tracing.refuse(
                f"{name} of fx.make_layout_tv must be a static layout, not {describe(layout)}"
            )
    tile = raked_product(thr_layout, val_layout)
    threads, values = int(size(thr_layout)), int(size(val_layout))
    by_thread = make_layout((threads, values), (1, threads))
    extents = int_tuple_product_each(get_shape(tile))
    unpacked = extents.unpack() if isinstance(extents, IntTuple) else extents
    return unpacked, composition(right_inverse(tile), by_thread)


def local_tile(tensor: Any, tiler: Any, coord: Any) -> Any:
    """Divides a tensor or layout into tiles, and returns the tile at `coord`. None in `coord` keeps
    the mode that counts tiles."""
    return slice_(zipped_divide(tensor, tiler), (None, coord))


def local_partition(tensor: Any, threads: Layout, index: Any) -> Any:
    """The elements of thread `index`. `threads` arranges the threads of a tile, one per element; a
    thread's elements are as far apart as the tile is large."""
    if not isinstance(threads, Layout) or not threads.is_static:
        tracing.refuse(
            f"fx.local_partition takes a static layout of threads, not {describe(threads)}"
        )
    extents = int_tuple_product_each(get_shape(threads))
    tiles = zipped_divide(tensor, extents.unpack())
    return slice_(tiles, (threads.get_flat_coord(index), None))
