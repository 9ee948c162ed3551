"""Sums along the columns of matrices: in parts, whose sums are added up. The parts depend on the
number of rows alone, so that results are the same in each run."""

from __future__ import annotations

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.rowwise.row_plans import Plan

THREADS = 64  # of a block
WIDEST = 4  # columns of a thread, whose sums are stored as f32
MOST_PARTS, LEAST_ROWS = 64, 16  # of a part
ADDED, LINES = 32, 32  # columns of a block that adds many parts, and threads of each
AT_ONCE = 8  # parts that such a thread loads before it adds them


def parts_of(rows):
    """Returns the number of parts of so many rows, and the rows of a part, in a host function."""
    parts = fx.max(1, fx.min(MOST_PARTS, fx.ceildiv(rows, LEAST_ROWS)))
    return parts, fx.ceildiv(rows, parts)


def column_plan(columns: int, vector: int) -> Plan:
    """How blocks take the columns of matrices, in vectors of so many adjacent elements at most."""
    vector = min(vector, WIDEST)
    return Plan(THREADS, vector, 1, False, columns % (THREADS * vector) == 0)


@fly.kernel
def add_up_kernel(parts: fx.Tensor, Y: fx.Tensor):
    dependent.wait_for_previous()
    column, columns = fx.block_idx.x * THREADS + fx.thread_idx.x, Y.shape[0]
    if (isinstance(columns, int) and columns % THREADS == 0) or column < columns:
        total = parts[0, column]
        for part in range(1, fx.Int32(parts.shape[0])):  # of MOST_PARTS at most
            total += parts[part, column]
        Y[column] = total.to(Y.dtype)


def add_up(parts, dtype):
    """Returns the sums along the columns of a small matrix, as a vector, in a host function."""
    Y = fx.empty(parts.shape[1], dtype)
    add_up_kernel(parts, Y).launch(grid=fx.ceildiv(Y.shape[0], THREADS), block=THREADS)
    return Y


@fly.kernel
def add_many_kernel(parts: fx.Tensor, Y: fx.Tensor, Z: fx.Tensor):
    """Adds parts to Y, and second ones to Z. `LINES` threads take the parts of a column in turn."""
    place, line = fx.thread_idx.x % ADDED, fx.thread_idx.x // ADDED
    column, kind = fx.block_idx.x * ADDED + place, fx.block_idx.y
    own = fx.shared_array(parts.dtype, (LINES, ADDED))
    total = parts.dtype(0)
    if column < Y.shape[0]:
        count = fx.Int32(parts.shape[1])
        for first in range(line, count, LINES * AT_ONCE):
            numbers = [first + i * LINES for i in fx.range_constexpr(AT_ONCE)]
            some = [parts[kind, fx.min(number, count - 1), column] for number in numbers]
            for number, one in zip(numbers, some, strict=True):
                total += fx.where(number < count, one, parts.dtype(0))
    own[line, place] = total
    fx.barrier()
    if line == 0 and column < Y.shape[0]:
        for other in fx.range_constexpr(1, LINES):
            total += own[other, place]
        if kind == 0:
            Y[column] = total.to(Y.dtype)
        else:
            Z[column] = total.to(Z.dtype)


def add_many(parts, dtype):
    """Returns the sums along the columns of one or two matrices of many rows, kinds × rows ×
    columns, as two vectors, in a host function. Without a second matrix the second one is empty."""
    kinds, columns = parts.shape[0], parts.shape[2]
    Y, Z = fx.empty(columns, dtype), fx.empty(columns if kinds > 1 else 0, dtype)
    add_many_kernel(parts, Y, Z).launch(
        grid=(fx.ceildiv(columns, ADDED), kinds), block=ADDED * LINES
    )
    return Y, Z
