"""Products of matrices on Hopper: TMA, wgmma, warp specialisation, a persistent grid.

A block has three warp groups. One thread of the first one copies tiles of A and B to a ring of
buffers in shared memory. The other two multiply: each has rows of a tile of C, in registers, or
where C has few rows, columns of it. The tiles of C are dealt out to as many blocks as the device
runs at once, in columns of a few rows, so that blocks that run together share rows of A and columns
of B in the L2 cache.
"""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.warpgroups.warpgroup_launches import BLOCK, maps, multiplied, results, tiles
from fly.kernels.gemm.warpgroups.warpgroup_output import Output, chunks, products
from fly.kernels.gemm.warpgroups.warpgroup_parts import finish_kernel, put, room
from fly.kernels.gemm.warpgroups.warpgroup_plans import GROUPS, THREADS, WarpgroupPlan
from fly.kernels.gemm.warpgroups.warpgroup_stream import Exchange, rooms, schedule_of

FEW, MANY = 40, 232  # registers of a thread that copies, and of one that multiplies


@fly.kernel
def warpgroup_gemm_kernel(
    A,
    B,
    C,
    rows: fx.Tensor,
    bias: fx.Tensor,
    addend: fx.Tensor,
    alpha: fx.Float64,
    beta: fx.Float64,
    batches: fx.Int32,
    m: fx.Int32,
    n: fx.Int32,
    k: fx.Int32,
    plan: fx.Constexpr[WarpgroupPlan],
    epilogue: fx.Constexpr[Epilogue],
    offsets=None,
    parts=None,
    flags=None,
):
    if plan.follows:
        dependent.wait_for_previous()
    if plan.precedes:
        dependent.let_next_begin()
    element = EVERY[plan.element]
    tiles_a = fx.nvvm.SharedTiles(element, tiles(plan, plan.rows, plan.a_along_k), plan.stages)
    tiles_b = fx.nvvm.SharedTiles(element, tiles(plan, plan.columns, plan.b_along_k), plan.stages)
    buffers = fx.nvvm.SharedTiles(EVERY[plan.out], chunks(plan), 2 * GROUPS)
    parts_b = tiles_b.divided(tiles(plan, plan.columns // plan.cluster, plan.b_along_k))
    ring = fx.nvvm.Pipeline(plan.stages, consumers=GROUPS, shared=plan.cluster > 1)
    group, thread = fx.nvvm.warp_group_index(), fx.thread_idx.x % THREADS
    extents = batches, m, n, k
    schedule = schedule_of(extents, plan, offsets)
    state = schedule.start
    part, every = fx.cluster.rank(), None if plan.cluster == 1 else (1 << plan.cluster) - 1
    count = fx.Int32(0)  # of the ring's buffers so far

    if group == 0:
        fx.nvvm.set_registers(FEW, more=False)
        if thread == 0:
            for tile in range(*schedule.turns):
                place, state = schedule.place(tile, state)
                column = place.column + part * (plan.columns // plan.cluster)
                for step in range(place.first, place.last):
                    slot = ring.fill(count, A.nbytes + plan.cluster * B.nbytes)
                    of_a = place.of_a, place.row, step * plan.depth
                    of_b = place.of_b, column, step * plan.depth
                    own = parts_b[slot.stage * plan.cluster + part]
                    fx.nvvm.tma_load(A, of_a, tiles_a[slot.stage], slot.barrier)
                    fx.nvvm.tma_load(B, of_b, own, slot.barrier, multicast=every)
                    count += 1
    else:
        fx.nvvm.set_registers(MANY, more=True)
        consumer = group - 1
        product = products(plan, plan.width, GROUPS // plan.beside, plan.beside)
        # What is in shared memory is the same for all threads of a group.
        own = product.get_slice(consumer * THREADS)
        sums = fx.make_rmem_tensor(fx.nvvm.accumulators(product), fx.Float32)
        for tile in range(*schedule.turns):
            place, state = schedule.place(tile, state)
            sums.fill(0)
            for step in range(place.first, place.last):
                slot = ring.wait(count)
                a, b = tiles_a[slot.stage], tiles_b[slot.stage]
                fx.nvvm.wgmma_fence()
                fx.gemm(product, sums, own.partition_A(a), own.partition_B(b), sums)
                fx.nvvm.wgmma_commit()
                fx.nvvm.wgmma_wait(1, sums)  # the step before this one has been multiplied
                if thread == 0 and step > place.first:
                    ring.release(count - 1)
                count += 1
            fx.nvvm.wgmma_wait(0, sums)
            # With few steps, some parts of divided sums have none.
            if thread == 0 and place.first < place.last:
                ring.release(count - 1)
            output = Output(C, rows, bias, addend, (alpha, beta), (place.end, n), plan, epilogue)
            if plan.stream:
                exchange = Exchange(parts, flags, consumer, plan)
                exchange.finish(sums, place, schedule.steps, output, buffers)
            elif parts is None or place.slot < 0:
                output.store(sums, buffers, consumer, place)
            else:
                put(sums, parts, place.slot, consumer)
        if plan.tma_store and thread == 0:
            fx.nvvm.tma_wait(0)
    if plan.cluster > 1:
        fx.cluster.barrier()  # no block ends while others copy to it, or release its buffers


@fly.jit
def warpgroup_gemm(
    A: fx.Tensor[fx.Numeric, "B", fx.sym_int32("M"), fx.sym_int32("K")],
    B: fx.Tensor[fx.Numeric, "B", fx.sym_int32("K"), fx.sym_int32("N")],
    bias: fx.Tensor,
    addend: fx.Tensor,
    alpha: fx.Float64,
    beta: fx.Float64,
    plan: fx.Constexpr[WarpgroupPlan],
    epilogue: fx.Constexpr[Epilogue],
):
    """epilogue(A·B) for batches of matrices; as `batched_gemm.gemm`."""
    added = bias, addend, alpha, beta
    more = None, *(rooms(plan) if plan.stream else ())
    return multiplied(warpgroup_gemm_kernel, A, B, added, added, plan, epilogue, more)


@fly.jit
def grouped_warpgroup_gemm(
    A: fx.Tensor[fx.Numeric, 1, fx.sym_int32("M"), fx.sym_int32("K")],
    B: fx.Tensor[fx.Numeric, "G", fx.sym_int32("K"), fx.sym_int32("N")],
    offsets: fx.Tensor[fx.Int32, "G"],
    plan: fx.Constexpr[WarpgroupPlan],
    epilogue: fx.Constexpr[Epilogue],
):
    """epilogue(A·B) of groups of rows; as `grouped_gemm.grouped_gemm`."""
    m, k, groups, n = A.shape[1], A.shape[2], B.shape[0], B.shape[2]
    target, C = results(plan, 1, m, n)
    parts = fx.empty(room(plan), fx.Float32) if plan.least else None
    ends = offsets, parts
    warpgroup_gemm_kernel(
        *maps(A, B, plan), target, C, A, A, 1.0, 1.0, groups, m, n, k, plan, epilogue, *ends
    ).launch(grid=plan.blocks, block=BLOCK)
    if plan.least:
        finish_kernel(target, C, *ends, groups, n, k, plan, epilogue).launch(
            grid=(plan.blocks, plan.pieces), block=GROUPS * THREADS
        )
    return C
