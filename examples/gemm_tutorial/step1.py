"""C = A·Bᵀ, one thread for each element of C.

A is M×K and B is N×K, both of f16; C is M×N of f32. M and N are multiples of 16.
"""

import fly
import fly.expr as fx

TILE = 16  # rows and columns of C that a workgroup computes


@fly.kernel
def gemm_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    row = fx.block_idx.y * TILE + fx.thread_idx.y
    column = fx.block_idx.x * TILE + fx.thread_idx.x
    total = fx.Float32(0)
    for k in range(A.shape[1]):
        total += A[row, k].to(fx.Float32) * B[column, k].to(fx.Float32)
    C[row, column] = total


@fly.jit
def gemm(A: fx.Tensor[fx.Float16, "M", "K"], B: fx.Tensor[fx.Float16, "N", "K"]):
    rows, columns = A.shape[0], B.shape[0]
    C = fx.empty((rows, columns), fx.Float32)
    gemm_kernel(A, B, C).launch(grid=(columns // TILE, rows // TILE), block=(TILE, TILE))
    return C
