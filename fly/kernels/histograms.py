"""Counts of integers."""

from __future__ import annotations

from typing import Any

from fly_common.errors import UsageError

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.arrays import INTEGERS, check_types, contiguous
from fly.kernels.operators import operator

THREADS, ITEMS = 256, 8  # of a block, and the elements that a thread takes at least
MOST_BLOCKS = 256
MOST_SHARED = 8192  # bins that a block counts in shared memory
MOST_BINS = 2**31 - 1


@fly.kernel
def clear_kernel(counts: fx.Tensor):
    dependent.let_next_begin()
    i = fx.block_idx.x * THREADS + fx.thread_idx.x
    if i < counts.shape[0]:
        counts[i] = 0


@fly.kernel
def histogram_kernel(data: fx.Tensor, counts: fx.Tensor, rounds: fx.Int64, bins: fx.Constexpr[int]):
    """Each block counts in shared memory, then adds its counts."""
    own = fx.block.init_histogram(bins)
    first, step = first_and_step()
    for i in range(rounds):
        place = first + i * step
        if place < data.shape[0] and 0 <= data[place] < bins:
            fx.block.add_to_histogram(own, data[place])
    fx.barrier()
    dependent.wait_for_previous()
    for i in range(fx.thread_idx.x, bins, THREADS):
        if own[i] > 0:
            fx.atomic_add(counts, i, own[i].to(fx.Int32))


@fly.kernel
def wide_histogram_kernel(data: fx.Tensor, counts: fx.Tensor, rounds: fx.Int64):
    """Counts in global memory, where shared memory has no room for all bins."""
    dependent.wait_for_previous()
    first, step = first_and_step()
    for i in range(rounds):
        place = first + i * step
        if place < data.shape[0] and 0 <= data[place] < counts.shape[0]:
            fx.atomic_add(counts, data[place], 1)


def first_and_step():
    """Returns the number of a thread's first element, and how far the next one is. Threads take
    their elements in rounds, which the host counts: LLVM would divide for the trips of a loop."""
    first = fx.Int64(fx.block_idx.x) * THREADS + fx.thread_idx.x
    return first, fx.Int64(fx.grid_dim.x) * THREADS


@fly.jit
def histogram_vector(data: fx.Tensor[fx.Integer, "n"], bins: fx.Constexpr[int]):
    counts = fx.empty(bins, fx.Int32)
    clear_kernel(counts).launch(grid=fx.ceildiv(bins, THREADS), block=THREADS)
    blocks = fx.min(fx.ceildiv(data.shape[0], THREADS * ITEMS), MOST_BLOCKS)
    rounds = fx.ceildiv(data.shape[0], fx.max(blocks, 1) * THREADS)
    if bins <= MOST_SHARED:
        histogram_kernel(data, counts, rounds, bins).launch(grid=blocks, block=THREADS)
    else:
        wide_histogram_kernel(data, counts, rounds).launch(grid=blocks, block=THREADS)
    return counts


def _fake(x: Any, bins: int) -> Any:
    import torch

    return x.new_empty(bins, dtype=torch.int32)


@operator("(Tensor x, int bins) -> Tensor", fake=_fake)
def histogram(x: Any, bins: int) -> Any:
    """How often each of the integers 0 … bins - 1 is in x. Others are not counted.

    x: integers, of any shape. Returns a vector of `bins` counts of i32.
    """
    check_types(INTEGERS, x=x)
    if not 0 < bins <= MOST_BINS:
        raise UsageError(f"bins is {bins}, not from 1 to {MOST_BINS}")
    return histogram_vector(contiguous(x).reshape(-1), bins)
