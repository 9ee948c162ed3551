"""Convolutions in two dimensions as matrix products.

A row of A holds what a pixel of the output is computed from: K is the window's rows, its columns
and the channels, the channels fastest. This matrix is never made: threads compute where its
elements are in the image when they load them. What is outside of the image is 0.
"""

from __future__ import annotations

import math
from operator import index
from typing import Any, NamedTuple

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx
from fly.kernels.arrays import FLOATS, address, check_types, contiguous, strides
from fly.kernels.gemm.batched_gemm import Right
from fly.kernels.gemm.epilogue import Epilogue, Output, Rows
from fly.kernels.gemm.matrix_product import check_added, matmul, result_type, wide
from fly.kernels.gemm.movers import Mover
from fly.kernels.gemm.plans import WIDEST, Access, Plan, access, fits_buffer, plan_for
from fly.kernels.gemm.tiles import Part, Tiles, tiled_product
from fly.kernels.operators import operator, wanted

Images = fx.Tensor[fx.Float, *map(fx.sym_int32, ("images", "channels", "height", "width"))]


class Window(NamedTuple):
    """The window of a convolution: its extents, and along both, how far its positions are apart,
    how many zeros are before the image, and how far its elements are apart. `channels` are those of
    a group."""

    channels: int
    extents: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]

    def outputs(self, image: tuple[Any, Any]) -> tuple[Any, Any]:
        """The rows and columns of the output, of an image's."""
        height, width = [
            (image[i] + 2 * self.padding[i] - self.dilation[i] * (self.extents[i] - 1) - 1)
            // self.stride[i]
            + 1
            for i in range(2)
        ]
        return height, width


class Patches(NamedTuple):
    """The rows of A from `row` on: those of pixels of `X`, an array of batch, channels, rows and
    columns, of which a group's begin at channel `channel`."""

    X: Any
    window: Window
    row: Any
    rows: Any
    channel: Any

    def operand(self, access: Access, lds: Any) -> PatchTiles:
        return PatchTiles(self, access, lds)


class PatchTiles:
    """The tiles of patches; see `fly.kernels.gemm.tiles.Operand`."""

    def __init__(self, part: Patches, access: Access, lds: Any):
        X, window = part.X, part.window
        self.part, self.mover = part, Mover(X.dtype, access, lds)
        self.width = fx.size(lds.shape[1])
        first = fx.get_iter(X) + fx.Int64(part.channel) * X.stride[1]
        self.source = self.mover.source(first)
        places = self.mover.places
        # Of each access: the offset of the window's start, and its row and column in the image.
        distance = self.mover.distance
        self.steps = [distance(step) for step in X.stride.unpack()]
        self.starts = fx.make_fragment_like(places, distance)
        self.tops, self.lefts = [fx.make_fragment_like(places, fx.Int32) for _ in range(2)]
        # What is not negative is divided with fewer instructions.
        height, width = map(fx.Uint32, window.outputs((X.shape[2], X.shape[3])))
        for i in fx.range_constexpr(fx.size(places)):
            pixel, _ = places[i].unpack()
            pixel = fx.Uint32(fx.min(part.row + fx.Int32(pixel), part.rows - 1))
            line, column = divmod(pixel, width)
            image, line = divmod(line, height)
            self.tops[i] = fx.Int32(line) * window.stride[0] - window.padding[0]
            self.lefts[i] = fx.Int32(column) * window.stride[1] - window.padding[1]
            self.starts[i] = distance(image) * self.steps[0] + self._offset(
                0, self.tops[i], self.lefts[i]
            )

    def _offset(self, channel: Any, line: Any, column: Any) -> Any:
        place = zip(self.steps[1:], (channel, line, column), strict=True)
        return sum(step * self.mover.distance(one) for step, one in place)

    def load(self, step: Any, whole: bool) -> None:
        """Starts to load a tile."""
        X, window, places = self.part.X, self.part.window, self.mover.places
        offsets = fx.make_fragment_like(self.starts)
        inside = fx.make_fragment_like(places, fx.Boolean)
        for i in fx.range_constexpr(fx.size(places)):
            _, k = places[i].unpack()
            element, channel = divmod(fx.Uint32(step * self.width + k), window.channels)
            down, right = map(fx.Int32, divmod(element, window.extents[1]))
            line, column = down * window.dilation[0], right * window.dilation[1]
            # As unsigned numbers, those before the image are beyond it.
            inside[i] = (
                (down < window.extents[0])
                & ((self.tops[i] + line).bitcast(fx.Uint32) < X.shape[2].bitcast(fx.Uint32))
                & ((self.lefts[i] + column).bitcast(fx.Uint32) < X.shape[3].bitcast(fx.Uint32))
            )
            offsets[i] = self.starts[i] + self._offset(channel, line, column)
        self.mover.load(self.source, 0, offsets, inside)


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


def _pair(value: Any) -> tuple[int, int]:
    """Both numbers of an option, of which one may be given for both."""
    try:
        numbers = [*map(index, value if isinstance(value, list | tuple) else (value,))]
    except TypeError:
        numbers = []
    if len(numbers) not in (1, 2):
        raise UsageError(f"{quoted(value)} is not an integer, or two for rows and columns")
    return numbers[0], numbers[-1]


def _window(x: Any, weight: Any, options: tuple[Any, ...], groups: int) -> Window:
    """The window of a convolution. UsageError for shapes that do not fit."""
    if x.ndim != 4 or weight.ndim != 4:
        raise UsageError(f"x and weight have 4 dimensions each, not {x.ndim} and {weight.ndim}")
    channels = weight.shape[1]
    if (
        min(groups, *weight.shape[1:]) < 1
        or x.shape[1] != groups * channels
        or weight.shape[0] % groups
    ):
        shapes = f"x of shape {tuple(x.shape)} and weight of shape {tuple(weight.shape)}"
        raise UsageError(f"{shapes} are not {groups} groups of channels")
    stride, padding, dilation = map(_pair, options)
    if min(*stride, *dilation) < 1 or min(padding) < 0:
        raise UsageError("strides and dilations are positive, and paddings not negative")
    made = Window(channels, tuple(weight.shape[2:]), stride, padding, dilation)
    if min(made.outputs(x.shape[2:])) < 1:
        raise UsageError(f"the window is greater than the image of shape {tuple(x.shape[2:])}")
    return made


def _fake(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    height, width = _window(x, weight, (stride, padding, dilation), groups).outputs(x.shape[2:])
    return x.new_empty((x.shape[0], height, width, weight.shape[0])).permute(0, 3, 1, 2)


@operator(
    "(Tensor x, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0,"
    " int[2] dilation=1, int groups=1) -> Tensor",
    fake=_fake,
)
def conv2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """The convolution of images as in torch.nn.functional.conv2d.

    x: batch × channels × H × W. weight: outputs × (channels / groups) × R × S, of x's type: f16,
    bf16, f32 or f64. bias: outputs. stride, padding (with zeros) and dilation: a number, or two for
    rows and columns. Any order in memory is right; images whose channels are adjacent
    (torch.channels_last) are loaded up to 16 bytes at a time, others element by element.

    Returns batch × outputs × P × Q of x's type, with channels adjacent in memory. Sums are in f32,
    of f64 in f64. UsageError for shapes that do not fit.
    """
    window = _window(x, weight, (stride, padding, dilation), groups)
    check_types(FLOATS, x=x)
    if x.dtype != weight.dtype:
        raise UsageError(f"x is of {x.dtype} and weight of {weight.dtype}", hint="convert one")
    outputs, channels = weight.shape[0], window.channels
    check_added(bias=bias)
    if bias is not None and tuple(bias.shape) != (outputs,):
        raise UsageError(f"bias has shape {tuple(bias.shape)}, and weight {outputs} outputs")
    height, width = window.outputs(x.shape[2:])
    n, k = outputs // groups, channels * math.prod(window.extents)
    # Rows of weights in the order of K; each group's are the columns of a matrix.
    rows = contiguous(weight.swapaxes(1, 2).swapaxes(2, 3)).reshape(groups, n, k)
    columns = rows.swapaxes(1, 2)
    epilogue = Epilogue(result_type(x, None).name, math.gcd(WIDEST, n), bias is not None)
    if bias is not None:
        bias = contiguous(bias)
        epilogue = epilogue.limited(access(bias[None, None], 2))
    extents = (groups, x.shape[0] * height * width, k, n)
    plan = plan_for(x.dtype, extents, _access(x, channels), access(columns, 1), 1)
    made = convolution(x, columns, x if bias is None else bias, plan, epilogue, window)
    made = made.reshape(x.shape[0], height, width, outputs)
    return made.swapaxes(2, 3).swapaxes(1, 2)


def _access(x: Any, channels: int) -> Access:
    """The access of patches: along K where channels are adjacent."""
    steps, nbytes = strides(x), x.itemsize
    buffer = fits_buffer(x.shape, steps, nbytes)
    if steps[1] != 1:
        return Access(False, 1, buffer)
    outside = [steps[i] * nbytes for i in (0, 2, 3) if x.shape[i] > 1]
    aligned = math.gcd(WIDEST, address(x), channels * nbytes, *outside)
    return Access(True, max(1, aligned // nbytes), buffer)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias, stride, padding, dilation, ctx.groups = inputs
    ctx.save_for_backward(x, weight, bias)
    ctx.options = {"stride": stride, "padding": padding, "dilation": dilation}


@conv2d.gradient(_save)
def _(ctx: Any, gradient: Any) -> Any:
    """By products with the matrix of patches, which is made here."""
    from torch.nn.functional import fold, unfold

    (x, weight, bias), groups = ctx.saved_tensors, ctx.groups
    for_x, for_weight, for_bias = wanted(ctx, 3)
    window = tuple(weight.shape[2:])
    # Images, groups, outputs of a group and values of a window; pixels of the output.
    b, g, n, k = x.shape[0], groups, weight.shape[0] // groups, math.prod(weight.shape[1:])
    pixels = math.prod(gradient.shape[2:])
    rows = gradient.reshape(b, g, n, pixels)
    of_x = of_weight = of_bias = None
    if for_x:
        spread = matmul(weight.reshape(g, n, k).mT, rows).reshape(b, g * k, pixels)
        of_x = fold(spread, tuple(x.shape[2:]), window, **ctx.options)
    if for_weight:
        patches = unfold(x, window, **ctx.options).reshape(b, g, k, pixels)
        rows, patches = [one.permute(1, 2, 0, 3).flatten(2) for one in (rows, patches)]
        of_weight = matmul(rows, patches.mT).reshape(weight.shape)
    if for_bias:
        of_bias = gradient.sum((0, 2, 3), dtype=wide(x)).to(bias.dtype)
    return of_x, of_weight, of_bias, None, None, None, None
