"""The kernel of attention: softmax(scale · Q·Kᵀ)·V, and the logarithms of softmax's sums.

A workgroup takes 64 queries of a head and goes through the keys that they attend to, with an
online softmax (Dao, "FlashAttention-2", arXiv:2307.08691).
"""

from __future__ import annotations

from typing import Any

import fly
import fly.expr as fx
from fly.kernels.approximations import LOG2_E, exp2
from fly.kernels.attention.problem import Keys, Problem, Queries, Starts, empty_like, tiles
from fly.kernels.attention.tiles import (
    OWN,
    Scores,
    Streamed,
    Sums,
    Weights,
    across_rows,
    own_rows,
    workgroup,
)

LOWEST = -3.4028234663852886e38  # LOWEST - LOWEST is 0, unlike -inf - -inf


@fly.kernel
def attention_kernel(
    Q: fx.Tensor,
    K: fx.Tensor,
    V: fx.Tensor,
    Out: fx.Tensor,
    Lse: fx.Tensor,
    starts_q: fx.Tensor,
    starts_k: fx.Tensor,
    scale: fx.Float32,
    problem: fx.Constexpr[Problem],
):
    group = workgroup(Q.dtype, problem.d)
    part = problem.part(Q, K, starts_q, starts_k)
    if not part.exists:
        return
    head, kv_head = fx.block_idx.y, fx.block_idx.y // (Q.shape[1] // K.shape[1])
    keys = Streamed(group, part.keys(K, kv_head), rows=True)
    values = Streamed(group, part.keys(V, kv_head), columns=True)
    queries = own_rows(group, part.queries(Q, head), part.tile)
    scores, weights, sums = Scores(group), Weights(group), Sums(group)

    first_query = part.tile * OWN
    bound, total = fx.Float32(LOWEST), fx.Float32(0)
    keys.load(0)
    values.load(0)
    for step in range(fx.ceildiv(part.keys_end(first_query + OWN), group.rows)):
        fx.barrier()  # all have read the tiles before
        keys.store()
        values.store()
        fx.barrier()
        keys.load(step + 1)
        values.load(step + 1)

        s = scores.of(keys, queries)
        s.store(s.load() * (scale * LOG2_E))
        first_key = step * group.rows
        if not part.all_see(first_query, OWN, first_key, group.rows):
            for i in fx.range_constexpr(scores.count):
                key, query = scores.place(i)
                if not part.sees(first_query + query, first_key + key):
                    s[i] = float("-inf")
        before = bound
        # NaN is not in the bound, but in the sum and, by its weight, in all numbers of the row.
        bound = across_rows(fx.maxnumf(before, *s.load()), fx.maxnumf)
        exponentials = exp2(s.load() - bound)
        shrink = exp2(before - bound)
        total = total * shrink + exponentials.reduce("add")
        sums.scale(shrink)
        sums.add(values, weights.of(exponentials, scores))

    total = across_rows(total, lambda a, b: a + b)
    sums.scale(1 / total if total > 0 else 0.0)  # 0 for a query that sees no key
    sums.store(part.queries(Out, head), part.tile)
    lse = part.numbers(Lse, head)
    _, own = scores.place(0)
    if (fx.lane_id() < 16) & (first_query + own < part.length_q):
        lse[first_query + own] = (
            (bound + fx.log2(total)) * (1 / LOG2_E) if total > 0 else float("-inf")
        )


def launch(
    Q: Any, K: Any, V: Any, starts_q: Any, starts_k: Any, scale: Any, problem: Problem
) -> tuple[Any, Any]:
    """In a host function: allocates the results and launches the kernel."""
    Out = empty_like(Q)
    Lse = fx.empty((Q.shape[0], Q.shape[1], Q.shape[2]), fx.Float32)
    grid = (tiles(Q.shape[2], starts_q, problem.packed), Q.shape[1], Q.shape[0])
    attention_kernel(Q, K, V, Out, Lse, starts_q, starts_k, scale, problem).launch(
        grid=grid, block=workgroup(Q.dtype, problem.d).threads
    )
    return Out, Lse


@fly.jit
def attention(Q: Queries, K: Keys, V: Keys, scale: fx.Float32, problem: fx.Constexpr[Problem]):
    """Sequences that are the batches of Q, K and V."""
    starts = fx.empty((0,), fx.Int32)
    Out, Lse = launch(Q, K, V, starts, starts, scale, problem)
    return Out, Lse


@fly.jit
def packed_attention(
    Q: Queries,
    K: Keys,
    V: Keys,
    starts_q: Starts,
    starts_k: Starts,
    scale: fx.Float32,
    problem: fx.Constexpr[Problem],
):
    """Sequences between `starts` in Q, K and V with one batch."""
    Out, Lse = launch(Q, K, V, starts_q, starts_k, scale, problem)
    return Out, Lse
