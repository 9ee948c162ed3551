"""B = A, with one thread too many in the last block.

fly-trace kernel.py | fly-opt-py --plugin=bounds --target gfx942 | opt -S -O3 | fly-llc | fly-link
"""

import fly
import fly.expr as fx

BLOCK = 64


@fly.kernel
def copy_kernel(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    if i <= n:
        B[i] = A[i]


@fly.jit
def copied(A: fx.Tensor[fx.Float32, "n"], B: fx.Tensor[fx.Float32, "n"]):
    n = A.shape[0]
    copy_kernel(A, B, n).launch(grid=(n + BLOCK - 1) // BLOCK, block=BLOCK)


def main():
    import numpy as np

    a = np.arange(100, dtype=np.float32)
    b = np.zeros_like(a)
    copied(a, b)
    print("equal" if (a == b).all() else "different")


if __name__ == "__main__":
    main()
