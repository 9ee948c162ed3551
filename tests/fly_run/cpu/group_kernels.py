"""Shuffles within groups of lanes, by all modes and widths."""

import fly
import fly.expr as fx

WIDTHS = (2, 4, 8, 16, 32)
MODES = ("xor", "up", "down", "idx")


@fly.kernel
def group_kernel(X: fx.Tensor, Y: fx.Tensor):
    lane = fx.thread_idx.x
    for n in fx.range_constexpr(len(WIDTHS)):
        for mode in fx.range_constexpr(len(MODES)):
            shuffle = getattr(fx, f"shuffle_{MODES[mode]}")
            Y[n, mode, lane] = shuffle(X[lane], 1 + n % 2, WIDTHS[n])


@fly.jit
def groups(X: fx.Tensor[fx.Float32, 32], Y: fx.Tensor[fx.Float32, 5, 4, 32]):
    group_kernel(X, Y).launch(grid=1, block=32)
