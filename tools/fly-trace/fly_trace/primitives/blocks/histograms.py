"""Histograms of a block, in shared memory."""

from __future__ import annotations

from typing import Any

from fly_trace import expr as fx
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.primitives.blocks import threads


def init_histogram(bins: int, *, barrier: bool = True) -> Any:
    """An array of `bins` counters of i32 in shared memory, all 0.

    bins: a Python int. Each call gives another array, but a loop gives the same one again: barrier:
    False leaves out the first barrier, which waits until it was read. Cost: 4 · bins bytes of
    shared memory, ceil(bins / threads) stores, 2 barriers. As CUB's BlockHistogram::InitHistogram.
    """
    size = threads.size("fx.block.init_histogram")
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        tracing.refuse(f"the bins of a histogram are a positive Python int, not {describe(bins)}")
    counts, tid = fx.shared_array(fx.Int32, bins), threads.index()
    if barrier:
        fx.barrier()
    for first in fx.range_constexpr(0, bins, size):
        if first + size <= bins or first + tid < bins:
            counts[first + tid] = 0
    fx.barrier()
    return counts


def add_to_histogram(counts: Any, items: Any, *, valid: Any = None) -> None:
    """Counts items in an array of `init_histogram`; read it behind a barrier.

    items: an integer from 0 to bins - 1, or a list of them, in blocked arrangement. valid: only the
    first items of the block are counted, so many. Deterministic: integers are added. Cost: an
    atomic addition to shared memory for each item; those of one bin follow one another. As CUB's
    BlockHistogram::Composite with BLOCK_HISTO_ATOMIC.
    """
    found = threads.items_of(items, "fx.block.add_to_histogram")
    for i, item in enumerate(found):
        if item.dtype.is_float:
            tracing.refuse(f"fx.block.add_to_histogram counts integers, not {describe(item)}")
        if valid is None or threads.index() * len(found) + i < valid:
            fx.atomic_add(counts, item.to(fx.Int32), 1)


def histogram(items: Any, bins: int, *, valid: Any = None, barrier: bool = True) -> Any:
    """The numbers of items with each value, as an array of i32 in shared memory.

    items, valid: as of `add_to_histogram`. bins, barrier: as of `init_histogram`. The
    array may be read at once. Cost: that of both, and 1 barrier. As CUB's
    BlockHistogram::Histogram.
    """
    counts = init_histogram(bins, barrier=barrier)
    add_to_histogram(counts, items, valid=valid)
    fx.barrier()
    return counts
