"""Which experts tokens go to, and the order that puts the tokens of an expert together.

The order is a counting sort: every expert's block counts its tokens, one block adds the counts up,
and every expert's block writes its tokens to their places, in order. Each block reads all choices:
experts · tokens · k elements in all, most of them from the cache.
"""

from __future__ import annotations

from typing import Any

from fly_common.errors import UsageError

import fly
import fly.expr as fx
from fly.kernels.approximations import exp, reciprocal
from fly.kernels.arrays import SMALL_FLOATS, check_types
from fly.kernels.gemm.experts.logit_order import NO_KEY, key_of, logit_of
from fly.kernels.mixed_precision import later
from fly.kernels.operators import operator
from fly.kernels.shapes import for_model

Logits = fx.Tensor[fx.Float, "T", fx.sym_int32("E")]
LANES = 64  # of the block of a token: one wave, or two of 32
OWN = 8  # logits of a lane
MOST_LANES, MOST_CHOSEN = 32, 8  # of a token, if lanes take it
MOST_IN_TURN = 32  # experts that a block finds one after the other, each by code of its own
LAST = 2**31 - 1
MOST_EXPERTS = 1024  # so many counts one block adds up


@fly.kernel
def route_kernel(
    logits: fx.Tensor,
    weights: fx.Tensor,
    experts: fx.Tensor,
    k: fx.Constexpr[int],
    lanes: fx.Constexpr[int],
    whole: fx.Constexpr[bool],
):
    """`lanes` adjacent lanes take a token, each of them OWN adjacent logits; `whole`: all have so
    many."""
    place = fx.block_idx.x * LANES + fx.thread_idx.x
    token, first, count = place // lanes, place % lanes * OWN, logits.shape[1]
    row = fx.min(fx.Int64(token), logits.shape[0] - 1)
    if whole:
        keys = [key_of(logits[row, first + i]) for i in range(OWN)]
    else:
        keys = [
            key_of(logits[row, fx.min(first + i, count - 1)]) if first + i < count else NO_KEY
            for i in range(OWN)
        ]
    best, chosen = [], []
    for _ in range(k):
        key = fx.warp.reduce(fx.max(*keys), "max", width=lanes)
        # A lane that takes a token by itself has the key: if not before, then in the last place.
        own = fx.Int32(LAST if lanes > 1 else OWN - 1)
        for i in reversed(range(OWN if lanes > 1 else OWN - 1)):
            own = fx.where(keys[i] == key, first + i, own)
        expert = fx.warp.reduce(own, "min", width=lanes)
        keys = [fx.where(expert == first + i, NO_KEY, one) for i, one in enumerate(keys)]
        best.append(logit_of(key))
        chosen.append(expert)
    powers = [exp(logit - best[0]) for logit in best]
    share = reciprocal(sum(powers))
    token = later(token, share)  # addresses of results take registers from now on
    if (first == 0) & (token < logits.shape[0]):
        for i in fx.range_constexpr(k):
            weights[token, i] = powers[i] * share
            experts[token, i] = chosen[i]


@fly.kernel
def route_by_block_kernel(
    logits: fx.Tensor,
    weights: fx.Tensor,
    experts: fx.Tensor,
    k: fx.Constexpr[int],
    items: fx.Constexpr[int],
):
    """A block takes a token, for more experts than a wave takes, or for a great k."""
    token, count = fx.block_idx.x, logits.shape[1]
    own = fx.block.load(logits[token, None], items, valid=count)
    best, places = fx.block.top_k(own, k, valid=count)
    powers = [exp(logit.to(fx.Float32) - best[0].to(fx.Float32)) for logit in best]
    share = reciprocal(sum(powers))
    if fx.thread_idx.x == 0:
        for i in fx.range_constexpr(k):
            weights[token, i] = powers[i] * share
            experts[token, i] = places[i]


@fly.kernel
def route_by_sort_kernel(
    logits: fx.Tensor,
    weights: fx.Tensor,
    experts: fx.Tensor,
    k: fx.Constexpr[int],
    items: fx.Constexpr[int],
):
    """A block takes a token and sorts its logits, for a k of which a list would be too long."""
    token, count = fx.block_idx.x, logits.shape[1]
    places = [fx.block.thread_rank() * items + i for i in range(items)]
    own = [key_of(logit) for logit in fx.block.load(logits[token, None], items, valid=count)]
    keys, chosen = fx.block.sort(own, places, descending=True, valid=count)
    keys = [fx.where(place < k, key, NO_KEY) for place, key in zip(places, keys, strict=True)]
    best = logit_of(fx.block.reduce(keys, "max"))
    powers = [
        fx.where(place < k, exp(logit_of(key) - best), 0.0)
        for place, key in zip(places, keys, strict=True)
    ]
    share = reciprocal(fx.block.reduce(powers))
    for place, power, expert in zip(places, powers, chosen, strict=True):
        if place < k:
            weights[token, place] = power * share
            experts[token, place] = expert


@fly.jit(specialize=for_model("E"))
def route(
    logits: Logits,
    k: fx.Constexpr[int],
    lanes: fx.Constexpr[int],
    items: fx.Constexpr[int],
    whole: fx.Constexpr[bool],
):
    """`lanes` lanes for a token, or if that is 0 a block, with `items` logits for each thread."""
    tokens = logits.shape[0]
    weights = fx.empty((tokens, k), fx.Float32)
    experts = fx.empty((tokens, k), fx.Int32)
    if lanes:
        grid = fx.ceildiv(tokens * lanes, LANES)
        arrays = logits, weights, experts
        route_kernel(*arrays, k, lanes, whole).launch(grid=grid, block=LANES)
    else:
        kernel = route_by_block_kernel if k <= MOST_IN_TURN else route_by_sort_kernel
        kernel(logits, weights, experts, k, items).launch(grid=tokens, block=LANES)
    return weights, experts


def _fake_route(logits: Any, k: int) -> Any:
    import torch

    shape = (logits.shape[0], k)
    return logits.new_empty(shape, dtype=torch.float32), logits.new_empty(shape, dtype=torch.int32)


@operator("(Tensor logits, int k) -> (Tensor, Tensor)", fake=_fake_route)
def moe_route(logits: Any, k: int) -> Any:
    """The k experts of greatest logits of each token, and their weights.

    logits: tokens × experts, of f16, bf16 or f32. Returns weights, tokens × k of f32, which are the
    softmax of the chosen logits, and experts, tokens × k of i32, in descending order of weights; of
    equal ones the first. UsageError unless 1 ≤ k ≤ experts ≤ 1024.
    """
    check_types(SMALL_FLOATS, logits=logits)
    if logits.ndim != 2 or not 0 < k <= logits.shape[1] <= MOST_EXPERTS:
        shape = tuple(logits.shape)
        raise UsageError(
            f"k is {k} and logits have shape {shape}",
            hint=f"logits are tokens × experts, with k to {MOST_EXPERTS} experts",
        )
    count = logits.shape[1]
    lanes = _lanes(count, k)
    return route(logits, k, lanes, -(-count // LANES), count == lanes * OWN)


def _lanes(count: int, k: int) -> int:
    """The lanes that take a token, a power of two; 0 if a block takes it."""
    lanes = 1 << (-(-count // OWN) - 1).bit_length()
    return lanes if lanes <= MOST_LANES and k <= MOST_CHOSEN else 0


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    weights, experts = output
    ctx.save_for_backward(weights, experts)
    ctx.mark_non_differentiable(experts)
    ctx.like = inputs[0].dtype, inputs[0].shape


@moe_route.gradient(_save)
def _(ctx: Any, of_weights: Any, _: Any) -> Any:
    weights, experts = ctx.saved_tensors
    dtype, shape = ctx.like
    chosen = weights * (of_weights - (of_weights * weights).sum(1, keepdim=True))
    zeros = weights.new_zeros(shape)
    return zeros.scatter(1, experts.long(), chosen).to(dtype), None
