"""A program of one kernel, for tests of how it is compiled."""

from __future__ import annotations

import fly
import fly.expr as fx
from fly.call.compiled import Compiled


@fly.kernel
def scale_kernel(X: fx.Tensor, n: fx.Int64):
    i = fx.block_idx.x * 256 + fx.thread_idx.x
    if i < n:
        X[i] = X[i] * 2.0


def scale(X: fx.Tensor[fx.Float32, 1000]):
    n = X.shape[0]
    scale_kernel(X, n).launch(grid=fx.ceildiv(n, 256), block=256)


def made(**options) -> Compiled:
    """Compiles `scale` with the options of `fly.jit`."""
    return fly.jit(**options)(scale).compile()
