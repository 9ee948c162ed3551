"""The greatest elements of each row.

Each thread keeps the k greatest elements of its part of a row, sorted, in registers. The first
elements of these lists then compete k times for the next place in the result.
"""

from __future__ import annotations

from typing import Any

from fly_common.errors import UsageError

import fly
import fly.expr as fx
from fly.kernels.arrays import SMALL_FLOATS, SMALL_INTEGERS, as_matrix, check_types
from fly.kernels.operators import operator

THREADS = 128  # of a block, which takes a row
MOST = 64  # elements that a thread keeps
LAST = 2**31 - 1
NOTHING = -(2**63)  # less than the key of any element


def key_of(value, column, largest):
    """Returns an integer that orders elements: by value, then the lower column is greater. Its
    upper half, of 32 bits with a sign, is the order of values."""
    if value.dtype.is_float:
        number = value.to(fx.Float32)
        order = fx.Int32(LAST)  # of NaN
        if not fx.isnan(number):
            bits = (number + 0.0).bitcast(fx.Int32)  # -0.0 + 0.0 is 0.0
            order = bits if bits >= 0 else bits ^ LAST
        order = fx.Int64(order)
    else:
        order = fx.Int64(value)
        if value.dtype is fx.Uint32:
            order -= 2**31
    return (order if largest else ~order) << 32 | (LAST - column)


def column_of(key):
    return LAST - fx.Int32(key)


def inserted(key, best):
    """Returns the greatest of a sorted list and a new key, as a sorted list of the same length."""
    result = []
    for kept in best:
        result.append(fx.max(kept, key))
        key = fx.min(kept, key)
    return result


@fly.kernel
def top_k_kernel(X: fx.Tensor, values: fx.Tensor, places: fx.Tensor, largest: fx.Constexpr[bool]):
    row = fx.block_idx.x
    columns, k = X.shape[1], values.shape[1]
    best = [fx.Int64(NOTHING)] * k
    for column in range(fx.thread_idx.x, columns, THREADS):
        key = key_of(X[row, column], column, largest)
        if key > best[-1]:
            best = inserted(key, best)
    for place in range(k):
        winner = fx.block.reduce(best[0], "max")
        if winner == best[0]:  # keys are unique: this is one thread
            column = column_of(winner)
            values[row, place] = X[row, column]
            places[row, place] = column
            best = [*best[1:], NOTHING]


@fly.jit
def top_k_matrix(
    X: fx.Tensor[fx.Numeric, "M", fx.sym_int32("N")],
    k: fx.Constexpr[int],
    largest: fx.Constexpr[bool],
):
    rows = X.shape[0]
    values, places = fx.empty((rows, k), X.dtype), fx.empty((rows, k), fx.Int32)
    top_k_kernel(X, values, places, largest).launch(grid=rows, block=THREADS)
    return values, places


def _fake(x: Any, k: int, largest: bool = True) -> Any:
    import torch

    shape = (*x.shape[:-1], k)
    return x.new_empty(shape), x.new_empty(shape, dtype=torch.int32)


@operator("(Tensor x, int k, bool largest=True) -> (Tensor, Tensor)", fake=_fake)
def top_k(x: Any, k: int, largest: bool = True) -> Any:
    """(values, places): the k greatest elements along the last dimension, in descending order, and
    their places, of i32. With largest=False the least ones, in ascending order.

    x: of integers of at most 32 bits, bool, f16, bf16 or f32. k: from 1 to 64, and at most the
    length of a row. Of equal elements those with the lowest places come first; 0.0 and -0.0 are
    equal. NaN is greater than every number.
    """
    check_types((*SMALL_FLOATS, *SMALL_INTEGERS, "bool"), x=x)
    if x.ndim == 0 or not 0 < k <= min(MOST, x.shape[-1]):
        most = min(MOST, x.shape[-1]) if x.ndim else 0
        raise UsageError(f"k is {k}, not from 1 to {most}")
    k = int(k)  # True is an integer for Python, and no extent
    values, places = top_k_matrix(as_matrix(x), k, largest)
    shape = (*x.shape[:-1], k)
    return values.reshape(shape), places.reshape(shape)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(output[1])
    ctx.shape = inputs[0].shape
    ctx.mark_non_differentiable(output[1])


@top_k.gradient(_save)
def _(ctx: Any, gradient: Any, _: Any) -> Any:
    (places,) = ctx.saved_tensors
    return gradient.new_zeros(ctx.shape).scatter(-1, places.long(), gradient), None, None
