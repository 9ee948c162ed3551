"""Y = softmax(X) along rows, one workgroup per row: two ways to reduce over 256 work items.

`row_softmax` reduces by a tree in LDS; `row_softmax_shuffle` by lane shuffles in each wave, then
through one LDS slot per wave. `fly-trace examples/row_softmax.py:row_softmax_shuffle` selects it.
"""

import fly
import fly.expr as fx

BLOCK = 256
N = fx.sym_int32("N")  # columns are counted in 32 bits; launches check that they fit
MOST_WAVES = BLOCK // 32  # waves have 64 lanes on CDNA, 32 on RDNA
LOWEST = float("-inf")


def tree_reduce(scratch, value, combine):
    """Reduces the block's values by halving in LDS; every work item gets the result."""
    tid = fx.thread_idx.x
    scratch[tid] = value
    fx.barrier()
    for step in fx.range_constexpr(8):
        half = BLOCK >> (step + 1)
        if tid < half:
            scratch[tid] = combine(scratch[tid], scratch[tid + half])
        fx.barrier()
    result = scratch[0]
    fx.barrier()  # all must read slot 0 before it is overwritten
    return result


def shuffle_reduce(scratch, value, combine):
    """Reduces by a butterfly of lane shuffles, then across the block's waves."""
    tid = fx.thread_idx.x
    lanes = fx.num_warp_threads()
    for step in fx.range_constexpr(6):
        if 1 << step < lanes:
            value = combine(value, fx.shuffle_xor(value, 1 << step))
    if tid % lanes == 0:
        scratch[tid // lanes] = value
    fx.barrier()
    result = scratch[0]
    for wave in range(1, BLOCK // lanes):
        result = combine(result, scratch[wave])
    fx.barrier()
    return result


def softmax_row(X, Y, reduce, scratch):
    row, tid = fx.block_idx.x, fx.thread_idx.x
    columns = X.shape[1]
    largest = fx.Float32(LOWEST)
    for j in range(tid, columns, BLOCK):
        largest = fx.maximum(largest, X[row, j])
    largest = reduce(scratch, largest, fx.maximum)

    total = fx.Float32(0)
    for j in range(tid, columns, BLOCK):
        total = total + fx.exp(X[row, j] - largest)
    total = reduce(scratch, total, lambda a, b: a + b)

    for j in range(tid, columns, BLOCK):
        Y[row, j] = fx.exp(X[row, j] - largest) / total


@fly.kernel
def softmax_tree_kernel(X: fx.Tensor, Y: fx.Tensor):
    softmax_row(X, Y, tree_reduce, fx.shared_array(fx.Float32, BLOCK))


@fly.kernel
def softmax_shuffle_kernel(X: fx.Tensor, Y: fx.Tensor):
    softmax_row(X, Y, shuffle_reduce, fx.shared_array(fx.Float32, MOST_WAVES))


@fly.jit
def row_softmax(X: fx.Tensor[fx.Float32, "M", N]):
    Y = fx.empty_like(X)
    softmax_tree_kernel(X, Y).launch(grid=X.shape[0], block=BLOCK)
    return Y


@fly.jit
def row_softmax_shuffle(X: fx.Tensor[fx.Float32, "M", N]):
    Y = fx.empty_like(X)
    softmax_shuffle_kernel(X, Y).launch(grid=X.shape[0], block=BLOCK)
    return Y


def main():
    import numpy as np

    x = np.random.default_rng(3).standard_normal((37, 781), dtype=np.float32)
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    for function in (row_softmax, row_softmax_shuffle):
        np.testing.assert_allclose(function(x), exact, rtol=2e-6)
        print(f"{function.__name__}: {x.shape[0]}x{x.shape[1]}, within 2e-6 of NumPy's float64")


if __name__ == "__main__":
    main()
