"""Programmatic dependent launch: the second kernel begins while the first one still runs.

    fly-trace examples/hopper/dependent_launch.py --target sm_90a | fly-opt-py --target sm_90a |
        opt -S -O3 | fly-llc | fly-link |
        fly-run - --device cpu X=x.npy W=w.npy S=s.npy Y=y.npy

What the second kernel does before `griddepcontrol_wait`, here to load the weights, overlaps with
the end of the first one. It touches what the first one writes only behind that.
"""

import fly
import fly.expr as fx

THREADS = 128


@fly.kernel
def squares_kernel(X: fx.Tensor, S: fx.Tensor, n: fx.Int32):
    """S[i]: the mean of the squares of row i."""
    row, total = fx.block_idx.x, fx.Float32(0)
    for i in range(fx.thread_idx.x, n, THREADS):
        total += X[row, i] * X[row, i]
    total = fx.block.reduce(total, "add")
    if fx.thread_idx.x == 0:
        S[row] = total / fx.Float32(n)
    fx.nvvm.griddepcontrol_launch_dependents()


@fly.kernel
def scale_kernel(X: fx.Tensor, W: fx.Tensor, S: fx.Tensor, Y: fx.Tensor, n: fx.Int32):
    row, column = fx.block_idx.y, fx.block_idx.x * THREADS + fx.thread_idx.x
    if column < n:
        scaled = X[row, column] * W[column]  # inputs, which the kernel before only reads
        fx.nvvm.griddepcontrol_wait()
        Y[row, column] = scaled * fx.rsqrt(S[row] + 1e-6)


@fly.jit
def rms_norm(
    X: fx.Tensor[fx.Float32, "m", "n"],
    W: fx.Tensor[fx.Float32, "n"],
    S: fx.Tensor[fx.Float32, "m"],
    Y: fx.Tensor[fx.Float32, "m", "n"],
):
    m, n = X.shape[0], X.shape[1]
    squares_kernel(X, S, n).launch(grid=m, block=THREADS)
    scale_kernel(X, W, S, Y, n).launch(grid=(fx.ceildiv(n, THREADS), m), block=THREADS)
