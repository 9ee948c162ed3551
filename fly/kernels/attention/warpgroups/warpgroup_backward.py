"""The gradients of attention on Hopper by TMA and wgmma; see `backward` for the formulas.

A block owns 128 keys of a head, and their values, and goes through the queries that see them, of
all heads that share the keys. One thread of its first warp group copies tiles of queries and of
gradients of results to two rings of buffers. The other two warp groups own 64 keys each. A group
computes scores and dP transposed, so that the rows are its keys: as P and dS they lie in its
registers as the operand of the sums of dV and dK has to. The product of dS and the keys is one of
all 128 keys: dS goes through shared memory, and each group adds a half of what it contributes to dQ
to memory, by atomic operations, in the order of its registers.
"""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.attention.problem import Problem, empty_like, tiles
from fly.kernels.attention.warpgroups import forms
from fly.kernels.attention.warpgroups.forms import KEYS, QUERIES, columns
from fly.kernels.attention.warpgroups.groups import (
    CHUNK,
    FEW,
    GROUPS,
    MANY,
    THREADS,
    WORKERS,
    clear,
    result_layout,
)
from fly.kernels.attention.warpgroups.key_gradients import KeyGradients, Streamed
from fly.kernels.attention.warpgroups.rings import Ring
from fly.kernels.attention.warpgroups.warpgroup_queries import (
    add,
    finish_kernel,
    prepare_kernel,
    sums_of,
)

STAGES = 2


@fly.kernel
def gradient_kernel(
    at_q,
    at_k,
    at_v,
    at_gradients,
    at_logs,
    at_deltas,
    to_k,
    to_v,
    Q: fx.Tensor,
    K: fx.Tensor,
    dK: fx.Tensor,
    dV: fx.Tensor,
    Sums: fx.Tensor,
    starts_q: fx.Tensor,
    starts_k: fx.Tensor,
    scale: fx.Float32,
    element: fx.Constexpr[str],
    problem: fx.Constexpr[Problem],
):
    dependent.wait_for_previous()
    dependent.let_next_begin()
    part = problem.part(KEYS, Q, K, starts_q, starts_k, of_keys=True)
    if not part.exists:
        return
    form, dtype, d = forms.backward(element, problem.d), EVERY[element], problem.d
    rows = QUERIES[d]
    tiles_own = fx.nvvm.SharedTiles(dtype, form.own, 2)
    tiles_q, tiles_g = [fx.nvvm.SharedTiles(dtype, form.streamed, STAGES) for _ in range(2)]
    tiles_s = fx.nvvm.SharedTiles(dtype, form.gradients, 2)
    logs, deltas = [fx.nvvm.SharedTiles(fx.Float32, form.numbers, STAGES) for _ in range(2)]
    buffers = fx.nvvm.SharedTiles(dtype, result_layout(dtype), GROUPS * d // CHUNK)
    own = fx.nvvm.Pipeline(1, consumers=GROUPS)
    ring_q, ring_g = Ring(STAGES, tiles_q, logs), Ring(STAGES, tiles_g, deltas)
    group, thread = fx.nvvm.warp_group_index(), fx.thread_idx.x % THREADS
    kv_head, shared = fx.block_idx.y, Q.shape[1] // K.shape[1]
    heads = kv_head * shared, (kv_head + 1) * shared
    first_key = part.tile * KEYS
    steps = part.queries_start(first_key) // rows, fx.ceildiv(part.length_q, rows)
    before = part.tiles_before(rows)
    count = fx.Int32(0)  # tiles of queries so far

    if group == 0:
        fx.nvvm.set_registers(FEW, more=False)
        if thread == 0:
            slot = own.fill(0, at_k.nbytes + at_v.nbytes)
            at = part.batch, kv_head, part.first_k + first_key, 0
            fx.nvvm.tma_load(at_k, at, tiles_own[0], slot.barrier)
            fx.nvvm.tma_load(at_v, at, tiles_own[1], slot.barrier)
            for head in range(*heads):
                for step in range(*steps):
                    at = part.batch, head, part.first_q + step * rows, 0
                    number = (head, (before + step) * rows)
                    ring_q.copy(count, (at_q, at), (at_logs, number))
                    ring_g.copy(count, (at_gradients, at), (at_deltas, number))
                    count += 1
    else:
        fx.nvvm.set_registers(MANY, more=True)
        consumer = group - 1
        made = KeyGradients(form, dtype, part, consumer, scale)
        made.dk.fill(0)
        made.dv.fill(0)
        own.wait(0)
        if problem.packed and first_key + KEYS > part.length_k:
            clear((tiles_own[0], tiles_own[1]), part.length_k - first_key)
        for head in range(*heads):
            for step in range(*steps):
                # 0, computed in each step: the descriptors of own tiles, were they kept from step
                # to step, would need more registers than there are.
                first = fx.nvvm.warp_group_index() // (1 + GROUPS)
                keys, values = tiles_own[first], tiles_own[first + 1]
                stage = ring_q.wait(count)
                tile = Streamed(tiles_q[stage], tiles_g[stage], logs[stage], deltas[stage])
                if problem.packed and (step + 1) * rows > part.length_q:
                    ring_g.wait(count)
                    clear((tile.queries, tile.gradients), part.length_q - step * rows)
                made.start_scores(keys, tile.queries)
                ring_g.wait(count)
                made.start_weights(values, tile.gradients)
                made.weigh(step, tile)
                made.differentiate(tile, tiles_s[count % 2])
                made.start_sums(keys, tile, tiles_s[count % 2])
                ring_g.release(count)
                add(made.dq, sums_of(Sums, head, before + step), consumer)
                fx.nvvm.wgmma_wait(0, made.dk, made.dv)
                ring_q.release(count)
                count += 1
        made.store(buffers, consumer, kv_head, ((to_k, dK), (to_v, dV)))
        if thread == 0:
            fx.nvvm.tma_wait(0)


def launch(dOut, dLse, Q, K, V, Out, Lse, starts_q, starts_k, scale, problem):
    """In a host function: allocates the gradients and launches the kernels."""
    rows, element = QUERIES[problem.d], Q.dtype.name
    form, results = forms.backward(element, problem.d), result_layout(Q.dtype)
    batches, heads = Q.shape[0], Q.shape[1]
    across = tiles(rows, Q.shape[2], starts_q, problem.packed)
    dQ, dK, dV = empty_like(Q), empty_like(K), empty_like(V)
    Logs, Deltas = [fx.empty((heads, batches * across * rows), fx.Float32) for _ in range(2)]
    Sums = fx.empty((heads, batches * across, rows * problem.d), fx.Float32)
    starts, grid = (starts_q, starts_k), (across, heads, batches)
    prepare_kernel(dOut, Out, dLse, Lse, Q, K, Logs, Deltas, Sums, *starts, problem).launch(
        grid=grid, block=WORKERS
    )
    maps = [
        fx.nvvm.tensor_map(X, layout)
        for X, layout in (
            (Q, form.streamed),
            (K, form.own),
            (V, form.own),
            (dOut, form.streamed),
            (Logs, form.numbers),
            (Deltas, form.numbers),
            (dK, results),
            (dV, results),
        )
    ]
    gradient_kernel(*maps, Q, K, dK, dV, Sums, *starts, scale, element, problem).launch(
        grid=(tiles(KEYS, K.shape[2], starts_k, problem.packed), K.shape[1], batches),
        block=THREADS + WORKERS,
    )
    to_q = fx.nvvm.tensor_map(dQ, result_layout(Q.dtype, columns(problem.d)))
    finish_kernel(to_q, Q, K, dQ, Sums, *starts, scale, element, problem).launch(
        grid=grid, block=WORKERS
    )
    return dQ, dK, dV
