"""A chain of small kernels, of which each reads what the one before wrote, launched dependently or
as usual. Apart from that they are the same; a dependent one loads its weights before it waits."""

import fly
import fly.expr as fx

THREADS, LINKS = 256, 32  # links: the launches of a chain


@fly.kernel
def link_kernel(
    X: fx.Tensor, W: fx.Tensor, Y: fx.Tensor, n: fx.Int32, dependent: fx.Constexpr[bool]
):
    i = fx.block_idx.x * THREADS + fx.thread_idx.x
    if fx.const_expr(dependent):
        fx.nvvm.griddepcontrol_launch_dependents()
    weight = W[fx.min(i, n - 1)]
    if fx.const_expr(dependent):
        fx.nvvm.griddepcontrol_wait()
    if i < n:
        Y[i] = X[i] * weight + 1


@fly.jit
def chain(
    X: fx.Tensor[fx.Float32, "n"],
    W: fx.Tensor[fx.Float32, "n"],
    Y: fx.Tensor[fx.Float32, "n"],
    dependent: fx.Constexpr[bool],
):
    """X = (X · W + 1) · W + 1, and so on; an even number of times."""
    n = X.shape[0]
    grid = fx.ceildiv(n, THREADS)
    for _ in fx.range_constexpr(LINKS // 2):
        link_kernel(X, W, Y, n, dependent).launch(grid=grid, block=THREADS)
        link_kernel(Y, W, X, n, dependent).launch(grid=grid, block=THREADS)
