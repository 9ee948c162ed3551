"""Parts of the tiles of groups of rows: sums of some steps along K, and how they are added.

The sums of a part are kept in the order of the registers that had them, so that the threads of a
warp access adjacent memory. In their order they are added: results are the same in each run.
"""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.warpgroups.warpgroup_output import Output, chunks, products
from fly.kernels.gemm.warpgroups.warpgroup_plans import GROUPS, THREADS, WarpgroupPlan
from fly.kernels.gemm.warpgroups.warpgroup_schedule import Groups

VECTOR = 4  # numbers that a thread accesses at a time


def room(plan):
    """The numbers of all parts: of two tiles of each block."""
    return 2 * plan.blocks * plan.rows * plan.columns


def put(sums, parts, slot, consumer):
    """Stores what a thread has of a part."""
    count = fx.size(sums)
    to = _place(parts, slot, consumer, count)
    for i in fx.range_constexpr(0, count, VECTOR):
        fx.copy(wide(), _some(fx.get_iter(sums), i), _some(to, i * THREADS))


def _place(parts, slot, consumer, count):
    """Where a thread's first numbers are, of so many that it has."""
    first = fx.Int64(slot * GROUPS + consumer) * (count * THREADS)
    return fx.get_iter(parts) + (first + fx.thread_idx.x % THREADS * VECTOR)


def _some(start, first):
    return fx.make_view(start + first, fx.make_layout(VECTOR, 1))


def wide():
    """The copy of so many numbers."""
    return fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)


@fly.kernel
def finish_kernel(
    C,
    rows: fx.Tensor,
    offsets: fx.Tensor,
    parts: fx.Tensor,
    groups: fx.Int32,
    n: fx.Int32,
    k: fx.Int32,
    plan: fx.Constexpr[WarpgroupPlan],
    epilogue: fx.Constexpr[Epilogue],
):
    """Adds the parts of a tile that is left for the last turn, and stores a few of its columns."""
    left, piece = fx.block_idx.x, fx.block_idx.y
    few = plan._replace(columns=plan.chunk * plan.beside)  # that a block stores
    buffers = fx.nvvm.SharedTiles(EVERY[plan.out], chunks(plan), 2 * GROUPS)
    consumer, thread = divmod(fx.thread_idx.x, THREADS)
    schedule = Groups(offsets, (groups, 0, n, k), plan)
    if schedule.is_divided & (left < schedule.left):
        sums = fx.make_rmem_tensor(fx.nvvm.accumulators(products(few, few.width)), fx.Float32)
        count = fx.size(sums)
        sums.fill(0)
        first, last, slot = schedule.slots(left)
        for block in range(first, last + 1):
            held = fx.make_fragment_like(sums)
            start = _place(parts, slot(block), consumer, plan.held) + piece * (count * THREADS)
            for i in fx.range_constexpr(0, count, VECTOR):
                fx.copy(wide(), _some(start, i * THREADS), _some(fx.get_iter(held), i))
            sums.store(sums.load() + held.load())
        number = schedule.whole * plan.blocks + left
        place, _ = schedule.tile(number, schedule.start, 0, schedule.steps, -1)
        # Warp groups beside one another have adjacent columns of the whole tile.
        column = (
            place.column
            + piece * plan.chunk
            + consumer * (plan.width - plan.chunk) * (plan.beside - 1)
        )
        output = Output(C, rows, rows, rows, (1.0, 1.0), (place.end, n), few, epilogue)
        output.store(sums, buffers, consumer, place._replace(column=column))
        if plan.tma_store and thread == 0:
            fx.nvvm.tma_wait(0)
