"""What the gradients' kernels of Hopper have of a tile of queries: before them the numbers that
they read, and behind them the sums of dQ, which they add to.

The sums of a tile lie in memory in the order of the registers of the threads that add to them,
which are the same threads here and there, so that those of a warp are adjacent.
"""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.approximations import LOG2_E
from fly.kernels.attention.problem import Problem
from fly.kernels.attention.vectors import WIDTH, load_vector, store_vector
from fly.kernels.attention.warpgroups import forms
from fly.kernels.attention.warpgroups.forms import QUERIES, columns
from fly.kernels.attention.warpgroups.groups import (
    GROUPS,
    ROWS,
    THREADS,
    WORKERS,
    result_layout,
    store,
)


@fly.kernel
def prepare_kernel(
    dOut: fx.Tensor,
    Out: fx.Tensor,
    dLse: fx.Tensor,
    Lse: fx.Tensor,
    Q: fx.Tensor,
    K: fx.Tensor,
    Logs: fx.Tensor,
    Deltas: fx.Tensor,
    Sums: fx.Tensor,
    starts_q: fx.Tensor,
    starts_k: fx.Tensor,
    problem: fx.Constexpr[Problem],
):
    """Of a tile of queries: the logarithms to base 2, infinite for queries that see no key or do
    not exist, whose weights then are 0; delta; and zeros for the sums of dQ."""
    dependent.let_next_begin()
    rows, lanes = QUERIES[problem.d], problem.d // WIDTH
    part = problem.part(rows, Q, K, starts_q, starts_k)
    if not part.exists:
        return
    head, tile = fx.block_idx.y, part.tiles_before(rows) + part.tile
    line, lane = divmod(fx.thread_idx.x, lanes)
    gradients, outs = part.queries(dOut, head), part.queries(Out, head)
    sums, zeros = sums_of(Sums, head, tile), fx.full((WIDTH,), 0.0, fx.Float32)
    for first in fx.range_constexpr(0, rows, WORKERS // lanes):
        row = first + line
        query = fx.min(part.tile * rows + row, part.length_q - 1)
        gradient, out = [load_vector(one[query, None], lane * WIDTH) for one in (gradients, outs)]
        total = fx.warp.reduce((gradient * out).reduce("add"), width=lanes)
        store_vector(sums, row * problem.d + lane * WIDTH, zeros)
        if lane == 0:
            lse, d_lse = [one[part.batch, head, part.first_q + query] for one in (Lse, dLse)]
            exists = part.tile * rows + row < part.length_q
            log = lse * LOG2_E
            hidden = (log == float("-inf")) | (not exists)
            Logs[head, tile * rows + row] = fx.where(hidden, float("inf"), log)
            Deltas[head, tile * rows + row] = fx.where(exists, total - d_lse, 0.0)


def sums_of(Sums, head, tile):
    """The sums of dQ of a tile of queries: a vector."""
    size, count = Sums.shape[2], Sums.shape[1]
    start = (fx.Int64(head) * count + tile) * size
    return fx.make_view(fx.get_iter(Sums) + start, fx.make_layout(size, 1))


def add(dq, sums, consumer):
    """Adds a group's part of a tile of dQ to the sums."""
    thread, size = fx.thread_idx.x % THREADS, int(fx.size(dq))
    for i in fx.range_constexpr(size):
        fx.atomic_add(sums, (consumer * size + i) * THREADS + thread, dq[i])


@fly.kernel
def finish_kernel(
    to_q,
    Q: fx.Tensor,
    K: fx.Tensor,
    dQ: fx.Tensor,
    Sums: fx.Tensor,
    starts_q: fx.Tensor,
    starts_k: fx.Tensor,
    scale: fx.Float32,
    element: fx.Constexpr[str],
    problem: fx.Constexpr[Problem],
):
    """Stores the sums of dQ of a tile of queries."""
    dependent.wait_for_previous()
    rows, form, dtype = QUERIES[problem.d], forms.backward(element, problem.d), EVERY[element]
    part = problem.part(rows, Q, K, starts_q, starts_k)
    if not part.exists:
        return
    width = columns(problem.d)
    buffers = fx.nvvm.SharedTiles(dtype, result_layout(dtype, width), GROUPS)
    consumer, thread, head = fx.thread_idx.x // THREADS, fx.thread_idx.x % THREADS, fx.block_idx.y
    sums = fx.make_rmem_tensor(fx.nvvm.accumulators(form.queries), fx.Float32)
    total, size = sums_of(Sums, head, part.tiles_before(rows) + part.tile), int(fx.size(sums))
    for i in fx.range_constexpr(size):
        sums[i] = total[(consumer * size + i) * THREADS + thread] * scale
    row, column = (consumer * ROWS, 0) if rows > ROWS else (0, consumer * width)
    row += part.tile * rows
    rest = (dQ, part.length_q - row) if problem.packed else None
    at = part.batch, head, part.first_q + row, column
    store(sums, buffers, consumer, to_q, at, dtype, rest)
    if thread == 0:
        fx.nvvm.tma_wait(0)
