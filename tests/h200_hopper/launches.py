"""Kernels that are launched dependently, of which the earlier ones write late.

`chain` is right only if each waits for the one before. `unordered` reads before it waits, so that
it finds old values if, and only if, kernels do overlap: that shows that `chain` tests something.
"""

import fly
import fly.expr as fx

THREADS = 256
PAUSE = 1000  # ns


@fly.kernel
def late_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int32, pauses: fx.Int32):
    """Y = X + 1, written when the next kernel has long begun."""
    fx.nvvm.griddepcontrol_launch_dependents()
    fx.nvvm.griddepcontrol_wait()
    for _ in range(pauses):
        fx.nvvm.nanosleep(PAUSE)
    i = fx.block_idx.x * THREADS + fx.thread_idx.x
    if i < n:
        Y[i] = X[i] + 1


@fly.kernel
def double_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int32, ordered: fx.Constexpr[bool]):
    """Y = 2 X, if `ordered`; else of what X was when the kernel began."""
    i = fx.block_idx.x * THREADS + fx.thread_idx.x
    fx.nvvm.griddepcontrol_launch_dependents()
    if fx.const_expr(ordered):
        fx.nvvm.griddepcontrol_wait()
    if i < n:
        value = X[i]
        if fx.const_expr(not ordered):
            fx.nvvm.griddepcontrol_wait()
        Y[i] = 2 * value


@fly.jit
def chain(
    X: fx.Tensor[fx.Int32, "n"],
    Y: fx.Tensor[fx.Int32, "n"],
    Z: fx.Tensor[fx.Int32, "n"],
    pauses: fx.Int32,
    rounds: fx.Constexpr[int],
):
    """X = 2 (X + 1) + 2, `rounds` times. A round also writes what the kernel before still reads."""
    n = X.shape[0]
    grid = fx.ceildiv(n, THREADS)
    for _ in fx.range_constexpr(rounds):
        late_kernel(X, Y, n, pauses).launch(grid=grid, block=THREADS)
        double_kernel(Y, Z, n, True).launch(grid=grid, block=THREADS)
        late_kernel(Z, Y, n, 0).launch(grid=grid, block=THREADS)
        late_kernel(Y, X, n, pauses).launch(grid=grid, block=THREADS)


@fly.jit
def unordered(
    X: fx.Tensor[fx.Int32, "n"],
    Y: fx.Tensor[fx.Int32, "n"],
    Z: fx.Tensor[fx.Int32, "n"],
    pauses: fx.Int32,
):
    n = X.shape[0]
    grid = fx.ceildiv(n, THREADS)
    late_kernel(X, Y, n, pauses).launch(grid=grid, block=THREADS)
    double_kernel(Y, Z, n, False).launch(grid=grid, block=THREADS)
