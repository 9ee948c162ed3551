"""Host functions that libraries are made of."""

# ruff: noqa: F821  (extents are named by strings)

import fly
import fly.expr as fx


@fly.kernel
def saxpy_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int32, a: fx.Float32):
    i = fx.block_idx.x * 256 + fx.thread_idx.x
    if i < n:
        Y[i] = a * X[i] + Y[i]


@fly.jit
def saxpy(X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, "n"], a: fx.Float32):
    n = X.shape[0]
    saxpy_kernel(X, Y, n, a).launch(grid=fx.ceildiv(n, 256), block=256)


@fly.jit
def ordered(X: fx.Tensor[fx.Float32, "n"], side: fx.Stream, a: fx.Float32):
    """A launch in a stream of its own, and one in the call's."""
    n = X.shape[0]
    saxpy_kernel(X, X, n, a).launch(grid=1, block=256, stream=side)
    saxpy_kernel(X, X, n, a).launch(grid=2, block=256)


@fly.jit
def scratched(X: fx.Tensor[fx.Float32, "n"], side: fx.Stream):
    n = X.shape[0]
    T = fx.empty((n,), fx.Float32)
    saxpy_kernel(X, T, n, 1.0).launch(grid=1, block=256, stream=side)


@fly.kernel
def partial_kernel(A: fx.Tensor, P: fx.Tensor, m: fx.Int32, n: fx.Int32):
    total = fx.Float32(0)
    j = fx.thread_idx.x
    while j < n:
        total = total + A[fx.block_idx.x, j]
        j = j + 32
    P[fx.block_idx.x, fx.thread_idx.x] = total


@fly.kernel
def whole_kernel(P: fx.Tensor, S: fx.Tensor):
    total = fx.Float32(0)
    for j in range(32):
        total = total + P[fx.block_idx.x, j]
    if fx.thread_idx.x == 0:
        S[fx.block_idx.x] = total


@fly.jit
def row_sums(A: fx.Tensor[fx.Float32, "m", "n"]):
    """Two kernels, scratch, and a result."""
    m, n = A.shape[0], A.shape[1]
    assert n > 0, f"{m} rows of {n} elements"
    P = fx.empty((m, 32), fx.Float32)
    S = fx.empty((m,), fx.Float32)
    partial_kernel(A, P, m, n).launch(grid=m, block=32)
    whole_kernel(P, S).launch(grid=m, block=32)
    return S
