"""A number of each query that the gradients' kernels read: sum(dOut · Out) - dLse."""

from __future__ import annotations

import fly
import fly.expr as fx
from fly.kernels.attention.vectors import WIDTH, load_vector

DELTA_THREADS = 256


@fly.kernel
def delta_kernel(
    dOut: fx.Tensor, Out: fx.Tensor, dLse: fx.Tensor, Delta: fx.Tensor, d: fx.Constexpr[int]
):
    """Delta = sum(dOut · Out) - dLse: eight elements of a row for each thread."""
    lanes = d // WIDTH
    row = fx.block_idx.x * (DELTA_THREADS // lanes) + fx.thread_idx.x // lanes
    head, batch = fx.block_idx.y, fx.block_idx.z
    length = Out.shape[2]
    gradient, out = [
        load_vector(
            one[batch, head, fx.min(row, length - 1), None], fx.thread_idx.x % lanes * WIDTH
        )
        for one in (dOut, Out)
    ]
    total = fx.warp.reduce((gradient * out).reduce("add"), width=lanes)
    if row < length:
        Delta[batch, head, row] = total - dLse[batch, head, row]
