"""Y = a·X + Y in place, by a grid-stride loop: any size works with any grid.

… | fly-run a=2.5 X=x.npy Y=y.npy:out.npy
"""

import fly
import fly.expr as fx

BLOCK = 256
GROUPS = 64


@fly.kernel
def saxpy_kernel(a: fx.Float32, X: fx.Tensor, Y: fx.Tensor, n: fx.Int64):
    first = fx.block_idx.x * BLOCK + fx.thread_idx.x
    for i in range(fx.Int64(first), n, BLOCK * GROUPS):
        Y[i] = fx.fma(a, X[i], Y[i])


@fly.jit
def saxpy(a: fx.Float32, X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, "n"]):
    saxpy_kernel(a, X, Y, X.shape[0]).launch(grid=GROUPS, block=BLOCK)


def main():
    import numpy as np

    random = np.random.default_rng(1)
    x = random.standard_normal(70_001, dtype=np.float32)
    y = random.standard_normal(70_001, dtype=np.float32)
    # One rounding, like fma: the product and the sum are exact in float64 (24 + 24 bits).
    expected = (np.float64(2.5) * x + y).astype(np.float32)
    saxpy(2.5, x, y)
    np.testing.assert_array_equal(y, expected)
    print(f"saxpy: {y.size} elements, equal to NumPy's")


if __name__ == "__main__":
    main()
