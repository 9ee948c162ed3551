"""Kernels with the operations of tests' plugins: in branches, loops, helpers and layouts."""

from plugin_pairs import PLUGIN

import fly
import fly.expr as fx

BLOCK = 64


def turned(pair, times):
    """A helper: swaps a pair in a dynamic loop."""
    for _ in range(times):
        pair = pair.swap()
    return pair


@fly.kernel
def pairs_kernel(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    if i < n:
        pair = fx.pairs.make(A[i], A[i] * 2.0)
        if i % 3 == 0:
            pair = fx.pairs.make(A[i] + 100.0, A[i] + 200.0)
        pair = turned(pair, i % 4)
        B[i] = pair.take(0) - pair.take(1)


@fly.jit(plugins=[PLUGIN])
def pairs(A: fx.Tensor[fx.Float32, "n"], B: fx.Tensor[fx.Float32, "n"]):
    n = A.shape[0]
    pairs_kernel(A, B, n).launch(grid=(n + BLOCK - 1) // BLOCK, block=BLOCK)


@fly.kernel
def tiles_kernel(A: fx.Tensor, B: fx.Tensor):
    tid = fx.thread_idx.x
    copy = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    a = fx.logical_divide(A, fx.make_layout(4, 1))
    b = fx.logical_divide(B, fx.make_layout(4, 1))
    mine = fx.make_fragment_like(a[None, tid])
    fx.copy(copy, a[None, tid], mine)
    mine.store(fx.hello.scale(mine.load()))
    fx.copy(copy, mine, b[None, tid])


@fly.jit(plugins=["hello"])
def tiles(A: fx.Tensor[fx.Float32, 256], B: fx.Tensor[fx.Float32, 256]):
    tiles_kernel(A, B).launch(grid=1, block=BLOCK)


@fly.kernel
def wrong_kernel(B: fx.Tensor, n: fx.Int32):
    B[0] = fx.pairs.make(B[0], n).take(0)


@fly.jit(plugins=[PLUGIN])
def wrong(B: fx.Tensor[fx.Float32, "n"]):
    wrong_kernel(B, B.shape[0]).launch(grid=1, block=1)
