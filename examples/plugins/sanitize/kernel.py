"""Y is X with each block of 256 elements reversed. The barrier between writing the tile and reading
it is missing.

fly-trace kernel.py | fly-opt-py --plugin=sanitize --target gfx942 | opt -S -O3 | fly-llc | fly-link
"""

import fly
import fly.expr as fx

BLOCK = 256


@fly.kernel
def reverse_kernel(X: fx.Tensor, Y: fx.Tensor):
    tile = fx.shared_array(fx.Float32, BLOCK)
    tid, at = fx.thread_idx.x, fx.block_idx.x * BLOCK
    tile[tid] = X[at + tid]
    Y[at + tid] = tile[BLOCK - 1 - tid]


@fly.jit
def reversed_blocks(X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, "n"]):
    reverse_kernel(X, Y).launch(grid=X.shape[0] // BLOCK, block=BLOCK)


def main():
    import numpy as np

    x = np.arange(1024, dtype=np.float32)
    y = np.zeros_like(x)
    reversed_blocks(x, y)
    print("right" if (y.reshape(4, 256) == x.reshape(4, 256)[:, ::-1]).all() else "wrong")


if __name__ == "__main__":
    main()
