"""Products of matrices, with what is done to their elements.

A block has a tile of C. It goes through K in steps, each of which multiplies the tiles of A and B
that are in LDS and loads the next ones into registers. If C has few tiles, several blocks take
parts of K: their sums go to a workspace, and a second kernel adds them up, in order.
"""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels import dependent
from fly.kernels.gemm.epilogue import Epilogue, Output, Rows
from fly.kernels.gemm.plans import Plan
from fly.kernels.gemm.tiled_products import tiled_product
from fly.kernels.gemm.tiles import Part, Tiles, tile_end
from fly.kernels.shapes import for_model

# Batches of matrices. M, K and N are counted in 32 bits, which launches check.
Left = fx.Tensor[fx.Numeric, "B", fx.sym_int32("M"), fx.sym_int32("K")]
Right = fx.Tensor[fx.Numeric, "B", fx.sym_int32("K"), fx.sym_int32("N")]
SUMMED = 256  # elements of a row whose parts a block adds up


@fly.kernel
def gemm_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    bias: fx.Tensor,
    addend: fx.Tensor,
    alpha: fx.Float64,
    beta: fx.Float64,
    product: fx.TiledMma,
    plan: fx.Constexpr[Plan],
    epilogue: fx.Constexpr[Epilogue],
):
    m, n, k = A.shape[1], B.shape[2], A.shape[2]
    row, column = fx.block_idx.x * plan.rows, fx.block_idx.y * plan.columns
    if plan.splits > 1:
        dependent.let_next_begin()
    batch, part = divmod(fx.block_idx.z, plan.splits)
    if isinstance(A.shape[0], int) and A.shape[0] == 1:
        batch = 0
    end = tile_end(n, column, plan.columns)
    tiles = Tiles(
        plan,
        product,
        Part.of_a(A, plan.a, batch, (row, m), (0, k)),
        Part.of_b(B, plan.b, batch, (column, end), (0, k)),
    )
    steps = fx.max(fx.ceildiv(k, plan.unit.depth), 1)
    each = fx.ceildiv(steps, plan.splits)
    c = tiles.sum(part * each, fx.min((part + 1) * each, steps))
    output = Output(epilogue, product, (plan.rows, plan.columns), (m - row, end - column))
    output.store(
        c,
        Rows.of(C, fx.block_idx.z, row, column),
        fx.get_iter(bias) + column if epilogue.bias else None,
        Rows.of(addend, batch, row, column) if epilogue.addend else None,
        alpha,
        beta,
    )


@fly.kernel
def sum_parts_kernel(
    parts: fx.Tensor,
    C: fx.Tensor,
    bias: fx.Tensor,
    addend: fx.Tensor,
    alpha: fx.Float64,
    beta: fx.Float64,
    splits: fx.Constexpr[int],
    epilogue: fx.Constexpr[Epilogue],
):
    dependent.wait_for_previous()
    row, batch = fx.block_idx.x, fx.block_idx.z
    column = fx.block_idx.y * fx.block_dim.x + fx.thread_idx.x
    if column < C.shape[2]:
        total = parts[batch * splits, row, column]
        for part in fx.range_constexpr(1, splits):
            total += parts[batch * splits + part, row, column]
        C[batch, row, column] = epilogue.apply(
            total,
            bias[column] if epilogue.bias else None,
            addend[batch, row, column] if epilogue.addend else None,
            alpha,
            beta,
        )


@fly.jit(specialize=for_model("B", "K", "N"))
def gemm(
    A: Left,
    B: Right,
    bias: fx.Tensor,
    addend: fx.Tensor,
    alpha: fx.Float64,
    beta: fx.Float64,
    plan: fx.Constexpr[Plan],
    epilogue: fx.Constexpr[Epilogue],
):
    product = tiled_product(plan.unit)
    batches, m, n = A.shape[0], A.shape[1], B.shape[2]
    grid = (fx.ceildiv(m, plan.rows), fx.ceildiv(n, plan.columns), batches * plan.splits)
    C = fx.empty((batches, m, n), EVERY[epilogue.out])
    if plan.splits == 1:
        gemm_kernel(A, B, C, bias, addend, alpha, beta, product, plan, epilogue).launch(
            grid=grid, block=plan.unit.threads
        )
    else:
        parts = fx.empty((batches * plan.splits, m, n), EVERY[plan.unit.sum])
        plain = Epilogue(plan.unit.sum, epilogue.vector)
        gemm_kernel(A, B, parts, bias, addend, alpha, beta, product, plan, plain).launch(
            grid=grid, block=plan.unit.threads
        )
        sum_parts_kernel(parts, C, bias, addend, alpha, beta, plan.splits, epilogue).launch(
            grid=(m, fx.ceildiv(n, SUMMED), batches), block=SUMMED
        )
    return C
