"""The kernel of attention: softmax(scale · Q·Kᵀ)·V, and the logarithms of softmax's sums.

A workgroup takes some queries of a head and goes through the keys that they attend to, with an
online softmax (Dao, "FlashAttention-2", arXiv:2307.08691).
"""

from __future__ import annotations

from typing import Any

import fly
import fly.expr as fx
from fly.kernels.approximations import LOG2_E, exp2, log2, reciprocal
from fly.kernels.attention.problem import Problem, empty_like, tiles
from fly.kernels.attention.tile_products import Scores, Sums, Weights
from fly.kernels.attention.tiles import Streamed, own_rows, publish
from fly.kernels.attention.workgroup import across_rows, workgroup
from fly.kernels.mixed_precision import anew, anew_in_lanes, in_order

LOWEST = -3.4028234663852886e38  # LOWEST - LOWEST is 0, unlike -inf - -inf
TINY = 1e-30  # instead of 0, which is not a factor of -inf
# Sums are scaled to another bound if a score exceeds theirs by so much. Weights are then up to 2^8,
# and have the same relative errors.
SLACK = 8


def sum_of(numbers: Any) -> Any:
    """The sum of a vector, of halves at a time, which CDNA adds by two."""
    while numbers.numel > 1:
        count = numbers.numel // 2
        first, second = (numbers.shuffle(numbers, range(i, i + count)) for i in (0, count))
        numbers = first + second
    return numbers[0]


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
    group = workgroup(Q.dtype, problem.d, wide=True)
    part = problem.part(group.own, Q, K, starts_q, starts_k)
    if not part.exists:
        return
    head, kv_head = problem.heads(Q, K)
    keys = Streamed(group, part.keys(K, kv_head), rows=True)
    values = Streamed(group, part.keys(V, kv_head), columns=True)
    queries = own_rows(group, part.queries(Q, head), part.tile)
    scores, weights, sums = Scores(group), Weights(group), Sums(group)

    key, own = scores.place(0)
    first_query = part.tile * group.own
    # How many of the last keys the thread's query does not see, counted from its first score on;
    # and all of the wave's queries. What is left in the loop is counted from the end, too.
    length, wave = part.length_k, fx.warp.broadcast(fx.thread_idx.x // fx.num_warp_threads())
    unseen = fx.max(part.unseen(first_query + own + 1), 0) + key
    by_all = part.unseen(first_query + wave * group.edge + group.edge)
    factor = fx.max(scale * LOG2_E, TINY)
    bound, total = fx.Float32(LOWEST), fx.Float32(0)
    left, k, v = length, keys.start, values.start  # of keys, from the tile in LDS on
    keys.load_from(k, left)
    if group.turned:
        in_order()  # the same order as in the loop, for the same waits
    values.load_from(v, left)
    steps = fx.ceildiv(part.keys_end(first_query + group.own), group.rows)
    for _ in range(fx.max(steps, 1)):
        publish(keys, values)
        k, v = k + keys.step, v + values.step
        keys.load_from(k, left - group.rows)
        values.load_from(v, left - group.rows)

        # Where weights go through LDS, all waves meet at barriers.
        if not group.in_place or left > by_all:
            s = scores.of(keys, queries)
            # Whether any of the wave's queries does not see all.
            some = left < group.rows
            if problem.causal:
                some |= left - by_all < group.rows + group.edge - 1
            if some:
                for i in fx.range_constexpr(scores.count):
                    s[i] = fx.where(scores.row(i) < left - unseen, s[i], float("-inf"))
            # NaN is not in the bound, but in the sum and, by its weight, in all numbers of the row.
            most = across_rows(group, fx.maxnumf(*s.load()), fx.maxnumf) * factor
            if most > bound + SLACK:
                shrink = exp2(bound - most)
                bound, total = most, total * shrink
                sums.scale(shrink)
            exponentials = exp2(fx.fma(s.load(), factor, -bound))
            total += sum_of(exponentials)
            sums.add(values, weights.of(exponentials, scores))
        left -= group.rows

    total = across_rows(group, total, lambda a, b: a + b)
    sums.scale(0.0 if total == 0 else reciprocal(total))  # 0 for a query that sees no key
    thread, tile = fx.thread_idx.x, part.tile
    if group.turned:  # registers limit the waves
        thread, tile = anew_in_lanes(thread) & (group.threads - 1), fx.Int32(anew(tile))
        part = part if problem.packed else part._replace(batch=anew(part.batch))
    sums.store(part.queries(Out, head), tile, thread)
    lse, query = part.numbers(Lse, head), tile * group.own + Scores(group, thread).place(0)[1]
    if (thread % fx.num_warp_threads() < group.edge) & (query < part.length_q):
        lse[query] = float("-inf") if total == 0 else (bound + log2(total)) * (1 / LOG2_E)


def launch(
    Q: Any, K: Any, V: Any, starts_q: Any, starts_k: Any, scale: Any, problem: Problem
) -> tuple[Any, Any]:
    """In a host function: allocates the results and launches the kernel."""
    Out = empty_like(Q)
    Lse = fx.empty((Q.shape[0], Q.shape[1], Q.shape[2]), fx.Float32)
    group = workgroup(Q.dtype, problem.d, wide=True)
    grid = (tiles(group.own, Q.shape[2], starts_q, problem.packed), Q.shape[1], Q.shape[0])
    # Where distances of rows are arguments, or those of K are not V's, so that a thread has other
    # offsets in both, a register more is needed than that leaves.
    steps = {one.stride[2] if isinstance(one.stride[2], int) else None for one in (K, V)}
    fits = len(steps) == 1 and None not in steps and isinstance(Q.stride[2], int)
    attributes = (("rocdl.waves_per_eu", group.waves),) if group.waves and fits else ()
    attention_kernel(Q, K, V, Out, Lse, starts_q, starts_k, scale, problem).launch(
        grid=grid, block=group.threads, attributes=attributes
    )
    return Out, Lse
