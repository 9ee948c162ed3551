"""Attention on Hopper by TMA and wgmma: softmax(scale · Q·Kᵀ)·V, and the logarithms of the sums.

A block takes 128 queries of a head. One thread of its first warp group copies the queries, and
tiles of keys and values to two rings of buffers in shared memory. The other two warp groups have 64
queries each. A group multiplies the next tile of keys while the values of the one before are
multiplied, and computes softmax in registers: sums of Q·Kᵀ lie as the operand of ·V has to.
"""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels.attention.problem import Problem, empty_like
from fly.kernels.attention.problem import tiles as tiles_of
from fly.kernels.attention.views import transposed
from fly.kernels.attention.warpgroups import forms
from fly.kernels.attention.warpgroups.forms import KEYS
from fly.kernels.attention.warpgroups.groups import (
    CHUNK,
    FEW,
    GROUPS,
    MANY,
    ROWS,
    THREADS,
    clear,
    store,
)
from fly.kernels.attention.warpgroups.query_schedule import BLOCKS, Schedule
from fly.kernels.attention.warpgroups.rings import Ring, start
from fly.kernels.attention.warpgroups.row_softmax import Rows, divide, hide, scaled

STAGES = 2


@fly.kernel
def warpgroup_attention_kernel(
    Q,
    K,
    V,
    Out,
    queries: fx.Tensor,
    keys: fx.Tensor,
    out: fx.Tensor,
    Lse: fx.Tensor,
    starts_q: fx.Tensor,
    starts_k: fx.Tensor,
    scale: fx.Float32,
    element: fx.Constexpr[str],
    problem: fx.Constexpr[Problem],
):
    form, dtype = forms.forward(element, problem.d), EVERY[element]
    tiles_q, tiles_k, tiles_v = [
        fx.nvvm.SharedTiles(dtype, layout, STAGES)
        for layout in (form.queries, form.keys, form.keys)
    ]
    buffers = fx.nvvm.SharedTiles(dtype, form.results, GROUPS * problem.d // CHUNK)
    ring_q, ring_k, ring_v = [Ring(STAGES, tiles) for tiles in (tiles_q, tiles_k, tiles_v)]
    group, thread = fx.nvvm.warp_group_index(), fx.thread_idx.x % THREADS
    schedule = Schedule(queries, keys, starts_q, starts_k, problem)
    turn, count = fx.Int32(0), fx.Int32(0)  # tiles of queries, and of keys, so far

    if group == 0:
        fx.nvvm.set_registers(FEW, more=False)
        if thread == 0:
            for tile in range(fx.block_idx.x, schedule.count, fx.grid_dim.x):
                part, head, kv_head, first, steps = schedule.place(tile)
                ring_q.copy(turn, (Q, (part.batch, head, part.first_q + first, 0)))
                turn += 1
                for step in range(steps):
                    at = (part.batch, kv_head, part.first_k + step * KEYS, 0)
                    ring_k.copy(count, (K, at))
                    ring_v.copy(count, (V, at))
                    count += 1
    else:
        fx.nvvm.set_registers(MANY, more=True)
        consumer = group - 1
        scores, outputs = form.scores, form.outputs
        own_scores = scores.get_slice(consumer * THREADS)
        own_outputs = outputs.get_slice(consumer * THREADS)
        s = fx.make_rmem_tensor(fx.nvvm.accumulators(scores), fx.Float32)
        o = fx.make_rmem_tensor(fx.nvvm.accumulators(outputs), fx.Float32)
        weights = fx.make_rmem_tensor(fx.nvvm.operand_a(outputs, KEYS), dtype)
        rows = Rows(scale)

        def start_scores(number, tile_q):
            b = own_scores.partition_B(tiles_k[ring_k.wait(number)])
            s.fill(0)
            start(scores, s, own_scores.partition_A(tile_q), b)

        def start_outputs(number, keys):
            """Of a tile of values, of which so many are the sequence's."""
            tile = tiles_v[ring_v.wait(number)]
            if problem.packed and keys < KEYS:
                clear((tile,), keys)
            start(outputs, o, weights, own_outputs.partition_B(transposed(tile)))

        def keep_weights():
            fx.make_view(fx.get_iter(weights), s.layout).store(s.load().to(dtype))

        for tile in range(fx.block_idx.x, schedule.count, fx.grid_dim.x):
            part, head, _, first, steps = schedule.place(tile)
            place = own_places(scores, consumer, thread, first)
            first += consumer * ROWS
            tile_q = tiles_q[ring_q.wait(turn)]
            rows.start()
            o.fill(0)
            start_scores(count, tile_q)
            fx.nvvm.wgmma_wait(0, s)
            ring_k.release(count)
            hide(s, place, 0, part, first)
            rows.weigh(s)
            keep_weights()
            for step in range(1, steps):
                start_scores(count + step, tile_q)
                start_outputs(count + step - 1, part.length_k - (step - 1) * KEYS)
                fx.nvvm.wgmma_wait(1, s)
                ring_k.release(count + step)
                hide(s, place, step, part, first)
                shrink = rows.weigh(s)
                if problem.d == 128:  # heads of 64 leave less time between the waits
                    fx.nvvm.wait_after(rows.total[0] + rows.total[1])
                fx.nvvm.wgmma_wait(0, s, o)
                ring_v.release(count + step - 1)
                scaled(o, shrink)
                keep_weights()
            count += steps
            ring_q.release(turn)
            turn += 1
            start_outputs(count - 1, part.length_k - (steps - 1) * KEYS)
            fx.nvvm.wgmma_wait(0, o)
            ring_v.release(count - 1)
            divide(o, rows, place, Lse, part, head)
            at = part.batch, head, part.first_q + first, 0
            rest = (out, part.length_q - first) if problem.packed else None
            store(o, buffers, consumer, Out, at, dtype, rest)
        if thread == 0:
            fx.nvvm.tma_wait(0)


def own_places(product, consumer, thread, first):
    """Query and key of each of a thread's scores."""
    places = fx.make_view((first, 0), fx.make_identity_layout((GROUPS * ROWS, KEYS)))
    return product.get_slice(consumer * THREADS + thread).partition_C(places)


def launch(Q, K, V, starts_q, starts_k, scale, problem):
    """In a host function: allocates the results and launches the kernel."""
    batches, heads, length = Q.shape[0], Q.shape[1], Q.shape[2]
    Out = empty_like(Q)
    Lse = fx.empty((batches, heads, length), fx.Float32)
    form = forms.forward(Q.dtype.name, problem.d)
    maps = [
        fx.nvvm.tensor_map(X, layout)
        for X, layout in (
            (Q, form.queries),
            (K, form.keys),
            (V, form.keys),
            (Out, form.results),
        )
    ]
    blocks = batches * heads * tiles_of(GROUPS * ROWS, length, starts_q, problem.packed)
    warpgroup_attention_kernel(
        *maps, Q, K, Out, Lse, starts_q, starts_k, scale, Q.dtype.name, problem
    ).launch(grid=fx.min(blocks, BLOCKS), block=(1 + GROUPS) * THREADS)
    return Out, Lse
