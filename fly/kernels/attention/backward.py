"""The kernels of attention's gradients.

The weights of softmax are computed again, from the scores and the logarithms of their sums:
P = exp(scale · Q·Kᵀ - lse). With dP = dOut·Vᵀ and delta = sum(dOut · Out) - dLse, of each query,
the gradient of the scaled scores is dS = P · (dP - delta), and

    dV = Pᵀ·dOut        dK = scale · dSᵀ·Q        dQ = scale · dS·K

One kernel owns queries and sums over keys, the other owns keys and sums over queries and over the
heads that share them. Each result is written by one workgroup, so the same numbers are added in the
same order in each run.
"""

from __future__ import annotations

from typing import Any

import fly
import fly.expr as fx
from fly.kernels.approximations import LOG2_E, exp2
from fly.kernels.attention.deltas import DELTA_THREADS, delta_kernel
from fly.kernels.attention.problem import Problem, empty_like, tiles
from fly.kernels.attention.tile_products import Scores, Sums, Weights
from fly.kernels.attention.tiles import Streamed, advance, own_rows
from fly.kernels.attention.vectors import WIDTH
from fly.kernels.attention.workgroup import workgroup


def gradients_of_scores(s: Any, dp: Any, lse: Any, delta: Any, seen: Any) -> tuple[Any, Any]:
    """P and dS, of one score. `lse` is a logarithm to base 2, as are scores."""
    p = fx.where(seen, exp2(s - lse), 0.0)
    return p, p * (dp - delta)


@fly.kernel
def query_gradient_kernel(
    dOut: fx.Tensor,
    Q: fx.Tensor,
    K: fx.Tensor,
    V: fx.Tensor,
    Lse: fx.Tensor,
    Delta: fx.Tensor,
    dQ: fx.Tensor,
    starts_q: fx.Tensor,
    starts_k: fx.Tensor,
    scale: fx.Float32,
    problem: fx.Constexpr[Problem],
):
    group = workgroup(Q.dtype, problem.d)
    part = problem.part(group.own, Q, K, starts_q, starts_k)
    if not part.exists:
        return
    head, kv_head = problem.heads(Q, K)
    keys = Streamed(group, part.keys(K, kv_head), rows=True, columns=True)
    values = Streamed(group, part.keys(V, kv_head), rows=True)
    queries, gradients = [own_rows(group, part.queries(t, head), part.tile) for t in (Q, dOut)]
    scores, weights, sums = Scores(group), Weights(group), Sums(group)

    first_query = part.tile * group.own
    _, own = scores.place(0)
    query = fx.min(first_query + own, part.length_q - 1)
    lse, delta = part.numbers(Lse, head)[query] * LOG2_E, part.numbers(Delta, head)[query]
    keys.load(0)
    values.load(0)
    for step in range(fx.ceildiv(part.keys_end(first_query + group.own), group.rows)):
        advance(step, keys, values)
        s, dp = scores.of(keys, queries), scores.of(values, gradients)
        for i in fx.range_constexpr(scores.count):
            key, query = scores.place(i)
            seen = part.sees(first_query + query, step * group.rows + key)
            s[i] = gradients_of_scores(s[i] * (scale * LOG2_E), dp[i], lse, delta, seen)[1]
        sums.add(keys, weights.of(s.load(), scores))
    sums.scale(scale)
    sums.store(part.queries(dQ, head), part.tile)


@fly.kernel
def key_gradient_kernel(
    dOut: fx.Tensor,
    Q: fx.Tensor,
    K: fx.Tensor,
    V: fx.Tensor,
    Lse: fx.Tensor,
    Delta: fx.Tensor,
    dK: fx.Tensor,
    dV: fx.Tensor,
    starts_q: fx.Tensor,
    starts_k: fx.Tensor,
    scale: fx.Float32,
    problem: fx.Constexpr[Problem],
):
    group = workgroup(Q.dtype, problem.d)
    part = problem.part(group.own, Q, K, starts_q, starts_k, of_keys=True)
    if not part.exists:
        return
    kv_head, heads = fx.block_idx.y, fx.Int32(fx.Uint32(Q.shape[1]) // fx.Uint32(K.shape[1]))
    keys, values = [own_rows(group, part.keys(t, kv_head), part.tile) for t in (K, V)]
    scores, weights = Scores(group), Weights(group)
    key_sums, value_sums = Sums(group), Sums(group)

    first_key = part.tile * group.own
    first_step = part.queries_start(first_key) // group.rows
    for head in range(kv_head * heads, (kv_head + 1) * heads):
        queries, gradients = [
            Streamed(group, part.queries(t, head), rows=True, columns=True) for t in (Q, dOut)
        ]
        lse, delta = part.numbers(Lse, head), part.numbers(Delta, head)
        queries.load(first_step)
        gradients.load(first_step)
        for step in range(first_step, fx.ceildiv(part.length_q, group.rows)):
            advance(step, queries, gradients)
            s, dp = scores.of(queries, keys), scores.of(gradients, values)
            for i in fx.range_constexpr(scores.count):
                row, key = scores.place(i)
                query = step * group.rows + row
                seen = part.sees(query, first_key + key)
                row = fx.min(query, part.length_q - 1)
                s[i], dp[i] = gradients_of_scores(
                    s[i] * (scale * LOG2_E), dp[i], lse[row] * LOG2_E, delta[row], seen
                )
            value_sums.add(gradients, weights.of(s.load(), scores))
            key_sums.add(queries, weights.of(dp.load(), scores))
    key_sums.scale(scale)
    key_sums.store(part.keys(dK, kv_head), part.tile)
    value_sums.store(part.keys(dV, kv_head), part.tile)


def launch(
    dOut: Any,
    dLse: Any,
    Q: Any,
    K: Any,
    V: Any,
    Out: Any,
    Lse: Any,
    starts_q: Any,
    starts_k: Any,
    scale: Any,
    problem: Problem,
) -> tuple[Any, Any, Any]:
    """In a host function: allocates the gradients and launches the kernels."""
    Delta = fx.empty(Lse.shape, fx.Float32)
    dQ, dK, dV = empty_like(Q), empty_like(K), empty_like(V)
    batches, heads, kv_heads = Q.shape[0], Q.shape[1], K.shape[1]
    rows = fx.ceildiv(Q.shape[2], DELTA_THREADS * WIDTH // problem.d)
    delta_kernel(dOut, Out, dLse, Delta, problem.d).launch(
        grid=(rows, heads, batches), block=DELTA_THREADS
    )
    group = workgroup(Q.dtype, problem.d)
    inputs = (dOut, Q, K, V, Lse, Delta)
    query_gradient_kernel(*inputs, dQ, starts_q, starts_k, scale, problem).launch(
        grid=(tiles(group.own, Q.shape[2], starts_q, problem.packed), heads, batches),
        block=group.threads,
    )
    key_gradient_kernel(*inputs, dK, dV, starts_q, starts_k, scale, problem).launch(
        grid=(tiles(group.own, K.shape[2], starts_k, problem.packed), kv_heads, batches),
        block=group.threads,
    )
    return dQ, dK, dV
