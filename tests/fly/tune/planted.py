"""Functions with configurations of which one is known to be better, and why."""

# ruff: noqa: F821  (extents are named by strings)

import fly
import fly.expr as fx


@fly.kernel
def sums_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int64, ACROSS: fx.Constexpr):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        total = fx.Float32(0.0)
        for k in range(n):
            total = total + (X[k, i] if ACROSS else X[i, k])
        Y[i] = total


@fly.jit
def sums(X: fx.Tensor[fx.Float32, "n", "n"], Y: fx.Tensor[fx.Float32, "n"], ACROSS: fx.Constexpr):
    """Sums of columns, or of rows, whose elements are in as many cache lines as there are lanes."""
    n = X.shape[0]
    sums_kernel(X, Y, n, ACROSS).launch(grid=fx.ceildiv(n, 64), block=64)


@fly.kernel
def turned_kernel(A: fx.Tensor, B: fx.Tensor, PADDING: fx.Constexpr):
    tile = fx.shared_array(fx.Float32, (32, 32 + PADDING))
    x, y = fx.thread_idx.x, fx.thread_idx.y
    for step in fx.range_constexpr(0, 32, 8):
        tile[y + step, x] = A[y + step, x]
    fx.barrier()
    for step in fx.range_constexpr(0, 32, 8):
        B[y + step, x] = tile[x, y + step]


@fly.jit
def turned(
    A: fx.Tensor[fx.Float32, 32, 32], B: fx.Tensor[fx.Float32, 32, 32], PADDING: fx.Constexpr
):
    """A transposed tile: without padding, a column of the tile is in one bank of LDS."""
    turned_kernel(A, B, PADDING).launch(grid=1, block=(32, 8))


@fly.kernel
def shifted_kernel(X: fx.Tensor, Y: fx.Tensor, EACH: fx.Constexpr):
    row = fx.shared_array(fx.Float32, 256)
    t = fx.thread_idx.x
    value = X[t]
    for step in fx.range_constexpr(0, 16):
        row[t] = value + fx.Float32(step)
        if EACH or step == 15:
            fx.barrier()
    Y[t] = row[255 - t]


@fly.jit
def shifted(X: fx.Tensor[fx.Float32, 256], Y: fx.Tensor[fx.Float32, 256], EACH: fx.Constexpr):
    """One barrier is enough."""
    shifted_kernel(X, Y, EACH).launch(grid=1, block=256)


@fly.kernel
def scale_kernel(X: fx.Tensor, n: fx.Int64, BLOCK: fx.Constexpr):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    if i < n:
        X[i] = X[i] * 2.0


@fly.jit
def scale(X: fx.Tensor[fx.Float32, "n"], BLOCK: fx.Constexpr[int] = 64):
    """In place: what is measured must not change what the caller gets."""
    n = X.shape[0]
    scale_kernel(X, n, BLOCK).launch(grid=fx.ceildiv(n, BLOCK), block=BLOCK)


@fly.kernel
def beyond_kernel(X: fx.Tensor, PAST: fx.Constexpr):
    X[fx.thread_idx.x + PAST] = 1.0


@fly.jit
def beyond(X: fx.Tensor[fx.Float32, "n"], PAST: fx.Constexpr):
    """A fault, unless PAST is 0."""
    beyond_kernel(X, PAST).launch(grid=1, block=64)


@fly.kernel
def drained_kernel(Q: fx.Tensor, Y: fx.Tensor, BLOCK: fx.Constexpr):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    Y[i] = Y[i] + Q[i]
    Q[i] = 0.0


@fly.jit
def drained(Q: fx.Tensor[fx.Float32, 256], Y: fx.Tensor[fx.Float32, 256], BLOCK: fx.Constexpr):
    """The second run finds nothing in Q."""
    drained_kernel(Q, Y, BLOCK).launch(grid=256 // BLOCK, block=BLOCK)


def blocks(*sizes: int) -> list[fly.Config]:
    return [fly.Config(BLOCK=size) for size in sizes]
