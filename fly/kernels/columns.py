"""Sums along the columns of matrices: in parts, whose sums are added up. The parts depend on the
number of rows alone, so that results are the same in each run."""

from __future__ import annotations

import fly
import fly.expr as fx
from fly.kernels.row_plans import Plan

THREADS = 64  # of a block
WIDEST = 4  # columns of a thread, whose sums are stored as f32
MOST_PARTS, LEAST_ROWS = 64, 16  # of a part


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
    column = fx.block_idx.x * THREADS + fx.thread_idx.x
    if column < Y.shape[0]:
        total = parts[0, column]
        for part in range(1, parts.shape[0]):
            total += parts[part, column]
        Y[column] = total.to(Y.dtype)


def add_up(parts, dtype):
    """Returns the sums along the columns of a small matrix, as a vector, in a host function."""
    Y = fx.empty(parts.shape[1], dtype)
    add_up_kernel(parts, Y).launch(grid=fx.ceildiv(Y.shape[0], THREADS), block=THREADS)
    return Y
