"""Products of matrices of 8-bit floats with a scale for each block, on Hopper.

A step along K is 128 elements, and so is a block of operands that share a scale. wgmma adds the
products of a step in its own accumulators, which keep about 14 bits; the threads of the warp group
multiply these by the scales, and add them to sums in f32. The two warp groups take turns by
themselves: while the threads of one add, the products of the other one run. Registers hold both the
products of a step and the sums, so a tile has at most 192 columns.

Apart from this a block works as in `warpgroup_gemm`.
"""

from __future__ import annotations

import math

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.scaled.scaled_gemm import BLOCK
from fly.kernels.gemm.warpgroup_gemm import FEW, MANY, maps, tiles
from fly.kernels.gemm.warpgroup_operands import add_parts
from fly.kernels.gemm.warpgroup_output import Output, chunks, products
from fly.kernels.gemm.warpgroup_plans import GROUPS, ROWS, THREADS, WarpgroupPlan
from fly.kernels.gemm.warpgroup_schedule import Schedule


class Scales:
    """The scales of a thread's products: of its two rows of A, and of its columns of B, by groups
    of columns that share one. Those of a step are loaded while the step before is multiplied."""

    def __init__(self, of_a, of_b, plan):
        self.of_a, self.of_b = of_a, of_b
        self.group = math.gcd(BLOCK, plan.columns, plan.width)
        self.groups = plan.width // self.group
        self.ahead = fx.make_rmem_tensor(2 + self.groups, fx.Float32)

    def place(self, batch, row, column, step):
        """The tile: its matrix of A, the thread's first row and the tile's first column. Loads the
        scales of a step."""
        rows, columns = self.of_a.shape[1], self.of_b.shape[2]
        self.batch = batch
        self.rows = [fx.min(row + below, rows - 1) for below in (0, 8)]
        starts = [column + group * self.group for group in range(self.groups)]
        self.columns = [fx.min(start // BLOCK, columns - 1) for start in starts]
        self.load(step)

    def load(self, step):
        for i in fx.range_constexpr(2):
            self.ahead[i] = self.of_a[self.batch, self.rows[i], step]
        for group in fx.range_constexpr(self.groups):
            self.ahead[2 + group] = self.of_b[0, step, self.columns[group]]

    def take(self, next_step):
        """The factors of both rows, for each group, of the step that was loaded; loads the next."""
        scales = [self.ahead[i] for i in range(2 + self.groups)]
        self.load(next_step)
        return [[row * column for row in scales[:2]] for column in scales[2:]]


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
    count = fx.Int32(0)  # of the ring's buffers so far

    if group == 0:
        fx.nvvm.set_registers(FEW, more=False)
        if thread == 0:
            for tile in range(fx.block_idx.x, schedule.count, fx.grid_dim.x):
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
        scales = Scales(scale_a, scale_b, plan)
        # Of wgmma's sums, a thread has columns of two rows.
        line = thread // 32 * 16 + thread % 32 // 4
        if fx.const_expr(plan.beside == 1):
            line += consumer * ROWS
        for tile in range(fx.block_idx.x, schedule.count, fx.grid_dim.x):
            place, _ = schedule.place(tile, ())
            column = place.column
            if fx.const_expr(plan.beside > 1):
                column += consumer * plan.width
            scales.place(place.of_a, place.row + line, column, place.first)
            sums.fill(0)
            for step in range(place.first, place.last):
                slot = ring.wait(count)
                made.fill(0)
                fx.nvvm.wgmma_fence()
                a, b = tiles_a[slot.stage], tiles_b[slot.stage]
                fx.gemm(product, made, own.partition_A(a), own.partition_B(b), made)
                fx.nvvm.wgmma_commit()
                factors = scales.take(fx.min(step + 1, place.last - 1))
                fx.nvvm.wgmma_wait(0, made)
                if thread == 0:
                    ring.release(count)
                for i in fx.range_constexpr(int(fx.size(form))):
                    # Registers i: two columns of a row, two of the other, and so on.
                    factor = factors[i // 4 * 8 // scales.group][i // 2 % 2]
                    sums[i] = fx.fma(made[i], factor, sums[i])
                count += 1
            factors = fx.Float64(1.0), fx.Float64(1.0)
            output = Output(C, rows, bias, bias, factors, (place.end, n), plan, epilogue)
            output.store(sums, buffers, consumer, place)
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
    batches, m, k, n = A.shape[0], A.shape[1], A.shape[2], B.shape[2]
    whole = plan.splits == 1
    C = fx.empty((batches * plan.splits, m, n), EVERY[plan.out])
    target = fx.nvvm.tensor_map(C, chunks(plan)) if plan.tma_store else C
    count = batches * plan.splits * fx.ceildiv(m, plan.rows) * fx.ceildiv(n, plan.columns)
    own = epilogue if whole else Epilogue(plan.out, 1)
    scaled_warpgroup_gemm_kernel(
        *maps(A, B, plan), target, C, scale_a, scale_b, bias, batches, m, n, k, plan, own
    ).launch(grid=fx.min(count, plan.blocks), block=(1 + GROUPS) * THREADS)
    if whole:
        return C
    return add_parts(C, (batches, m, n), bias, bias, 1.0, 1.0, plan, epilogue)
