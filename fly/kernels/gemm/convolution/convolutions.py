"""Convolutions of arrays, as in torch.nn.functional.conv2d, and their gradients."""

from __future__ import annotations

import math
from operator import index
from typing import Any

from fly_common.errors import UsageError
from fly_common.quoting import quoted

from fly.kernels.arrays import FLOATS, address, check_types, contiguous, strides
from fly.kernels.gemm.convolution.implicit_gemm import convolution
from fly.kernels.gemm.convolution.patches import Window
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.matrix_product import matmul
from fly.kernels.gemm.operands import check_bias, result_type, wide, with_bias
from fly.kernels.gemm.plans import WIDEST, Access, access, fits_buffer, plan_for
from fly.kernels.operators import operator, wanted


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
    check_bias(bias, outputs, "weight", "outputs")
    height, width = window.outputs(x.shape[2:])
    n, k = outputs // groups, channels * math.prod(window.extents)
    # Rows of weights in the order of K; each group's are the columns of a matrix.
    rows = contiguous(weight.swapaxes(1, 2).swapaxes(2, 3)).reshape(groups, n, k)
    columns = rows.swapaxes(1, 2)
    plain = Epilogue(result_type(x, None).name, math.gcd(WIDEST, n))
    bias, epilogue = with_bias(plain, bias)
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
