"""Where tiles of attention are: rows of matrices in memory, as buffers, and tiles in LDS."""

from __future__ import annotations

from typing import Any

import fly.expr as fx
from fly.kernels.attention.workgroup import VALUES, Workgroup


def tile_rows(group: Workgroup, matrix: Any, tile: Any, rows: int) -> Any:
    """A tile of so many rows, as a buffer: beyond the matrix, loads are 0, and stores nothing."""
    step = matrix.stride[0]
    start = fx.get_iter(matrix) + fx.Int64(fx.Uint32(tile)) * (rows * step)
    return tile_from(group, start, step, matrix.shape[0] - tile * rows, rows)


def tile_from(group: Workgroup, start: Any, step: Any, left: Any, rows: int) -> Any:
    """A tile of so many rows from a pointer on, `step` elements apart, of which `left` exist."""
    row_bytes = fx.Int32(step) * (group.dtype.bits // 8)
    size = fx.max(fx.min(left, rows) * row_bytes, 0)
    layout = fx.make_layout((rows, group.d), (step, 1))
    return fx.make_view(fx.rocdl.make_buffer_ptr(start, size), layout)


def along_k(matrix: Any, product: Any) -> Any:
    """Divides a matrix along K into what one product takes: (rows, columns, parts)."""
    return fx.flat_divide(matrix, (matrix.shape[0], product.tile_size_mnk[2]))[None, None, 0, None]


def shared(dtype: Any, values: int) -> Any:
    """Memory in LDS."""
    return fx.SharedAllocator().allocate(fx.Array[dtype, values, 16]).peek()


def in_lds(group: Workgroup, rows: int, columns: Any, *, turned: bool = False) -> Any:
    """The layout of a tile in LDS: of so many rows, whose elements have the layout `columns`. Eight
    of a row are adjacent. Threads that read one column of several rows use different banks: these
    eights are permuted by the row or, with `by_eights`, lie below those of the row before, with a
    gap of one between columns. An address then is that of the thread and a constant, which is a
    part of the instruction. `turned`: rows 0, 1, 8, 9, 16, 17 … come first, then 2, 3, 10, 11 …"""
    count = step = fx.size(columns)
    if group.by_eights:
        step, gap = VALUES, (rows + 1) * VALUES
        eights = fx.make_layout((VALUES, count // VALUES), (1, gap))
        columns = fx.composition(eights, columns)
    below = (rows, step)
    if turned:
        eights = rows // VALUES
        below = ((2, VALUES // 2, eights), (step, 2 * eights * step, 2 * step))
    shape, steps = columns.shape.unpack(), columns.stride.unpack()
    layout = fx.make_layout((below[0], shape), (below[1], steps))
    if group.by_eights:
        return layout
    groups = (count // VALUES).bit_length() - 1
    swizzle = fx.static(fx.SwizzleType.get(min(groups, 3), 3, max(groups, 3)))
    return fx.make_composed_layout(swizzle, layout)
