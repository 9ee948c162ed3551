"""The function whose launches are measured: three tensors, and an integer that kernels get."""

import fly
import fly.expr as fx

BLOCK = 256


@fly.kernel
def add_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    if i < n:
        C[i] = A[i] + B[i]


@fly.jit
def add(
    A: fx.Tensor[fx.Float32, "m"],
    B: fx.Tensor[fx.Float32, "m"],
    C: fx.Tensor[fx.Float32, "m"],
    n: fx.Int32,
):
    add_kernel(A, B, C, n).launch(grid=fx.ceildiv(n, BLOCK), block=BLOCK)
