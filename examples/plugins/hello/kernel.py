"""B = factor·A, with the operation of the plugin hello.

fly-trace --plugin=hello kernel.py | fly-opt-py --plugin=hello --target gfx942 | …
"""

import fly
import fly.expr as fx

BLOCK = 256


@fly.kernel
def scaled_kernel(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    if i < n:
        B[i] = fx.hello.scale(A[i])


@fly.jit(plugins=["hello"])
def scaled(A: fx.Tensor[fx.Float32, "n"], B: fx.Tensor[fx.Float32, "n"]):
    n = A.shape[0]
    scaled_kernel(A, B, n).launch(grid=(n + BLOCK - 1) // BLOCK, block=BLOCK)


def main():
    import numpy as np

    a = np.arange(1000, dtype=np.float32)
    b = np.zeros_like(a)
    scaled(a, b)
    print(f"{a[3]:g} became {b[3]:g}")


if __name__ == "__main__":
    main()
