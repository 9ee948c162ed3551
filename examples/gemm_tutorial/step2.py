"""C = A·Bᵀ, with tiles of A and B in LDS, which all threads of a workgroup read.

A is M×K and B is N×K, both of f16; C is M×N of f32. M, N and K are multiples of 16.
"""

import fly
import fly.expr as fx

TILE = 16  # rows and columns of C that a workgroup computes, and the extent of tiles along K


@fly.kernel
def gemm_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    a_tile = fx.shared_array(fx.Float16, (TILE, TILE))
    b_tile = fx.shared_array(fx.Float16, (TILE, TILE))
    x, y = fx.thread_idx.x, fx.thread_idx.y
    row, column = fx.block_idx.y * TILE, fx.block_idx.x * TILE

    total = fx.Float32(0)
    for first in range(0, A.shape[1], TILE):
        a_tile[y, x] = A[row + y, first + x]
        b_tile[y, x] = B[column + y, first + x]
        fx.barrier()  # all threads have written
        for k in range(TILE):
            total += a_tile[y, k].to(fx.Float32) * b_tile[x, k].to(fx.Float32)
        fx.barrier()  # all threads have read
    C[row + y, column + x] = total


@fly.jit
def gemm(A: fx.Tensor[fx.Float16, "M", "K"], B: fx.Tensor[fx.Float16, "N", "K"]):
    rows, columns = A.shape[0], B.shape[0]
    C = fx.empty((rows, columns), fx.Float32)
    gemm_kernel(A, B, C).launch(grid=(columns // TILE, rows // TILE), block=(TILE, TILE))
    return C
