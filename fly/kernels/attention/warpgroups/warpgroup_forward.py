"""Attention on Hopper by TMA and wgmma: softmax(scale · Q·Kᵀ)·V, and the logarithms of the sums.

A block takes 128 queries of a head. One thread of its first warp group copies the queries, and
tiles of keys and values to two rings of buffers in shared memory. The other two warp groups have 64
queries each. A group multiplies the next tile of keys while the values of the one before are
multiplied, and computes softmax in registers: sums of Q·Kᵀ lie as the operand of ·V has to.
"""

from __future__ import annotations

from typing import NamedTuple

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels.approximations import LOG2_E, exp2, log2
from fly.kernels.attention.problem import Problem, empty_like
from fly.kernels.attention.problem import tiles as tiles_of
from fly.kernels.attention.warpgroups.groups import (
    CHUNK,
    FEW,
    GROUPS,
    MANY,
    ROW,
    ROWS,
    THREADS,
    clear,
    result_layout,
    store,
    transposed,
)

KEYS = 128  # of a tile
TINY = 1e-30  # instead of 0, which is not a factor of -inf
STAGES = 2
BLOCKS = 132  # that run at once: the multiprocessors of an H100 or H200
CACHED = 24 << 20  # bytes of keys and values of heads that blocks work on together


class Tiles(NamedTuple):
    """The layouts in shared memory, and the multiplications: of queries and keys, of weights and
    values."""

    queries: object
    keys: object
    results: object
    scores: object
    outputs: object


def tiles(element, d):
    dtype = EVERY[element]
    one = fx.make_layout((GROUPS, 1, 1), (1, 0, 0))
    scores = fx.make_mma_atom(fx.nvvm.WGMMA(KEYS, dtype))
    outputs = fx.make_mma_atom(fx.nvvm.WGMMA(d, dtype, a_in_registers=True))
    return Tiles(
        fx.nvvm.tile_layout(dtype, (GROUPS * ROWS, d), 1, ROW),
        fx.nvvm.tile_layout(dtype, (KEYS, d), 1, ROW),
        result_layout(dtype),
        fx.make_tiled_mma(scores, one),
        fx.make_tiled_mma(outputs, one),
    )


class Rows:
    """The softmax of a thread's two rows: the bound of scores, and the sum of weights so far."""

    def __init__(self, scale):
        self.factor = fx.max(scale * LOG2_E, TINY)
        self.bound = fx.make_rmem_tensor(2, fx.Float32)
        self.total = fx.make_rmem_tensor(2, fx.Float32)

    def start(self):
        self.bound.fill(float("-inf"))
        self.total.fill(0)

    def weigh(self, s):
        """Replaces scores by weights; returns the factors of the sums so far."""
        count = int(fx.size(s))
        shrink = []
        for r in fx.range_constexpr(2):
            own = [i for i in range(count) if i // 2 % 2 == r]
            most = self.bound[r]
            for i in own:
                most = fx.maxnumf(most, s[i])
            for distance in (1, 2):
                most = fx.maxnumf(most, fx.shuffle_xor(most, distance, 32))
            zero = fx.where(most == float("-inf"), 0.0, most * self.factor)
            shrink.append(exp2(self.bound[r] * self.factor - zero))
            total = self.total[r] * shrink[r]
            for i in own:
                weight = exp2(fx.fma(s[i], self.factor, -zero))
                s[i] = weight
                total += weight
            self.bound[r], self.total[r] = most, total
        return shrink


def scaled(o, factors):
    for i in fx.range_constexpr(int(fx.size(o))):
        o[i] = o[i] * factors[i // 2 % 2]


class Schedule:
    """The tiles of queries, in the order in which blocks take them: of as many heads as have their
    keys and values in the L2 cache together, those with most keys first. Those of packed sequences
    one head after another."""

    def __init__(self, Q, K, starts_q, starts_k, problem):
        self.problem, self.given = problem, (Q, K, starts_q, starts_k)
        self.every = fx.Int32(Q.shape[0] * Q.shape[1])
        self.heads, self.kv_heads = Q.shape[1], K.shape[1]
        if problem.packed:
            self.rows = problem.count(GROUPS * ROWS, starts_q)
        else:
            self.rows = fx.ceildiv(Q.shape[2], GROUPS * ROWS)
            self.near = fx.max(1, CACHED // (4 * problem.d) // K.shape[2])
            if problem.causal:  # enough tiles for blocks to have equally many keys
                self.near = fx.max(self.near, 4 * BLOCKS // self.rows)
        self.count = self.every * self.rows

    def place(self, number):
        """Of a tile by its number: its part of a sequence, head of queries and of keys, first
        query, and tiles of keys."""
        if self.problem.packed:
            head, row = divmod(number, self.rows)
            batch = 0
        else:
            part, number = divmod(number, self.near * self.rows)
            row, number = divmod(number, fx.min(self.near, self.every - part * self.near))
            batch, head = divmod(part * self.near + number, self.heads)
            row = self.rows - 1 - row
        part = self.problem.part_of(row, batch, GROUPS * ROWS, *self.given)
        first = part.tile * (GROUPS * ROWS)
        steps = fx.ceildiv(keys_seen(part, first + GROUPS * ROWS - 1), KEYS)
        return part, head, head * self.kv_heads // self.heads, first, steps


def keys_seen(part, query):
    """How many keys a query sees; 1 for those of none, whose weights are 0."""
    return fx.max(1, part.keys_end(query + 1))


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
    layouts, dtype = tiles(element, problem.d), EVERY[element]
    tiles_q = fx.nvvm.SharedTiles(dtype, layouts.queries, STAGES)
    tiles_k = fx.nvvm.SharedTiles(dtype, layouts.keys, STAGES)
    tiles_v = fx.nvvm.SharedTiles(dtype, layouts.keys, STAGES)
    buffers = fx.nvvm.SharedTiles(dtype, layouts.results, GROUPS * problem.d // CHUNK)
    ring_q = fx.nvvm.Pipeline(STAGES, consumers=GROUPS)
    ring_k = fx.nvvm.Pipeline(STAGES, consumers=GROUPS)
    ring_v = fx.nvvm.Pipeline(STAGES, consumers=GROUPS)
    group, thread = fx.nvvm.warp_group_index(), fx.thread_idx.x % THREADS
    schedule = Schedule(queries, keys, starts_q, starts_k, problem)
    turn, count = fx.Int32(0), fx.Int32(0)  # tiles of queries, and of keys, so far

    if group == 0:
        fx.nvvm.set_registers(FEW, more=False)
        if thread == 0:
            for tile in range(fx.block_idx.x, schedule.count, fx.grid_dim.x):
                part, head, kv_head, first, steps = schedule.place(tile)
                own = ring_q.fill(turn, Q.nbytes)
                at = (part.batch, head, part.first_q + first, 0)
                fx.nvvm.tma_load(Q, at, tiles_q[own.stage], own.barrier)
                turn += 1
                for step in range(steps):
                    at = (part.batch, kv_head, part.first_k + step * KEYS, 0)
                    slot = ring_k.fill(count, K.nbytes)
                    fx.nvvm.tma_load(K, at, tiles_k[slot.stage], slot.barrier)
                    slot = ring_v.fill(count, V.nbytes)
                    fx.nvvm.tma_load(V, at, tiles_v[slot.stage], slot.barrier)
                    count += 1
    else:
        fx.nvvm.set_registers(MANY, more=True)
        consumer = group - 1
        scores, outputs = layouts.scores, layouts.outputs
        own_scores = scores.get_slice(consumer * THREADS)
        own_outputs = outputs.get_slice(consumer * THREADS)
        s = fx.make_rmem_tensor(fx.nvvm.accumulators(scores), fx.Float32)
        o = fx.make_rmem_tensor(fx.nvvm.accumulators(outputs), fx.Float32)
        weights = fx.make_rmem_tensor(fx.nvvm.operand_a(outputs, KEYS), dtype)
        rows = Rows(scale)

        def start_scores(number, tile_q):
            b = own_scores.partition_B(tiles_k[ring_k.wait(number).stage])
            s.fill(0)
            fx.nvvm.wgmma_fence()
            fx.gemm(scores, s, own_scores.partition_A(tile_q), b, s)
            fx.nvvm.wgmma_commit()

        def start_outputs(number, keys):
            """Of a tile of values, of which so many are the sequence's."""
            tile = tiles_v[ring_v.wait(number).stage]
            if problem.packed and keys < KEYS:
                clear((tile,), keys)
            v = transposed(tile)
            fx.nvvm.wgmma_fence()
            fx.gemm(outputs, o, weights, own_outputs.partition_B(v), o)
            fx.nvvm.wgmma_commit()

        def mask(step, part, place, first):
            if (step + 1) * KEYS > keys_seen(part, first):
                for i in fx.range_constexpr(int(fx.size(s))):
                    query, key = place[i].unpack()
                    limit = part.length_k
                    if problem.causal:
                        limit = fx.min(limit, query + 1 + limit - part.length_q)
                    s[i] = fx.where(key + step * KEYS < limit, s[i], float("-inf"))

        def keep_weights():
            fx.make_view(fx.get_iter(weights), s.layout).store(s.load().to(dtype))

        for tile in range(fx.block_idx.x, schedule.count, fx.grid_dim.x):
            part, head, _, first, steps = schedule.place(tile)
            place = own_places(scores, consumer, thread, first)
            first += consumer * ROWS
            tile_q = tiles_q[ring_q.wait(turn).stage]
            rows.start()
            o.fill(0)
            start_scores(count, tile_q)
            fx.nvvm.wgmma_wait(0, s)
            if thread == 0:
                ring_k.release(count)
            mask(0, part, place, first)
            rows.weigh(s)
            keep_weights()
            for step in range(1, steps):
                start_scores(count + step, tile_q)
                start_outputs(count + step - 1, part.length_k - (step - 1) * KEYS)
                fx.nvvm.wgmma_wait(1, s)
                if thread == 0:
                    ring_k.release(count + step)
                mask(step, part, place, first)
                shrink = rows.weigh(s)
                if problem.d == 128:  # heads of 64 leave less time between the waits
                    fx.nvvm.wait_after(rows.total[0] + rows.total[1])
                fx.nvvm.wgmma_wait(0, s, o)
                if thread == 0:
                    ring_v.release(count + step - 1)
                scaled(o, shrink)
                keep_weights()
            count += steps
            if thread == 0:
                ring_q.release(turn)
            turn += 1
            start_outputs(count - 1, part.length_k - (steps - 1) * KEYS)
            fx.nvvm.wgmma_wait(0, o)
            if thread == 0:
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


def divide(o, rows, place, Lse, part, head):
    """Divides a group's sums by those of weights, whose logarithms it stores."""
    numbers = part.numbers(Lse, head)
    inverse = []
    for r in fx.range_constexpr(2):
        total = rows.total[r]
        for distance in (1, 2):
            total += fx.shuffle_xor(total, distance, 32)
        inverse.append(fx.where(total == 0.0, 0.0, 1.0 / total))
        query, _ = place[2 * r].unpack()
        if (fx.thread_idx.x % 4 == 0) & (query < part.length_q):
            lse = (rows.bound[r] * rows.factor + log2(total)) * (1 / LOG2_E)
            numbers[query] = fx.where(total == 0.0, float("-inf"), lse)
    scaled(o, inverse)


def launch(Q, K, V, starts_q, starts_k, scale, problem):
    """In a host function: allocates the results and launches the kernel."""
    batches, heads, length = Q.shape[0], Q.shape[1], Q.shape[2]
    Out = empty_like(Q)
    Lse = fx.empty((batches, heads, length), fx.Float32)
    layouts = tiles(Q.dtype.name, problem.d)
    maps = [
        fx.nvvm.tensor_map(X, layout)
        for X, layout in (
            (Q, layouts.queries),
            (K, layouts.keys),
            (V, layouts.keys),
            (Out, layouts.results),
        )
    ]
    blocks = batches * heads * tiles_of(GROUPS * ROWS, length, starts_q, problem.packed)
    warpgroup_attention_kernel(
        *maps, Q, K, Out, Lse, starts_q, starts_k, scale, Q.dtype.name, problem
    ).launch(grid=fx.min(blocks, BLOCKS), block=(1 + GROUPS) * THREADS)
    return Out, Lse
