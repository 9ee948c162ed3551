"""Products of matrices of 8-bit floats with a scale for each block, on Hopper.

A step along K is 128 elements, and so is a block of operands that share a scale. wgmma adds the
products of a step in its own accumulators, which keep about 14 bits; the threads of the warp group
multiply these by the scales, and add them to sums in f32. The two warp groups take turns by
themselves: while the threads of one add, the products of the other one run. Registers hold both the
products of a step and the sums, so a tile has at most 192 columns. Scales are copied to shared
memory some steps ahead.

Apart from this a block works as in `warpgroup_gemm`.
"""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.scaled.warp_scales import WarpScales
from fly.kernels.gemm.warpgroups.warpgroup_gemm import FEW, MANY
from fly.kernels.gemm.warpgroups.warpgroup_launches import multiplied, tiles
from fly.kernels.gemm.warpgroups.warpgroup_output import Output, chunks, products
from fly.kernels.gemm.warpgroups.warpgroup_plans import GROUPS, THREADS, WarpgroupPlan
from fly.kernels.gemm.warpgroups.warpgroup_schedule import Schedule


@fly.kernel
def scaled_warpgroup_gemm_kernel(
    A,
    B,
    C,
    rows: fx.Tensor,
    scale_a: fx.Tensor,
    scale_b: fx.Tensor,
    bias: fx.Tensor,
    batches: fx.Int32,
    m: fx.Int32,
    n: fx.Int32,
    k: fx.Int32,
    plan: fx.Constexpr[WarpgroupPlan],
    epilogue: fx.Constexpr[Epilogue],
):
    if plan.follows:
        dependent.wait_for_previous()
    if plan.precedes:
        dependent.let_next_begin()
    element = EVERY[plan.element]
    tiles_a = fx.nvvm.SharedTiles(element, tiles(plan, plan.rows, True), plan.stages)
    tiles_b = fx.nvvm.SharedTiles(element, tiles(plan, plan.columns, True), plan.stages)
    buffers = fx.nvvm.SharedTiles(EVERY[plan.out], chunks(plan), 2 * GROUPS)
    ring = fx.nvvm.Pipeline(plan.stages, consumers=GROUPS)
    group, thread = fx.nvvm.warp_group_index(), fx.thread_idx.x % THREADS
    schedule = Schedule((batches, m, n, k), plan)
    number, end, stride = schedule.turns
    count = fx.Int32(0)  # of the ring's buffers so far

    if group == 0:
        fx.nvvm.set_registers(FEW, more=False)
        if thread == 0:
            for tile in range(number, end, stride):
                place, _ = schedule.place(tile, ())
                for step in range(place.first, place.last):
                    slot = ring.fill(count, A.nbytes + B.nbytes)
                    of_a = place.of_a, place.row, step * plan.depth
                    of_b = place.of_b, place.column, step * plan.depth
                    fx.nvvm.tma_load(A, of_a, tiles_a[slot.stage], slot.barrier)
                    fx.nvvm.tma_load(B, of_b, tiles_b[slot.stage], slot.barrier)
                    count += 1
    else:
        fx.nvvm.set_registers(MANY, more=True)
        consumer = group - 1
        product = products(plan, plan.width, GROUPS // plan.beside, plan.beside)
        own = product.get_slice(consumer * THREADS)
        form = fx.nvvm.accumulators(product)
        sums, made = [fx.make_rmem_tensor(form, fx.Float32) for _ in range(2)]
        scales = WarpScales(scale_a, scale_b, consumer, plan)
        place, _ = schedule.place(number, ())
        at = scales.tile(place)
        scales.begin(at, place, count)
        for tile in range(number, end, stride):
            place, _ = schedule.place(tile, ())
            sums.fill(0)
            for step in range(place.first, place.last):
                slot = ring.wait(count)
                made.fill(0)
                fx.nvvm.wgmma_fence()
                a, b = tiles_a[slot.stage], tiles_b[slot.stage]
                fx.gemm(product, made, own.partition_A(a), own.partition_B(b), made)
                fx.nvvm.wgmma_commit()
                factors = scales.take(at, step, place, count)
                fx.nvvm.wgmma_wait(0, made)
                if thread == 0:
                    ring.release(count)
                for i in fx.range_constexpr(int(fx.size(form))):
                    # Registers i: two columns of a row, two of the other, and so on.
                    factor = factors[i // 4 * 8 // scales.group][i // 2 % 2]
                    sums[i] = fx.fma(made[i], factor, sums[i])
                count += 1
            # The next tile's first scales arrive while this one is stored.
            following, _ = schedule.place(fx.where(tile + stride < end, tile + stride, tile), ())
            at = scales.tile(following)
            scales.begin(at, following, count)
            ones = fx.Float64(1.0), fx.Float64(1.0)
            output = Output(C, rows, bias, bias, ones, (place.end, n), plan, epilogue)
            output.store(sums, buffers, consumer, place)
        scales.end()
        if plan.tma_store and thread == 0:
            fx.nvvm.tma_wait(0)


@fly.jit
def scaled_warpgroup_gemm(
    A: fx.Tensor[fx.Numeric, "B", fx.sym_int32("M"), fx.sym_int32("K")],
    B: fx.Tensor[fx.Numeric, 1, fx.sym_int32("K"), fx.sym_int32("N")],
    scale_a: fx.Tensor[fx.Float32, "B", fx.sym_int32("M"), "KB"],
    scale_b: fx.Tensor[fx.Float32, 1, "KB", "NB"],
    bias: fx.Tensor,
    plan: fx.Constexpr[WarpgroupPlan],
    epilogue: fx.Constexpr[Epilogue],
):
    """epilogue(A·B), where blocks of both have scales."""
    kernel, given = scaled_warpgroup_gemm_kernel, (scale_a, scale_b, bias)
    return multiplied(kernel, A, B, given, (bias, bias, 1.0, 1.0), plan, epilogue)
