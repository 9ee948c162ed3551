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
from fly.kernels.gemm.warpgroups.warpgroup_gemm import FEW, MANY
from fly.kernels.gemm.warpgroups.warpgroup_launches import multiplied
from fly.kernels.gemm.warpgroups.warpgroup_output import Output, chunks, products
from fly.kernels.gemm.warpgroups.warpgroup_plans import GROUPS, ROWS, THREADS, WarpgroupPlan
from fly.kernels.gemm.warpgroups.warpgroup_schedule import Schedule


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
    ring = fx.pipeline(
        plan.stages,
        consumers=GROUPS * THREADS,
        a=(element, (plan.rows, plan.depth)),
        b=(element, (plan.columns, plan.depth)),
    )
    buffers = fx.nvvm.SharedTiles(EVERY[plan.out], chunks(plan), 2 * GROUPS)
    schedule = Schedule((batches, m, n, k), plan)

    with ring.producer_warps(registers=FEW):
        for tile in range(*schedule.turns):
            place, _ = schedule.place(tile, ())
            for step in range(place.first, place.last):
                slot = ring.acquire()
                first = step * plan.depth
                slot.copy(
                    a=(A, place.of_a, place.row, first), b=(B, place.of_b, place.column, first)
                )
                ring.commit()
    with ring.consumer_warps(registers=MANY) as own:
        product = products(plan, plan.width, GROUPS // plan.beside, plan.beside)
        mine = product.get_slice(own.index * THREADS)
        form = fx.nvvm.accumulators(product)
        sums, made = [fx.make_rmem_tensor(form, fx.Float32) for _ in range(2)]
        scales = Scales(scale_a, scale_b, plan)
        # Of wgmma's sums, a thread has columns of two rows.
        thread = own.thread % THREADS
        line = thread // 32 * 16 + thread % 32 // 4
        if fx.const_expr(plan.beside == 1):
            line += own.index * ROWS
        for tile in range(*schedule.turns):
            place, _ = schedule.place(tile, ())
            column = place.column
            if fx.const_expr(plan.beside > 1):
                column += own.index * plan.width
            scales.place(place.of_a, place.row + line, column, place.first)
            sums.fill(0)
            for step in range(place.first, place.last):
                slot = ring.wait()
                made.fill(0)
                fx.nvvm.wgmma_fence()
                fx.gemm(product, made, mine.partition_A(slot.a), mine.partition_B(slot.b), made)
                fx.nvvm.wgmma_commit()
                factors = scales.take(fx.min(step + 1, place.last - 1))
                fx.nvvm.wgmma_wait(0, made)
                ring.release(slot)
                for i in fx.range_constexpr(int(fx.size(form))):
                    # Registers i: two columns of a row, two of the other, and so on.
                    factor = factors[i // 4 * 8 // scales.group][i // 2 % 2]
                    sums[i] = fx.fma(made[i], factor, sums[i])
            factors = fx.Float64(1.0), fx.Float64(1.0)
            output = Output(C, rows, bias, bias, factors, (place.end, n), plan, epilogue)
            output.store(sums, buffers, own.index, place)
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
