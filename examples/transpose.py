"""B = Aᵀ through an LDS tile, so that both reads and writes run along rows.

The tile has one padding column: work items that read a column then use 32 banks, not 1.
"""

import fly
import fly.expr as fx

TILE = 32
ROWS = 8  # rows that a workgroup moves at a time: 32 x 8 work items


@fly.kernel
def transpose_kernel(A: fx.Tensor, B: fx.Tensor):
    tile = fx.shared_array(fx.Float32, (TILE, TILE + 1))
    x, y = fx.thread_idx.x, fx.thread_idx.y
    height, width = A.shape[0], A.shape[1]

    column = fx.block_idx.x * TILE + x
    for step in fx.range_constexpr(0, TILE, ROWS):
        row = fx.block_idx.y * TILE + y + step
        if (row < height) & (column < width):
            tile[y + step, x] = A[row, column]
    fx.barrier()

    column = fx.block_idx.y * TILE + x
    for step in fx.range_constexpr(0, TILE, ROWS):
        row = fx.block_idx.x * TILE + y + step
        if (row < width) & (column < height):
            B[row, column] = tile[x, y + step]


@fly.jit
def transpose(A: fx.Tensor[fx.Float32, "M", "N"]):
    height, width = A.shape[0], A.shape[1]
    B = fx.empty((width, height), fx.Float32)
    grid = (fx.ceildiv(width, TILE), fx.ceildiv(height, TILE))
    transpose_kernel(A, B).launch(grid=grid, block=(TILE, ROWS))
    return B


def main():
    import numpy as np

    a = np.random.default_rng(5).standard_normal((131, 77), dtype=np.float32)
    np.testing.assert_array_equal(transpose(a), a.T)
    print(f"transpose: {a.shape[0]}x{a.shape[1]}, equal to NumPy's")


if __name__ == "__main__":
    main()
