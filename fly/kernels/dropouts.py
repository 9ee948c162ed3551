"""Dropout by counter-based random numbers: nothing is stored for the gradient but the seed."""

from __future__ import annotations

from typing import Any

from fly_common.errors import UsageError

import fly
import fly.expr as fx
from fly.kernels.arrays import FLOATS, check_types, contiguous
from fly.kernels.operators import operator
from fly.kernels.rowwise.rows import wide_type

THREADS = 256
ITEMS = 4  # elements of a thread: Philox makes four numbers at a time


@fly.kernel
def dropout_kernel(
    X: fx.Tensor,
    Y: fx.Tensor,
    p: fx.Float32,
    scale: fx.Float64,
    seed: fx.Int64,
    offset: fx.Int64,
):
    group, wide = fx.Int64(fx.block_idx.x) * THREADS + fx.thread_idx.x, wide_type(X.dtype)
    factor = scale.to(wide)
    for i, number in enumerate(fx.random.uniform(seed, group, offset)):
        place = group * ITEMS + i
        if place < X.shape[0]:
            kept = X[place].to(wide) * factor
            Y[place] = fx.where(number < p, 0.0, kept).to(Y.dtype)


@fly.jit
def dropout_vector(
    X: fx.Tensor[fx.Float, "n"],
    p: fx.Float32,
    scale: fx.Float64,
    seed: fx.Int64,
    offset: fx.Int64,
):
    Y = fx.empty(X.shape, X.dtype)
    dropout_kernel(X, Y, p, scale, seed, offset).launch(
        grid=fx.ceildiv(X.shape[0], THREADS * ITEMS), block=THREADS
    )
    return Y


@operator(
    "(Tensor x, float p, SymInt seed, SymInt offset=0) -> Tensor",
    fake=lambda x, *_: x.new_empty(x.shape),
)
def dropout(x: Any, p: float, seed: int, offset: int = 0) -> Any:
    """x / (1 - p), and 0 instead of each element with the probability p.

    x: of f16, bf16, f32 or f64, of any shape. seed, offset: integers of 64 bits. Which elements
    become 0 depends on p, seed, offset and an element's place alone: Philox4x32-10 with the place
    / 4 as its counter. Another offset gives other numbers.
    """
    if not 0 <= p <= 1:
        raise UsageError(f"p is {p}, not from 0 to 1")
    check_types(FLOATS, x=x)
    scale = 1 / (1 - p) if p < 1 else 0.0
    return dropout_vector(contiguous(x).reshape(-1), p, scale, seed, offset).reshape(x.shape)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    _, *ctx.numbers = inputs


@dropout.gradient(_save)
def _(ctx: Any, gradient: Any) -> Any:
    return dropout(gradient, *ctx.numbers), None, None, None
