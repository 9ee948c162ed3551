"""Layouts of tiles in shared memory whose rows are permuted, so that columns are in all banks."""

from __future__ import annotations

from typing import Any

from fly_trace.layouts.layouts import (
    ComposedLayout,
    SwizzleType,
    make_composed_layout,
    make_layout,
    static,
)
from fly_trace.values.dtypes import DType

GROUP = 16  # bytes that a swizzle keeps together
SWIZZLES = {32: 1, 64: 2, 128: 3}  # bytes of a row → the bits of its swizzle


def swizzled_tile(
    dtype: DType, shape: tuple[int, int], contiguous: int = 1, row: int = 128
) -> ComposedLayout:
    """The layout of a tile with rows of `row` bytes (32, 64 or 128) along mode `contiguous`, in
    which groups of 16 bytes are permuted. A tile that is wider consists of several such columns,
    one behind the other. The extent along `contiguous` is a multiple of a row's elements."""
    width = row * 8 // dtype.bits
    across, along = shape[1 - contiguous], shape[contiguous]
    other = (across, width)
    inner: Any = ((width, along // width), (1, width * across))
    if along == width:
        inner = (width, 1)
    modes = [other, inner] if contiguous else [inner, other]
    layout = make_layout(tuple(one[0] for one in modes), tuple(one[1] for one in modes))
    base = (GROUP * 8 // dtype.bits).bit_length() - 1
    return make_composed_layout(static(SwizzleType.get(SWIZZLES[row], base, 3)), layout)
