"""Products that are summed over groups of rows: the gradients of grouped products' matrices."""

from __future__ import annotations

import math
from typing import Any

from fly_common.errors import UsageError
from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels.arrays import check_types
from fly.kernels.gemm.batched_gemm import Left, Right
from fly.kernels.gemm.epilogue import Epilogue, Output, Rows
from fly.kernels.gemm.operands import as_operand, result_type
from fly.kernels.gemm.plans import WIDEST, Plan, plan
from fly.kernels.gemm.tiled_products import tiled_product
from fly.kernels.gemm.tiles import Part, Tiles
from fly.kernels.operators import operator

Offsets = fx.Tensor[fx.Int32, "G"]


@fly.kernel
def group_sums_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    offsets: fx.Tensor,
    C: fx.Tensor,
    product: fx.TiledMma,
    plan: fx.Constexpr[Plan],
    epilogue: fx.Constexpr[Epilogue],
):
    m, n = A.shape[1], B.shape[2]
    row, column = fx.block_idx.x * plan.rows, fx.block_idx.y * plan.columns
    group, first = fx.block_idx.z, 0
    if group > 0:
        first = offsets[group - 1]
    last = offsets[group]
    tiles = Tiles(
        plan,
        product,
        Part.of_a(A, plan.a, 0, (row, m), (first, last)),
        Part.of_b(B, plan.b, 0, (column, n), (first, last)),
    )
    c = tiles.sum(0, fx.max(fx.ceildiv(last - first, plan.unit.depth), 1))
    output = Output(epilogue, product, (plan.rows, plan.columns), (m - row, n - column))
    output.store(c, Rows.of(C, group, row, column), None, None, None, None)


@fly.jit
def group_sums(
    A: Left,
    B: Right,
    offsets: Offsets,
    plan: fx.Constexpr[Plan],
    epilogue: fx.Constexpr[Epilogue],
):
    m, n, groups = A.shape[1], B.shape[2], offsets.shape[0]
    C = fx.empty((groups, m, n), EVERY[epilogue.out])
    grid = (fx.ceildiv(m, plan.rows), fx.ceildiv(n, plan.columns), groups)
    group_sums_kernel(A, B, offsets, C, tiled_product(plan.unit), plan, epilogue).launch(
        grid=grid, block=plan.unit.threads
    )
    return C


def _fake_sums(a: Any, b: Any, offsets: Any) -> Any:
    return a.new_empty((offsets.shape[0], a.shape[1], b.shape[1]))


@operator("(Tensor a, Tensor b, Tensor offsets) -> Tensor", fake=_fake_sums)
def group_products(a: Any, b: Any, offsets: Any) -> Any:
    """The transpose of each group of rows of a, times the same rows of b: the gradient of the
    matrices of `grouped_matmul`.

    a: M × K. b: M × N, of the same type. offsets: as of `grouped_matmul`. Returns G × K × N.
    """
    if a.ndim != 2 or b.ndim != 2 or len(a) != len(b) or a.dtype != b.dtype:
        shapes = ", ".join(f"{x.dtype} {tuple(x.shape)}" for x in (a, b))
        raise UsageError(f"a and b are M × K and M × N of one type, not {shapes}")
    check_types(("int32",), offsets=offsets)
    a, b = as_operand(a.T[None]), as_operand(b[None])
    out = result_type(a, None).name
    return group_sums(
        a,
        b,
        offsets,
        plan(a, b, 1).ragged(along_k=True),
        Epilogue(out, math.gcd(WIDEST, b.shape[2])),
    )
