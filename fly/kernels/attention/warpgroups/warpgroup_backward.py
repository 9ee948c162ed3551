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
from fly.kernels.approximations import LOG2_E, exp2
from fly.kernels.attention.problem import (
    Problem,
    empty_like,
    tiles,
)
from fly.kernels.attention.warpgroups.groups import (
    CHUNK,
    FEW,
    GROUPS,
    MANY,
    ROWS,
    SHARED,
    THREADS,
    WORKERS,
    clear,
    result_layout,
    store,
    transposed,
)
from fly.kernels.attention.warpgroups.warpgroup_queries import (
    KEYS,
    QUERIES,
    add,
    columns,
    finish_kernel,
    forms,
    prepare_kernel,
    sums_of,
)

STAGES = 2


def start(product, sums, a, b):
    """Starts to add a product of tiles to sums."""
    fx.nvvm.wgmma_fence()
    fx.gemm(product, sums, a, b, sums)
    fx.nvvm.wgmma_commit()


def numbers_of(own, tile):
    """Those of the queries of a thread's scores, in the order of these."""
    layout = fx.make_layout((KEYS, int(fx.size(tile))), (0, 1))
    return own.partition_C(fx.make_view(fx.get_iter(tile), layout))


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
    form, dtype, d = forms(element, problem.d), EVERY[element], problem.d
    rows = QUERIES[d]
    tiles_own = fx.nvvm.SharedTiles(dtype, form.own, 2)
    tiles_q = fx.nvvm.SharedTiles(dtype, form.streamed, STAGES)
    tiles_g = fx.nvvm.SharedTiles(dtype, form.streamed, STAGES)
    tiles_s = fx.nvvm.SharedTiles(dtype, form.gradients, 2)
    logs = fx.nvvm.SharedTiles(fx.Float32, form.numbers, STAGES)
    deltas = fx.nvvm.SharedTiles(fx.Float32, form.numbers, STAGES)
    buffers = fx.nvvm.SharedTiles(dtype, result_layout(dtype), GROUPS * d // CHUNK)
    ring_own = fx.nvvm.Pipeline(1, consumers=GROUPS)
    ring_q = fx.nvvm.Pipeline(STAGES, consumers=GROUPS)
    ring_g = fx.nvvm.Pipeline(STAGES, consumers=GROUPS)
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
            slot = ring_own.fill(0, at_k.nbytes + at_v.nbytes)
            at = part.batch, kv_head, part.first_k + first_key, 0
            fx.nvvm.tma_load(at_k, at, tiles_own[0], slot.barrier)
            fx.nvvm.tma_load(at_v, at, tiles_own[1], slot.barrier)
            for head in range(*heads):
                for step in range(*steps):
                    at = part.batch, head, part.first_q + step * rows, 0
                    number = (head, (before + step) * rows)
                    slot = ring_q.fill(count, at_q.nbytes + at_logs.nbytes)
                    fx.nvvm.tma_load(at_q, at, tiles_q[slot.stage], slot.barrier)
                    fx.nvvm.tma_load(at_logs, number, logs[slot.stage], slot.barrier)
                    slot = ring_g.fill(count, at_gradients.nbytes + at_deltas.nbytes)
                    fx.nvvm.tma_load(at_gradients, at, tiles_g[slot.stage], slot.barrier)
                    fx.nvvm.tma_load(at_deltas, number, deltas[slot.stage], slot.barrier)
                    count += 1
    else:
        fx.nvvm.set_registers(MANY, more=True)
        consumer = group - 1
        of_scores, of_sums, of_queries = [
            product.get_slice(consumer * THREADS)
            for product in (form.scores, form.sums, form.queries)
        ]
        own = form.scores.get_slice(consumer * THREADS + thread)
        places = own.partition_C(
            fx.make_view((first_key, 0), fx.make_identity_layout((KEYS, rows)))
        )
        s, dp, dk, dv, dq = [
            fx.make_rmem_tensor(fx.nvvm.accumulators(product), fx.Float32)
            for product in (form.scores, form.scores, form.sums, form.sums, form.queries)
        ]
        p, ds = [fx.make_rmem_tensor(fx.nvvm.operand_a(form.sums, rows), dtype) for _ in range(2)]
        move = fx.make_copy_atom(fx.nvvm.StoreMatrix(4), dtype)
        write = fx.make_tiled_copy_C(move, form.scores).get_slice(consumer * THREADS + thread)
        factor = scale * LOG2_E

        dk.fill(0)
        dv.fill(0)
        ring_own.wait(0)
        if problem.packed and first_key + KEYS > part.length_k:
            clear((tiles_own[0], tiles_own[1]), part.length_k - first_key)
        for head in range(*heads):
            for step in range(*steps):
                s.fill(0)
                dp.fill(0)
                # 0, computed in each step: the descriptors of own tiles, were they kept from step
                # to step, would need more registers than there are.
                first = fx.nvvm.warp_group_index() // (1 + GROUPS)
                keys, values = tiles_own[first], tiles_own[first + 1]
                stage = ring_q.wait(count).stage
                queries = tiles_q[stage]
                if problem.packed and (step + 1) * rows > part.length_q:
                    ring_g.wait(count)
                    clear((queries, tiles_g[stage]), part.length_q - step * rows)
                start(form.scores, s, of_scores.partition_A(keys), of_scores.partition_B(queries))
                gradients = tiles_g[ring_g.wait(count).stage]
                start(
                    form.scores, dp, of_scores.partition_A(values), of_scores.partition_B(gradients)
                )
                fx.nvvm.wgmma_wait(1, s)
                log = numbers_of(own, logs[stage])
                for i in fx.range_constexpr(int(fx.size(s))):
                    s[i] = exp2(fx.fma(s[i], factor, -log[i]))
                if not part.all_see(step * rows, rows, first_key, KEYS):
                    for i in fx.range_constexpr(int(fx.size(s))):
                        key, query = places[i].unpack()
                        s[i] = fx.where(part.sees(query + step * rows, key), s[i], 0.0)
                fx.make_view(fx.get_iter(p), s.layout).store(s.load().to(dtype))
                start(form.sums, dv, p, of_sums.partition_B(transposed(gradients)))
                fx.nvvm.wgmma_wait(1, dp)
                delta = numbers_of(own, deltas[stage])
                for i in fx.range_constexpr(int(fx.size(s))):
                    dp[i] = s[i] * (dp[i] - delta[i])
                held = fx.make_view(fx.get_iter(ds), s.layout)
                held.store(dp.load().to(dtype))
                tile = tiles_s[count % 2]
                fx.copy(move, write.retile(held), write.partition_D(tile))
                fx.nvvm.fence_async()
                fx.nvvm.barrier_sync(SHARED, WORKERS)
                dq.fill(0)
                start(
                    form.queries,
                    dq,
                    of_queries.partition_A(transposed(tile)),
                    of_queries.partition_B(transposed(keys)),
                )
                start(form.sums, dk, ds, of_sums.partition_B(transposed(queries)))
                fx.nvvm.wgmma_wait(1, dq)
                if thread == 0:
                    ring_g.release(count)
                add(dq, sums_of(Sums, head, before + step), consumer)
                fx.nvvm.wgmma_wait(0, dk, dv)
                if thread == 0:
                    ring_q.release(count)
                count += 1
        for i in fx.range_constexpr(int(fx.size(dk))):
            dk[i] = dk[i] * scale
        at = part.batch, kv_head, part.first_k + first_key + consumer * ROWS, 0
        left = part.length_k - first_key - consumer * ROWS
        for sums, target, tensor in ((dk, to_k, dK), (dv, to_v, dV)):
            rest = (tensor, left) if problem.packed else None
            store(sums, buffers, consumer, target, at, dtype, rest)
        if thread == 0:
            fx.nvvm.tma_wait(0)


def launch(dOut, dLse, Q, K, V, Out, Lse, starts_q, starts_k, scale, problem):
    """In a host function: allocates the gradients and launches the kernels."""
    rows, element = QUERIES[problem.d], Q.dtype.name
    form, results = forms(element, problem.d), result_layout(Q.dtype)
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
