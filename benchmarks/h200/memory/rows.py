"""Kernels along the rows of a matrix of bf16; a block of threads holds a row in registers.

Each function returns a host function. Values are reduced by shuffles in groups of lanes, and then
through shared memory, which each kernel exchanges once.
"""

import fly
import fly.expr as fx
from h200.memory.tiles import one_row

LANES = 32  # of a group that reduces by shuffles; a wave of 64 lanes has two of them
LOG2_E = 1.4426950408889634
LOWEST = -1e38  # maximum of a group of nothing but -inf; LOWEST * LOG2_E is finite


class Row:
    """A row of a matrix of bf16, as one block of threads sees it."""

    def __init__(self, copy, columns):
        self.copy, self.columns = copy, columns
        self.own = copy.get_slice(fx.thread_idx.x)

    def of(self, tensor):
        tile = fx.flat_divide(tensor, (1, self.columns))[None, None, fx.block_idx.x, 0]
        return self.own.partition_S(tile)

    def vector(self, tensor):
        """The part of a vector that belongs to the thread's columns."""
        row = fx.make_view(
            fx.get_iter(tensor), fx.make_layout((1, self.columns), (self.columns, 1))
        )
        return self.own.partition_S(row)

    def load(self, part):
        held = fx.make_fragment_like(part)
        fx.copy(self.copy, part, held)
        return held.load()

    def store(self, values, part):
        held = fx.make_fragment_like(part)
        held.store(values.to(held.dtype))
        fx.copy(self.copy, held, part)


def pairwise(values, combine):
    """Combines the items of a list, or of a vector, in a tree."""
    items = [values[index] for index in fx.range_constexpr(len(values))]
    while len(items) > 1:
        half = len(items) // 2
        items = [combine(items[i], items[i + half]) for i in fx.range_constexpr(half)]
    return items[0]


def over_lanes(value, combine):
    """Combines the values of a group of lanes; all lanes get the result."""
    for step in fx.range_constexpr(5):
        value = combine(value, fx.shuffle_xor(value, 16 >> step))
    return value


def add(a, b):
    return a + b


def over_groups(threads, values):
    """Exchanges values between the groups of lanes of a block; for each value a list with that of
    each group. It waits for the whole block once."""
    groups, group = threads // LANES, fx.thread_idx.x // LANES
    held = fx.shared_array(fx.Float32, (len(values), groups))
    if fx.thread_idx.x % LANES == 0:
        for index in fx.range_constexpr(len(values)):
            held[index, group] = values[index]
    fx.barrier()
    each = fx.range_constexpr(groups)
    return [[held[index, other] for other in each] for index in fx.range_constexpr(len(values))]


def exp2(x):
    return fx.exp2(x, fastmath="afn")


def softmax_rows(columns, threads=256):
    """Y = softmax(X) along rows of bf16, of elements within ±1e38 and -inf. A row is in registers.
    Each group of lanes takes the exponentials relative to its own maximum, so that one exchange is
    enough for the maximum and the sum."""

    @fly.kernel
    def softmax_kernel(X: fx.Tensor, Y: fx.Tensor, copy: fx.TiledCopy):
        row = Row(copy, columns)
        x = row.load(row.of(X)).to(fx.Float32)
        mine = fx.maximum(over_lanes(pairwise(x, fx.maximum), fx.maximum), LOWEST)
        with fx.fastmath("contract"):
            weights = exp2(x * LOG2_E - mine * LOG2_E)
        sums = over_lanes(pairwise(weights, add), add)
        largest, parts = over_groups(threads, [mine, sums])
        most = pairwise(largest, fx.maximum)
        whole = pairwise(
            [part * exp2((at - most) * LOG2_E) for part, at in zip(parts, largest, strict=True)],
            add,
        )
        with fx.fastmath("arcp,afn"):
            scale = exp2((mine - most) * LOG2_E) / whole
        row.store(weights * scale, row.of(Y))

    @fly.jit
    def softmax(X: fx.Tensor[fx.BFloat16, "M", columns], Y: fx.Tensor[fx.BFloat16, "M", columns]):
        copy = one_row(threads, fx.BFloat16)
        softmax_kernel(X, Y, copy).launch(grid=X.shape[0], block=threads)

    return softmax


def rmsnorm_rows(columns, threads=256, late=True):
    """Y = X / sqrt(mean(X²) + eps) · W along rows of bf16. `late` as in `layernorm_rows`."""

    @fly.kernel
    def rmsnorm_kernel(
        X: fx.Tensor, W: fx.Tensor, Y: fx.Tensor, eps: fx.Float32, copy: fx.TiledCopy
    ):
        row = Row(copy, columns)
        x = row.load(row.of(X)).to(fx.Float32)
        if fx.const_expr(not late):
            weight = row.load(row.vector(W))
        squares = over_lanes(pairwise(x * x, add), add)
        (parts,) = over_groups(threads, [squares])
        scale = fx.rsqrt(pairwise(parts, add) * (1.0 / columns) + eps, fastmath="arcp,afn")
        if fx.const_expr(late):
            weight = row.load(row.vector(W))
        row.store(x * scale * weight.to(fx.Float32), row.of(Y))

    @fly.jit
    def rmsnorm(
        X: fx.Tensor[fx.BFloat16, "M", columns],
        W: fx.Tensor[fx.BFloat16, columns],
        Y: fx.Tensor[fx.BFloat16, "M", columns],
        eps: fx.Float32 = 1e-5,
    ):
        copy = one_row(threads, fx.BFloat16)
        rmsnorm_kernel(X, W, Y, eps, copy).launch(grid=X.shape[0], block=threads)

    return rmsnorm


def layernorm_rows(columns, threads=256, late=True):
    """Y = (X - mean) / sqrt(variance + eps) · W + B along rows of bf16. Each group of lanes takes
    the squares relative to its own mean (Chan et al.), so that one exchange is enough. With `late`,
    W and B, which are in the cache, are loaded behind it, for which fewer registers are needed."""

    @fly.kernel
    def layernorm_kernel(
        X: fx.Tensor,
        W: fx.Tensor,
        B: fx.Tensor,
        Y: fx.Tensor,
        eps: fx.Float32,
        copy: fx.TiledCopy,
    ):
        row = Row(copy, columns)
        groups = threads // LANES
        x = row.load(row.of(X)).to(fx.Float32)
        if fx.const_expr(not late):
            weight, bias = row.load(row.vector(W)), row.load(row.vector(B))
        mine = over_lanes(pairwise(x, add), add) * (groups / columns)
        away = x - mine
        with fx.fastmath("contract"):
            squares = over_lanes(pairwise(away * away, add), add)
        means, parts = over_groups(threads, [mine, squares])
        mean = pairwise(means, add) * (1.0 / groups)
        between = pairwise([(one - mean) * (one - mean) for one in means], add)
        variance = pairwise(parts, add) * (1.0 / columns) + between * (1.0 / groups)
        scale = fx.rsqrt(variance + eps, fastmath="arcp,afn")
        if fx.const_expr(late):
            weight, bias = row.load(row.vector(W)), row.load(row.vector(B))
        with fx.fastmath("contract"):
            normal = (x - mean) * scale
            row.store(normal * weight.to(fx.Float32) + bias.to(fx.Float32), row.of(Y))

    @fly.jit
    def layernorm(
        X: fx.Tensor[fx.BFloat16, "M", columns],
        W: fx.Tensor[fx.BFloat16, columns],
        B: fx.Tensor[fx.BFloat16, columns],
        Y: fx.Tensor[fx.BFloat16, "M", columns],
        eps: fx.Float32 = 1e-5,
    ):
        copy = one_row(threads, fx.BFloat16)
        layernorm_kernel(X, W, B, Y, eps, copy).launch(grid=X.shape[0], block=threads)

    return layernorm
