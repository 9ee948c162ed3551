"""Products with a matrix whose elements are in the order in which waves read them.

B is divided into blocks of 16 columns by the 16 bytes along K that a lane reads at a time. What the
lanes of a wave read is adjacent, however many share a column: one order serves all targets. So B
goes from memory to registers without LDS, the next tile while one is multiplied; only A is in LDS.
"""

from __future__ import annotations

from typing import Any

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels.gemm.batched_gemm import Left
from fly.kernels.gemm.epilogue import Epilogue, Output, Rows
from fly.kernels.gemm.plans import WIDEST, Plan
from fly.kernels.gemm.tiled_products import (
    multiply,
    products_first,
    shared_tiles,
    tiled_product,
    zeros,
)
from fly.kernels.gemm.tiles import Part
from fly.kernels.shapes import for_model

COLUMNS = 16  # of B in a block
Shuffled = fx.Tensor[fx.Numeric, "blocks", "deep", None, None, fx.aligned(WIDEST)]


class ShuffledTiles:
    """A thread's part in multiplying tiles of A, in LDS, with tiles of B, in registers."""

    def __init__(self, plan: Plan, product: Any, a: Part, B: Any, column: Any):
        self.plan, self.product, thread = plan, product, fx.thread_idx.x
        dtype = EVERY[plan.unit.element]
        self.wide = fx.make_copy_atom(fx.UniversalCopy128b(), dtype)
        own = product.get_slice(thread)
        part = fx.size(product.tile_size_mnk[2])
        self.parts = range(plan.unit.depth // part)

        lds = shared_tiles(plan.unit, plan.rows)
        self.a = a.operand(plan.a, lds)
        read = fx.make_tiled_copy_B(self.wide, product).get_slice(thread)
        parts = fx.flat_divide(lds, (plan.rows, part))[None, None, 0, None, None]
        self.own_a = own.make_fragment_B(parts[None, None, 0, 0])
        self.from_a, self.to_a = read.partition_S(parts), read.retile(self.own_a)

        run = WIDEST * 8 // B.dtype.bits  # values of K in a block
        shape = ((COLUMNS, B.shape[0]), (run, B.shape[1]))
        steps = ((run, B.shape[1] * COLUMNS * run), (1, COLUMNS * run))
        matrix = fx.make_view(fx.get_iter(B), fx.make_layout(shape, steps))
        tiles = fx.flat_divide(matrix, (plan.columns, part))[None, None, column, None]
        copy = fx.UniversalCopy(plan.unit.wide * B.dtype.bits)
        self.load_atom = fx.make_copy_atom(copy, B.dtype)
        fetch = fx.make_tiled_copy_A(self.load_atom, product).get_slice(thread)
        self.from_b = fetch.partition_S(tiles)
        self.own_b = own.make_fragment_A(tiles[None, None, 0])
        self.loaded = [fx.make_fragment_like(self.own_b, B.dtype) for _ in self.parts]
        self.to_b = [fetch.retile(one) for one in self.loaded]

    def fetch(self, step: Any, part: int) -> None:
        """Starts to load a part of a tile of B."""
        tile = step * len(self.parts) + part
        fx.copy(self.load_atom, self.from_b[None, None, None, tile], self.to_b[part])

    def multiply(self, stage: Any, c: Any, following: Any = None) -> None:
        """Multiplies the tiles of a stage. What has been multiplied of B gives its registers to the
        `following` tile."""
        for part in self.parts:
            fx.copy(self.wide, self.from_a[None, None, None, part, stage], self.to_a)
            self.own_b.store(self.loaded[part].load().to(self.own_b.dtype))
            multiply(self.plan.unit, self.product, c, self.own_b, self.own_a)
            if following is not None:
                products_first(self.plan.unit)
                self.fetch(following, part)

    def sum(self, steps: Any) -> Any:
        """Returns the sums of the products of all tiles, as a fragment of Cᵀ."""
        c = zeros(self.plan, self.product)
        self.a.load(0, self.plan.whole)
        for part in self.parts:
            self.fetch(0, part)
        self.a.mover.store(0)
        fx.barrier()
        stage = 0
        for step in range(1, steps, unroll=1):
            self.a.load(step, self.plan.whole)
            self.multiply(stage, c, step)
            stage = 1 - stage
            self.a.mover.store(stage)
            fx.barrier()
        self.multiply(stage, c)
        return c


@fly.kernel
def preshuffled_gemm_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    bias: fx.Tensor,
    C: fx.Tensor,
    product: fx.TiledMma,
    plan: fx.Constexpr[Plan],
    epilogue: fx.Constexpr[Epilogue],
    whole: fx.Constexpr[bool],
):
    m, n, k = C.shape[1], C.shape[2], A.shape[2]
    row, column = fx.block_idx.x * plan.rows, fx.block_idx.y * plan.columns
    a = Part.of_a(A, plan.a, 0, (row, m), (0, k))
    tiles = ShuffledTiles(plan, product, a, B, fx.block_idx.y)
    c = tiles.sum(fx.max(fx.ceildiv(k, plan.unit.depth), 1))
    end = column + plan.columns if whole else n
    output = Output(epilogue, product, (plan.rows, plan.columns), (m - row, end - column))
    own_bias = fx.get_iter(bias) + column if epilogue.bias else None
    output.store(c, Rows.of(C, 0, row, column), own_bias, None, None, None)


@fly.jit(specialize=for_model("K", "blocks", "deep"))
def preshuffled_gemm(
    A: Left,
    B: Shuffled,
    n: fx.Int32,
    bias: fx.Tensor,
    plan: fx.Constexpr[Plan],
    epilogue: fx.Constexpr[Epilogue],
    whole: fx.Constexpr[bool],
):
    m = A.shape[1]
    C = fx.empty((1, m, n), EVERY[epilogue.out])
    grid = (fx.ceildiv(m, plan.rows), fx.ceildiv(n, plan.columns))
    product = tiled_product(plan.unit)
    preshuffled_gemm_kernel(A, B, bias, C, product, plan, epilogue, whole).launch(
        grid=grid, block=plan.unit.threads
    )
    return C
