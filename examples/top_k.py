"""The k greatest values of each row of X and their columns, one workgroup per row.

X is M×N of f32; `values` is M×k of f32 and `indices` M×k of i32, in descending order. Of equal
values the one with the lowest column comes first; 0.0 and -0.0 are equal. NaN is greater than every
number, and NaNs are equal, as in torch.topk. k is known while tracing, at most 32 and at most N.

Each work item keeps the k greatest elements of its part of the row, sorted, in registers. The first
elements of these lists then compete k times for the next place in the result.
"""

import fly
import fly.expr as fx

BLOCK = 128
N = fx.sym_int32("N")  # columns are counted in 32 bits; launches check that they fit
LARGEST_K = 32
LAST = 2**31 - 1
NOTHING = -(2**63)  # less than the key of any element


def key_of(value, column):
    """Returns an integer that orders elements: by value, then the lower column is greater."""
    if fx.isnan(value):
        order = fx.Int32(LAST)
    else:
        bits = (value + 0.0).bitcast(fx.Int32)  # -0.0 + 0.0 is 0.0
        order = bits if bits >= 0 else bits ^ LAST
    return fx.Int64(order) << 32 | (LAST - column)


def column_of(key):
    return LAST - fx.Int32(key)


def inserted(key, best):
    """Returns the greatest of a sorted list and a new key, as a sorted list of the same length."""
    result = []
    for kept in best:
        result.append(max(kept, key))
        key = min(kept, key)
    return result


@fly.kernel
def top_k_kernel(X: fx.Tensor, values: fx.Tensor, indices: fx.Tensor):
    row, tid = fx.block_idx.x, fx.thread_idx.x
    columns, k = X.shape[1], values.shape[1]

    best = [fx.Int64(NOTHING)] * k
    for column in range(tid, columns, BLOCK):
        key = key_of(X[row, column], column)
        if key > best[-1]:
            best = inserted(key, best)

    for place in range(k):
        winner = fx.block.reduce(best[0], "max")
        if winner == best[0]:  # keys are unique: this is one work item
            column = column_of(winner)
            values[row, place] = X[row, column]
            indices[row, place] = column
            best = [*best[1:], NOTHING]


@fly.jit
def top_k(X: fx.Tensor[fx.Float32, "M", N], k: fx.Constexpr[int] = 8):
    assert 0 < k <= LARGEST_K, f"k is {k}, not 1 to {LARGEST_K}"
    assert k <= X.shape[1], f"k is {k}, but a row has {X.shape[1]} elements"
    rows = X.shape[0]
    values = fx.empty((rows, k), fx.Float32)
    indices = fx.empty((rows, k), fx.Int32)
    top_k_kernel(X, values, indices).launch(grid=rows, block=BLOCK)
    return values, indices


def main():
    import numpy as np

    x = np.random.default_rng(31).integers(-50, 50, (21, 555)).astype(np.float32)
    values, indices = top_k(x, 10)
    order = np.argsort(-x, axis=1, kind="stable")[:, :10]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis=1))
    print(f"top_k: the first 10 of {x.shape[0]}x{x.shape[1]}, equal to NumPy's stable sort")


if __name__ == "__main__":
    main()
