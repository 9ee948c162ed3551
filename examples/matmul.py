"""C = A·B in f32, one 16x16 tile of C per workgroup, A and B staged through LDS."""

import fly
import fly.expr as fx

TILE = 16


@fly.kernel
def matmul_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    a_tile = fx.shared_array(fx.Float32, (TILE, TILE))
    b_tile = fx.shared_array(fx.Float32, (TILE, TILE))
    x, y = fx.thread_idx.x, fx.thread_idx.y
    rows, inner, columns = A.shape[0], A.shape[1], B.shape[1]
    row = fx.block_idx.y * TILE + y
    column = fx.block_idx.x * TILE + x

    total = fx.Float32(0)
    for k in range(fx.Int64(0), inner, TILE):
        a_tile[y, x] = 0.0
        if (row < rows) & (k + x < inner):
            a_tile[y, x] = A[row, k + x]
        b_tile[y, x] = 0.0
        if (k + y < inner) & (column < columns):
            b_tile[y, x] = B[k + y, column]
        fx.barrier()
        for j in fx.range_constexpr(TILE):
            total = fx.fma(a_tile[y, j], b_tile[j, x], total)
        fx.barrier()

    if (row < rows) & (column < columns):
        C[row, column] = total


@fly.jit
def matmul(A: fx.Tensor[fx.Float32, "M", "K"], B: fx.Tensor[fx.Float32, "K", "N"]):
    rows, columns = A.shape[0], B.shape[1]
    C = fx.empty((rows, columns), fx.Float32)
    grid = (fx.ceildiv(columns, TILE), fx.ceildiv(rows, TILE))
    matmul_kernel(A, B, C).launch(grid=grid, block=(TILE, TILE))
    return C


def main():
    import numpy as np

    random = np.random.default_rng(6)
    a = random.standard_normal((100, 70), dtype=np.float32)
    b = random.standard_normal((70, 90), dtype=np.float32)
    c = matmul(a, b)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)
    print("matmul: 100x70x90, within 1e-5 of NumPy's float64")


if __name__ == "__main__":
    main()
