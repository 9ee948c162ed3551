"""C = A + B, one element per work item; the size need not be a multiple of the block.

    fly-trace examples/vector_add.py | fly-opt-py --target gfx942 | opt -S -O3 \
        | fly-llc | fly-link | fly-run A=a.npy B=b.npy C=c.npy
"""

import fly
import fly.expr as fx

BLOCK = 256


@fly.kernel
def vector_add_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, n: fx.Int64):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    if i < n:
        C[i] = A[i] + B[i]


@fly.jit
def vector_add(A: fx.Tensor[fx.Float32, "n"], B: fx.Tensor[fx.Float32, "n"]):
    n = A.shape[0]
    C = fx.empty_like(A)
    vector_add_kernel(A, B, C, n).launch(grid=fx.ceildiv(n, BLOCK), block=BLOCK)
    return C


def main():
    import numpy as np

    random = np.random.default_rng(0)
    a = random.standard_normal(100_003, dtype=np.float32)
    b = random.standard_normal(100_003, dtype=np.float32)
    c = vector_add(a, b)
    np.testing.assert_array_equal(c, a + b)
    print(f"vector_add: {c.size} elements, equal to NumPy's")


if __name__ == "__main__":
    main()
