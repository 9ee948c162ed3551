"""How host functions launch products of warp groups: what TMA copies, and what becomes of sums."""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly.expr as fx
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.warpgroups.warpgroup_operands import add_parts, operand
from fly.kernels.gemm.warpgroups.warpgroup_output import chunks
from fly.kernels.gemm.warpgroups.warpgroup_plans import GROUPS, ROW, THREADS

BLOCK = (1 + GROUPS) * THREADS  # the threads of a block: a warp group copies


def tiles(plan, rows, along_k):
    """The layout of a tile of A or B in shared memory."""
    return fx.nvvm.tile_layout(EVERY[plan.element], (rows, plan.depth), int(along_k), ROW)


def maps(A, B, plan):
    """The tensor maps of operands, which are copied first if TMA could not copy their tiles."""
    return [
        fx.nvvm.tensor_map(
            operand(X, across, along_k, pad),
            tiles(plan, rows, along_k),
            tf32=plan.element == "f32",  # rounded by TMA: wgmma truncates
        )
        for X, across, rows, along_k, pad in (
            (A, 1, plan.rows, plan.a_along_k, plan.pad_a),
            (B, 2, plan.columns // plan.cluster, plan.b_along_k, plan.pad_b),
        )
    ]


def results(plan, batches, m, n):
    """Allocates C, or the parts of its sums; what a kernel stores its tiles to, and C itself."""
    C = fx.empty((batches * plan.splits, m, n), EVERY[plan.out])
    return (fx.nvvm.tensor_map(C, chunks(plan)) if plan.tma_store else C), C


def multiplied(kernel, A, B, given, added, plan, epilogue, more=()):
    """epilogue(A·B) by a kernel, whose arguments `given` follow C; `added` are what the epilogue
    takes, where parts of sums are added by another kernel."""
    batches, m, k, n = A.shape[0], A.shape[1], A.shape[2], B.shape[2]
    whole = plan.splits == 1
    target, C = results(plan, batches, m, n)
    down, across = fx.ceildiv(m, plan.rows * plan.cluster), fx.ceildiv(n, plan.columns)
    count = batches * plan.splits * down * across * plan.cluster
    own = epilogue if whole else Epilogue(plan.out, 1)
    kernel(*maps(A, B, plan), target, C, *given, batches, m, n, k, plan, own, *more).launch(
        grid=plan.blocks if plan.stream else fx.min(count, plan.blocks),
        block=BLOCK,
        cluster=plan.cluster,
    )
    return C if whole else add_parts(C, (batches, m, n), *added, plan, epilogue)
