"""Products of matrices of 8-bit floats with a scale for each block, by tiles in LDS.

As `batched_gemm`, but the products of each step along K are scaled before they are added.
"""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels.gemm.batched_gemm import Left, Right
from fly.kernels.gemm.epilogue import Epilogue, Output, Rows
from fly.kernels.gemm.plans import Plan
from fly.kernels.gemm.tiled_products import products_first, tiled_product
from fly.kernels.gemm.tiles import Part, Tiles

BLOCK = 128  # elements of K, and columns of B, that share a scale


class Scaled:
    """The sums of a thread, of products that are scaled. The scale of a row of A, or of a block of
    columns of B, is that of a step along K, of which a block of K has several."""

    def __init__(self, tiles, of_a, of_b, batch, row, column):
        self.tiles, self.of_a, self.of_b, self.batch = tiles, of_a, of_b, batch
        plan, product = tiles.plan, tiles.product
        places = fx.make_view((0, 0), fx.make_identity_layout((plan.columns, plan.rows)))
        places = product.get_slice(fx.thread_idx.x).partition_C(places)
        self.made = fx.make_fragment_like(places, EVERY[plan.unit.sum])
        self.sums = fx.make_fragment_like(places, fx.Float32)
        self.rows, self.blocks = [fx.make_fragment_like(places, fx.Int32) for _ in range(2)]
        last_row, last_block = of_a.shape[1] - 1, of_b.shape[2] - 1
        for i in fx.range_constexpr(fx.size(places)):
            x, y = places[i].unpack()
            self.rows[i] = fx.Int32(fx.min(row + y, last_row))
            self.blocks[i] = fx.Int32(fx.min((column + x) // BLOCK, last_block))
        self.sums.fill(0)

    def add(self, stage, step):
        """Adds the products of the tiles of a step, which are in a stage."""
        self.made.fill(0)
        self.tiles.multiply(stage, self.made)
        block = step * self.tiles.plan.unit.depth // BLOCK
        for i in fx.range_constexpr(fx.size(self.made)):
            of_a = self.of_a[self.batch, self.rows[i], block]
            factor = of_a * self.of_b[0, block, self.blocks[i]]
            self.sums[i] = fx.fma(self.made[i], factor, self.sums[i])

    def sum(self, count):
        """Returns the sums of `count` steps, of which there is one at least."""
        tiles = self.tiles
        tiles.load(0)
        tiles.store(0)
        fx.barrier()
        stage = 0
        for step in range(1, count):
            tiles.load(step)
            self.add(stage, step - 1)
            products_first(tiles.plan.unit)
            stage = 1 - stage
            tiles.store(stage)
            fx.barrier()
        self.add(stage, count - 1)
        return self.sums


@fly.kernel
def scaled_gemm_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    C: fx.Tensor,
    scale_a: fx.Tensor,
    scale_b: fx.Tensor,
    bias: fx.Tensor,
    product: fx.TiledMma,
    plan: fx.Constexpr[Plan],
    epilogue: fx.Constexpr[Epilogue],
):
    m, n, k = A.shape[1], B.shape[2], A.shape[2]
    row, column = fx.block_idx.x * plan.rows, fx.block_idx.y * plan.columns
    batch = fx.block_idx.z
    tiles = Tiles(
        plan,
        product,
        Part.of_a(A, plan.a, batch, (row, m), (0, k)),
        Part.of_b(B, plan.b, 0, (column, n), (0, k)),
    )
    scaled = Scaled(tiles, scale_a, scale_b, batch, row, column)
    c = scaled.sum(fx.ceildiv(k, plan.unit.depth))
    output = Output(epilogue, product, (plan.rows, plan.columns), (m - row, n - column))
    start = fx.get_iter(bias) + column if epilogue.bias else None
    output.store(c, Rows.of(C, batch, row, column), start, None, None, None)


@fly.jit
def scaled_gemm(
    A: Left,
    B: Right,
    scale_a: fx.Tensor[fx.Float32, "B", fx.sym_int32("M"), "KB"],
    scale_b: fx.Tensor[fx.Float32, 1, "KB", "NB"],
    bias: fx.Tensor,
    plan: fx.Constexpr[Plan],
    epilogue: fx.Constexpr[Epilogue],
):
    """epilogue(A·B), where blocks of both have scales; B and its scales are one matrix each."""
    batches, m, n = A.shape[0], A.shape[1], B.shape[2]
    C = fx.empty((batches, m, n), EVERY[epilogue.out])
    grid = (fx.ceildiv(m, plan.rows), fx.ceildiv(n, plan.columns), batches)
    product = tiled_product(plan.unit)
    scaled_gemm_kernel(A, B, C, scale_a, scale_b, bias, product, plan, epilogue).launch(
        grid=grid, block=plan.unit.threads
    )
    return C
