"""Histogram of 256 byte values: each workgroup counts in LDS, then adds its counts to the total."""

import fly
import fly.expr as fx

BINS = 256
BLOCK = 256
GROUPS = 16


@fly.kernel
def histogram_kernel(data: fx.Tensor, counts: fx.Tensor):
    local = fx.block.init_histogram(BINS, barrier=False)
    tid = fx.thread_idx.x
    for i in range(fx.Int64(fx.block_idx.x * BLOCK + tid), data.shape[0], BLOCK * GROUPS):
        fx.block.add_to_histogram(local, data[i])
    fx.barrier()
    fx.atomic_add(counts, tid, local[tid])


@fly.kernel
def clear_kernel(counts: fx.Tensor):
    counts[fx.thread_idx.x] = 0


@fly.jit
def histogram(data: fx.Tensor[fx.Uint8, "n"]):
    counts = fx.empty(BINS, fx.Int32)
    clear_kernel(counts).launch(grid=1, block=BINS)
    histogram_kernel(data, counts).launch(grid=GROUPS, block=BLOCK)
    return counts


def main():
    import numpy as np

    data = np.random.default_rng(7).integers(0, 256, 50_021, dtype=np.uint8)
    np.testing.assert_array_equal(histogram(data), np.bincount(data, minlength=BINS))
    print(f"histogram: {data.size} bytes, equal to NumPy's")


if __name__ == "__main__":
    main()
