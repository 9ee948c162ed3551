"""Z = a·X + Y over the last 64 columns of matrices that span more than 2³¹ bytes.

Only those columns of the matrices are accessed, so the other pages are never allocated: addresses
need more than 32 bits, which the example demonstrates, but the machine needs only 10 MB.
"""

import fly
import fly.expr as fx

COLUMNS = 64


@fly.kernel
def saxpy_wide_kernel(a: fx.Float32, X: fx.Tensor, Y: fx.Tensor, Z: fx.Tensor):
    row = fx.block_idx.x
    column = fx.thread_idx.x
    far = X.shape[1] - COLUMNS + column
    Z[row, column] = fx.fma(a, X[row, far], Y[row, far])


@fly.jit
def saxpy_wide(
    a: fx.Float32,
    X: fx.Tensor[fx.Float32, "rows", "columns"],
    Y: fx.Tensor[fx.Float32, "rows", "columns"],
):
    rows = X.shape[0]
    Z = fx.empty((rows, COLUMNS), fx.Float32)
    saxpy_wide_kernel(a, X, Y, Z).launch(grid=rows, block=COLUMNS)
    return Z


ROWS, WIDTH = 1030, 1 << 19  # 2.16e9 bytes


def make_input(seed):
    """Returns a matrix of 2.16e9 bytes, of which 4 MiB are allocated: its last 64 columns."""
    import mmap

    import numpy as np

    pages = mmap.mmap(-1, ROWS * WIDTH * 4)
    pages.madvise(mmap.MADV_NOHUGEPAGE)  # a touched huge page of 2 MiB would be a whole row
    matrix = np.frombuffer(pages, np.float32).reshape(ROWS, WIDTH)
    random = np.random.default_rng(seed)
    matrix[:, -COLUMNS:] = random.standard_normal((ROWS, COLUMNS), dtype=np.float32)
    return matrix


def main():
    import numpy as np

    x, y = make_input(2), make_input(3)
    z = saxpy_wide(3.0, x, y)
    expected = (3.0 * x[:, -COLUMNS:].astype(np.float64) + y[:, -COLUMNS:]).astype(np.float32)
    np.testing.assert_array_equal(z, expected)
    print(f"saxpy_wide: {x.nbytes:,} bytes of address range, equal to NumPy's")


if __name__ == "__main__":
    main()
