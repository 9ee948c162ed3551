"""A chain of small kernels, of which each reads what the one before wrote, launched dependently or
as usual. Apart from that they are the same; a dependent one loads its weights before it waits, and
lets the next one begin at once, or when it has written."""

import fly
import fly.expr as fx

THREADS, LINKS = 256, 32  # links: the launches of a chain
USUAL, EARLY, LATE = "usual", "early", "late"


@fly.kernel
def link_kernel(X: fx.Tensor, W: fx.Tensor, Y: fx.Tensor, n: fx.Int32, way: fx.Constexpr[str]):
    i = fx.block_idx.x * THREADS + fx.thread_idx.x
    if fx.const_expr(way == EARLY):
        fx.nvvm.griddepcontrol_launch_dependents()
    weight = W[fx.min(i, n - 1)]
    if fx.const_expr(way != USUAL):
        fx.nvvm.griddepcontrol_wait()
    if i < n:
        Y[i] = X[i] * weight + 1
    if fx.const_expr(way == LATE):
        fx.nvvm.griddepcontrol_launch_dependents()


@fly.jit
def chain(
    X: fx.Tensor[fx.Float32, "n"],
    W: fx.Tensor[fx.Float32, "n"],
    Y: fx.Tensor[fx.Float32, "n"],
    way: fx.Constexpr[str],
):
    """X = (X · W + 1) · W + 1, and so on; an even number of times."""
    n = X.shape[0]
    grid = fx.ceildiv(n, THREADS)
    for _ in fx.range_constexpr(LINKS // 2):
        link_kernel(X, W, Y, n, way).launch(grid=grid, block=THREADS)
        link_kernel(Y, W, X, n, way).launch(grid=grid, block=THREADS)
