"""Prefix sums of any length, by many blocks.

Three kernels: each block adds up its part, one block makes the prefix sums of these, and each block
those of its part. An element is read twice. Results are the same in each run, unlike those of one
pass with look-back (`examples/prefix_sum.py`), which splits sums of floats by what has finished.
"""

from __future__ import annotations

from typing import Any

from fly_common.errors import UsageError

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.arrays import FLOATS, INTEGERS, check_types, contiguous
from fly.kernels.operators import like, operator
from fly.kernels.rowwise.rows import wide_type

THREADS, ITEMS = 256, 8
PART = THREADS * ITEMS  # elements of a block


def sum_type(dtype):
    """Returns the type that sums are computed in."""
    return wide_type(dtype) if dtype.is_float else dtype


def own_items(X, dtype):
    """Returns the thread's elements, the block's first one, and how many there are from it on."""
    first = fx.Int64(fx.block_idx.x) * PART
    left = X.shape[0] - first
    items = fx.block.load(X, ITEMS, offset=first, valid=left, arrangement="transposed")
    return [item.to(dtype) for item in items], first, left


@fly.kernel
def totals_kernel(X: fx.Tensor, totals: fx.Tensor):
    dependent.let_next_begin()
    items, _, _ = own_items(X, totals.dtype)
    total = fx.block.reduce(items)
    if fx.thread_idx.x == 0:
        totals[fx.block_idx.x] = total


@fly.kernel
def offsets_kernel(totals: fx.Tensor):
    """Replaces the blocks' totals by what comes before each, by a single block."""
    dependent.let_next_begin()
    dependent.wait_for_previous()
    before = totals.dtype(0)
    for first in range(0, totals.shape[0], THREADS):
        place = first + fx.thread_idx.x
        own = totals[place] if place < totals.shape[0] else totals.dtype(0)
        offset, total = fx.block.exclusive_scan(own, total=True)
        if place < totals.shape[0]:
            totals[place] = before + offset
        before += total


@fly.kernel
def prefix_sum_kernel(
    X: fx.Tensor, offsets: fx.Tensor, Y: fx.Tensor, exclusive: fx.Constexpr[bool]
):
    items, first, left = own_items(X, offsets.dtype)
    scan = fx.block.exclusive_scan if exclusive else fx.block.inclusive_scan
    sums = scan(items)
    dependent.wait_for_previous()
    before = offsets[fx.block_idx.x]
    made = [(before + one).to(Y.dtype) for one in sums]
    fx.block.store(Y, made, offset=first, valid=left, arrangement="transposed")


@fly.jit
def prefix_sum_vector(X: fx.Tensor[fx.Numeric, "n"], exclusive: fx.Constexpr[bool]):
    Y = fx.empty(X.shape, X.dtype)
    blocks = fx.ceildiv(X.shape[0], PART)
    totals = fx.empty(blocks, sum_type(X.dtype))
    totals_kernel(X, totals).launch(grid=blocks, block=THREADS)
    offsets_kernel(totals).launch(grid=fx.min(blocks, 1), block=THREADS)
    prefix_sum_kernel(X, totals, Y, exclusive).launch(grid=blocks, block=THREADS)
    return Y


@operator("(Tensor x, bool exclusive=False) -> Tensor", fake=like)
def prefix_sum(x: Any, exclusive: bool = False) -> Any:
    """The sums of all elements up to each one; `exclusive` leaves out the element itself.

    x: a vector of integers or floats. Returns a vector of the same type. Integers wrap; sums of
    f16 and bf16 are computed in f32 and rounded.
    """
    check_types(INTEGERS + FLOATS, x=x)
    if x.ndim != 1:
        raise UsageError(f"prefix_sum takes a vector, not an array of {x.ndim} dimensions")
    return prefix_sum_vector(contiguous(x), exclusive)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.exclusive = inputs[1]


@prefix_sum.gradient(_save)
def _(ctx: Any, gradient: Any) -> Any:
    return prefix_sum(gradient.flip(0), ctx.exclusive).flip(0), None
