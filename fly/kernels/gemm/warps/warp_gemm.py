"""Products of matrices by warps: `cp.async`, `ldmatrix` and `mma.sync` (sm_80 and later).

A block of eight warps has a tile of C, a warp an eighth of it in registers. Threads copy tiles of A
and B, 128 bytes of K each, to a ring of buffers in shared memory, several steps ahead. Warps load
matrices of the next 32 bytes of K while those before are multiplied. C is stored through shared
memory, 16 rows of a warp at a time, as whole vectors.
"""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.warpgroups.warpgroup_operands import add_parts, operand
from fly.kernels.gemm.warpgroups.warpgroup_schedule import banded
from fly.kernels.gemm.warps.warp_operands import Matrices, Operand
from fly.kernels.gemm.warps.warp_output import store, tiled_product
from fly.kernels.gemm.warps.warp_plans import THREADS, WarpPlan


@fly.kernel
def warp_gemm_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    bias: fx.Tensor,
    addend: fx.Tensor,
    alpha: fx.Float64,
    beta: fx.Float64,
    n: fx.Int32,
    plan: fx.Constexpr[WarpPlan],
    epilogue: fx.Constexpr[Epilogue],
):
    if plan.pad_a or plan.pad_b:
        dependent.wait_for_previous()
    if plan.splits > 1:
        dependent.let_next_begin()
    m, k = A.shape[1], A.shape[2]
    part, number = fx.block_idx.y, fx.block_idx.x
    down, across = fx.ceildiv(m, plan.rows), fx.ceildiv(n, plan.columns)
    row, column = banded(number, down, across, plan)
    batch, piece = divmod(part, plan.splits)
    a = Operand(A, batch, row, plan.rows, plan)
    b = Operand(B, batch, column, plan.columns, plan)
    steps = fx.ceildiv(k, plan.depth)
    each = fx.ceildiv(steps, plan.splits)
    first, last = piece * each, fx.min((piece + 1) * each, steps)
    product = tiled_product(plan)
    own_a = Matrices(a, product, True, plan.rows, plan)
    own_b = Matrices(b, product, False, plan.columns, plan)
    tile = fx.make_view((0, 0), fx.make_identity_layout((plan.rows, plan.columns)))
    sums = product.get_slice(fx.thread_idx.x).partition_C(tile)
    sums = fx.make_fragment_like(sums, EVERY[plan.sum])
    sums.fill(0)
    for ahead in fx.range_constexpr(plan.stages - 1):
        if first + ahead < last:
            a.copy(first + ahead, ahead)
            b.copy(first + ahead, ahead)
        fx.nvvm.cp_async_commit()
    fx.nvvm.cp_async_wait(plan.stages - 2)
    fx.barrier()
    stage = fx.Int32(0)
    parts = plan.depth // plan.k
    own_a.load(stage, 0)
    own_b.load(stage, 0)
    for step in range(first, last):
        ahead = step + plan.stages - 1
        free = fx.where(stage == 0, plan.stages - 1, stage - 1)  # multiplied in the step before
        for number in fx.range_constexpr(parts):
            if fx.const_expr(number == parts - 1):
                fx.nvvm.cp_async_wait(plan.stages - 2)
                fx.barrier()
                following = fx.where(stage == plan.stages - 1, 0, stage + 1)
                stage = fx.where(step + 1 < last, following, stage)
            own_a.load(stage, (number + 1) % parts)
            own_b.load(stage, (number + 1) % parts)
            if fx.const_expr(number == 0):
                if ahead < last:
                    a.copy(ahead, free)
                    b.copy(ahead, free)
                fx.nvvm.cp_async_commit()
            fx.gemm(product, sums, own_a.sets[number % 2], own_b.sets[number % 2], sums)
    fx.nvvm.cp_async_wait(0)
    fx.barrier()
    added, extents = (bias, addend, alpha, beta), (m, n)
    store(sums, C, b.base, (part, batch, row, column), extents, added, plan, epilogue)


@fly.jit
def warp_gemm(
    A: fx.Tensor[fx.Numeric, "B", fx.sym_int32("M"), fx.sym_int32("K")],
    B: fx.Tensor[fx.Numeric, "B", fx.sym_int32("K"), fx.sym_int32("N")],
    bias: fx.Tensor,
    addend: fx.Tensor,
    alpha: fx.Float64,
    beta: fx.Float64,
    plan: fx.Constexpr[WarpPlan],
    epilogue: fx.Constexpr[Epilogue],
):
    """epilogue(A·B) for batches of matrices; as `batched_gemm.gemm`."""
    batches, m, n = A.shape[0], A.shape[1], B.shape[2]
    C = fx.empty((batches * plan.splits, m, n), EVERY[plan.out])
    own = epilogue if plan.splits == 1 else Epilogue(plan.out, 1)
    count = fx.ceildiv(m, plan.rows) * fx.ceildiv(n, plan.columns)
    given = operand(A, 1, True, plan.pad_a), operand(B, 2, True, plan.pad_b)
    warp_gemm_kernel(*given, C, bias, addend, alpha, beta, n, plan, own).launch(
        grid=(count, batches * plan.splits), block=THREADS
    )
    if plan.splits == 1:
        return C
    return add_parts(C, (batches, m, n), bias, addend, alpha, beta, plan, epilogue)
