"""Kernels of `fx.warp`, `fx.block` and `fx.random`, in blocks of three warps."""

import fly
import fly.expr as fx

BLOCK = 96
ITEMS = 4
BINS = 16


@fly.kernel
def warp_primitives_kernel(X: fx.Tensor, Y: fx.Tensor):
    i = fx.block.thread_rank()
    x = X[i]
    Y[0, i] = fx.warp.reduce(x)
    Y[1, i] = fx.warp.reduce(x, "max", width=8)
    Y[2, i] = fx.warp.inclusive_scan(x)
    Y[3, i] = fx.warp.exclusive_scan(x, "min", initial=5)
    Y[4, i] = fx.warp.sort(x)
    Y[5, i] = fx.warp.shuffle_xor(x, 9)
    Y[6, i] = fx.warp.broadcast(x, 7)
    Y[7, i] = fx.Int32(fx.warp.ballot(x > 3))
    Y[8, i] = fx.Int32(fx.warp.match_any(x & 3))
    Y[9, i] = fx.warp.count(x > 3)


@fly.jit
def warp_primitives(X: fx.Tensor[fx.Int32, BLOCK], Y: fx.Tensor[fx.Int32, 10, BLOCK]):
    warp_primitives_kernel(X, Y).launch(grid=1, block=BLOCK)


@fly.kernel
def block_primitives_kernel(X: fx.Tensor, Y: fx.Tensor, totals: fx.Tensor, bins: fx.Tensor):
    i = fx.block.thread_rank()
    own = [X[i * ITEMS + j] for j in range(ITEMS)]
    upto, total = fx.block.inclusive_scan(own, total=True)
    before = fx.block.exclusive_scan(own, "max", initial=-1000)
    in_order = fx.block.sort(own)
    striped = fx.block.striped_to_blocked(own)
    for j in fx.range_constexpr(ITEMS):
        for row, items in enumerate((upto, before, in_order, striped)):
            Y[row, i * ITEMS + j] = items[j]
    totals[0, i] = total
    totals[1, i] = fx.block.reduce(own, "min")
    best, _ = fx.block.top_k(own, 8)
    for j in fx.range_constexpr(8):
        totals[2 + j, i] = best[j]
    counts = fx.block.histogram([x & (BINS - 1) for x in own], BINS)
    if i < BINS:
        bins[i] = counts[i]


@fly.jit
def block_primitives(
    X: fx.Tensor[fx.Int32, BLOCK * ITEMS],
    Y: fx.Tensor[fx.Int32, 4, BLOCK * ITEMS],
    totals: fx.Tensor[fx.Int32, 10, BLOCK],
    bins: fx.Tensor[fx.Int32, BINS],
):
    block_primitives_kernel(X, Y, totals, bins).launch(grid=1, block=BLOCK)


@fly.kernel
def random_kernel(Y: fx.Tensor):
    i = fx.block_idx.x * BLOCK + fx.thread_idx.x
    words = fx.random.philox((i, 1, 2, 3), (4, 5))
    for j in fx.range_constexpr(4):
        Y[i, j] = words[j]


@fly.jit
def random_words(Y: fx.Tensor[fx.Uint32, 4 * BLOCK, 4]):
    random_kernel(Y).launch(grid=4, block=BLOCK)
