"""Products of groups of rows, each with a matrix of its own: the layers of a mixture of experts.

How long the groups are is known on the device only. The grid has room for the greatest number of
tiles that groups can have; each block finds its group by the offsets, and surplus blocks end.
"""

from __future__ import annotations

import math
from typing import Any

from fly_common.errors import UsageError
from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels.arrays import check_types
from fly.kernels.gemm.batched_gemm import Left
from fly.kernels.gemm.epilogue import Epilogue, Output, Rows
from fly.kernels.gemm.group_sums import Offsets, group_products
from fly.kernels.gemm.operands import (
    as_operand,
    before,
    check_activation,
    check_operands,
    result_type,
    wide,
)
from fly.kernels.gemm.plans import WIDEST, Plan, plan
from fly.kernels.gemm.tiled_products import tiled_product
from fly.kernels.gemm.tiles import Part, Tiles
from fly.kernels.gemm.warpgroups.warpgroup_choices import grouped_plan, multiplies, readable
from fly.kernels.gemm.warpgroups.warpgroup_gemm import grouped_warpgroup_gemm
from fly.kernels.operators import operator, wanted

Weights = fx.Tensor[fx.Numeric, "G", fx.sym_int32("K"), fx.sym_int32("N")]


@fly.kernel
def grouped_gemm_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    offsets: fx.Tensor,
    C: fx.Tensor,
    product: fx.TiledMma,
    plan: fx.Constexpr[Plan],
    epilogue: fx.Constexpr[Epilogue],
):
    n, k = B.shape[2], A.shape[2]
    tile, column = fx.block_idx.x, fx.block_idx.y * plan.columns
    # The tile's group: how many end before it. Their rows end at `start`, their tiles at `first`.
    group, start, first, before, count = (fx.Int32(0) for _ in range(5))
    for i in range(fx.Int32(offsets.shape[0])):
        last = offsets[i]
        count += fx.Int32(fx.ceildiv(fx.Uint32(last - before), plan.rows))
        if count <= tile:
            group, start, first = i + 1, last, count
        before = last
    if group < offsets.shape[0]:
        row, end = start + (tile - first) * plan.rows, offsets[group]
        tiles = Tiles(
            plan,
            product,
            Part.of_a(A, plan.a, 0, (row, end), (0, k)),
            Part.of_b(B, plan.b, group, (column, n), (0, k)),
        )
        c = tiles.sum(0, fx.max(fx.ceildiv(k, plan.unit.depth), 1))
        output = Output(epilogue, product, (plan.rows, plan.columns), (end - row, n - column))
        output.store(c, Rows.of(C, 0, row, column), None, None, None, None)


@fly.jit
def grouped_gemm(
    A: Left,
    B: Weights,
    offsets: Offsets,
    plan: fx.Constexpr[Plan],
    epilogue: fx.Constexpr[Epilogue],
):
    m, n = A.shape[1], B.shape[2]
    C = fx.empty((1, m, n), EVERY[epilogue.out])
    # Each group has at most one tile that is not full.
    grid = (m // plan.rows + B.shape[0], fx.ceildiv(n, plan.columns))
    grouped_gemm_kernel(A, B, offsets, C, tiled_product(plan.unit), plan, epilogue).launch(
        grid=grid, block=plan.unit.threads
    )
    return C


def _fake(a: Any, b: Any, offsets: Any, *, activation: Any = None, out_dtype: Any = None) -> Any:
    import torch

    dtype = getattr(torch, result_type(a, out_dtype).long_name)
    return a.new_empty((a.shape[0], b.shape[2]), dtype=dtype)


@operator(
    "(Tensor a, Tensor b, Tensor offsets, *, str? activation=None, ScalarType? out_dtype=None)"
    " -> Tensor",
    fake=_fake,
)
def grouped_matmul(
    a: Any, b: Any, offsets: Any, *, activation: str | None = None, out_dtype: Any = None
) -> Any:
    """activation(a_g · b_g) of each group g of rows of a, one below the other.

    a: M × K. b: G × K × N, of the same type; types, orders in memory, activation and out_dtype are
    as of `matmul`. offsets: G of i32, the end of each group's rows, ascending; the last is M, or
    the rows behind it are undefined. Returns M × N. A group may be empty. UsageError as of
    `matmul`.
    """
    if a.ndim != 2 or b.ndim != 3 or tuple(offsets.shape) != tuple(b.shape[:1]):
        shapes = ", ".join(str(tuple(x.shape)) for x in (a, b, offsets))
        raise UsageError(f"a, b and offsets are M × K, G × K × N and G long, not {shapes}")
    check_types(("int32",), offsets=offsets)
    check_operands(a, b)
    check_activation(activation)
    epilogue = Epilogue(
        result_type(a, out_dtype).name, math.gcd(WIDEST, b.shape[2]), activation=activation or ""
    )
    a, b = as_operand(a[None]), as_operand(b)
    if len(offsets) and multiplies(a, b, epilogue, tf32=False):
        a, b = readable(a, 2), readable(b, 1)
        return grouped_warpgroup_gemm(a, b, offsets, grouped_plan(a, b, epilogue), epilogue)[0]
    return grouped_gemm(
        a, b, offsets, plan(a, b, 1, groups=max(1, b.shape[0])).ragged(along_k=False), epilogue
    )[0]


def _save(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)
    ctx.activation = keyword_only_inputs["activation"]


@grouped_matmul.gradient(_save)
def _(ctx: Any, gradient: Any) -> Any:
    a, b, offsets = ctx.saved_tensors
    if ctx.activation is not None:
        sums = grouped_matmul(a, b, offsets, out_dtype=wide(a))
        gradient = before(ctx.activation, gradient, sums)
    gradient = gradient.to(a.dtype)
    for_a, for_b = wanted(ctx, 2)
    of_a = grouped_matmul(gradient, b.mT, offsets) if for_a else None
    return of_a, group_products(a, gradient, offsets) if for_b else None, None
