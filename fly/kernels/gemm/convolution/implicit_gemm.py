"""The kernel of convolutions: the matrix of patches of images times that of weights."""

from __future__ import annotations

from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels.gemm.batched_gemm import Right
from fly.kernels.gemm.convolution.patches import Patches, Window
from fly.kernels.gemm.epilogue import Epilogue, Output, Rows
from fly.kernels.gemm.plans import Plan
from fly.kernels.gemm.tiled_products import tiled_product
from fly.kernels.gemm.tiles import Part, Tiles

Images = fx.Tensor[fx.Float, *map(fx.sym_int32, ("images", "channels", "height", "width"))]


@fly.kernel
def convolution_kernel(
    X: fx.Tensor,
    B: fx.Tensor,
    bias: fx.Tensor,
    C: fx.Tensor,
    product: fx.TiledMma,
    plan: fx.Constexpr[Plan],
    epilogue: fx.Constexpr[Epilogue],
    window: fx.Constexpr[Window],
):
    m, n, k = C.shape[1], B.shape[2], B.shape[1]
    row, column = fx.block_idx.x * plan.rows, fx.block_idx.y * plan.columns
    group = fx.block_idx.z
    tiles = Tiles(
        plan,
        product,
        Patches(X, window, row, m, group * window.channels),
        Part.of_b(B, plan.b, group, (column, n), (0, k)),
    )
    c = tiles.sum(0, fx.max(fx.ceildiv(k, plan.unit.depth), 1))
    output = Output(epilogue, product, (plan.rows, plan.columns), (m - row, n - column))
    first = group * n + column
    own_bias = fx.get_iter(bias) + first if epilogue.bias else None
    output.store(c, Rows.of(C, 0, row, first), own_bias, None, None, None)


@fly.jit
def convolution(
    X: Images,
    B: Right,
    bias: fx.Tensor,
    plan: fx.Constexpr[Plan],
    epilogue: fx.Constexpr[Epilogue],
    window: fx.Constexpr[Window],
):
    height, width = window.outputs((X.shape[2], X.shape[3]))
    m, n, groups = X.shape[0] * height * width, B.shape[2], B.shape[0]
    C = fx.empty((1, m, groups * n), EVERY[epilogue.out])
    grid = (fx.ceildiv(m, plan.rows), fx.ceildiv(n, plan.columns), groups)
    product = tiled_product(plan.unit)
    convolution_kernel(X, B, bias, C, product, plan, epilogue, window).launch(
        grid=grid, block=plan.unit.threads
    )
    return C
