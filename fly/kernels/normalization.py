"""RMSNorm and layer normalization along the last dimension.

All functions are one kernel. It may add a residual first, as transformers do between their layers,
and round its result to 8 bits, with a scale for each row. Statistics of a row are sums in f32 (of
f64 in f64); the variance is of differences from the mean, which avoids cancellation.
"""

from __future__ import annotations

from typing import Any

import fly
import fly.expr as fx
from fly.kernels.approximations import rsqrt
from fly.kernels.arrays import FLOATS, as_matrix, as_vectors, check_shapes, check_types
from fly.kernels.columns import column_plan
from fly.kernels.norm_gradients import norm_backward_at_once, norm_backward_rows
from fly.kernels.operators import like, operator
from fly.kernels.quantization import format_of, quantized
from fly.kernels.rowwise.row_moments import (
    moments,
    received_means,
    received_moments,
    send_moments,
    send_sums,
)
from fly.kernels.rowwise.row_plans import Plan, has_room, plan
from fly.kernels.rowwise.row_streams import each_row, each_row_in_two, goes_in_two, grid_of
from fly.kernels.rowwise.rows import Matrix, Row
from fly.kernels.shapes import for_model


def statistics(row, x, eps, centred):
    """Returns a row, less its mean if `centred`; the mean; and 1 / sqrt(variance + eps)."""
    if centred and row.plan.cluster > 1:
        mean, variance = moments(row, x)
        return row.map(lambda x: x - mean, x), mean, rsqrt(variance + eps.to(variance.dtype))
    mean = row.mean(x) if centred else None
    if centred:
        x = row.map(lambda x: x - mean, x)
    with fx.fastmath("contract"):
        variance = row.mean(row.map(lambda x: x * x, x))
        return x, mean, rsqrt(variance + eps.to(variance.dtype))


@fly.kernel
def norm_kernel(
    X: fx.Tensor,
    Y: fx.Tensor,
    eps: fx.Float64,
    centred: fx.Constexpr[bool],
    plan: fx.Constexpr[Plan],
    weight=None,
    bias=None,
    residual=None,
    total=None,
    scales=None,
):
    given = [one for one in (weight, bias) if one is not None]
    # A block of many rows has the parameters in registers, if a row fits there.
    kept = [Row(plan, X.shape[1]).read(one) for one in given] if plan.ahead else []

    def scaled(y, *parameters):
        parameters = list(parameters)
        if weight is not None:
            y = y * parameters.pop(0)
        return y + parameters.pop(0) if parameters else y

    def fused(y, *parameters):
        factor, *offset = parameters if weight is not None else (1.0, *parameters)
        return fx.fma(y, factor, offset[0] if offset else 0.0)

    def send(row):
        x = row.read(X)
        if centred:
            send_moments(row, x)
        else:
            with fx.fastmath("contract"):
                send_sums(row, row.map(lambda x: x * x, x))

    def sent_row(row, _):
        """A row whose sums have been sent."""
        mean, variance = received_moments(row, 0) if centred else (0.0, *received_means(row, 1))
        factor = rsqrt(variance + eps.to(variance.dtype))
        with fx.fastmath("contract"):
            start = mean * factor
            y = row.map(lambda x: x * factor - start if centred else x * factor, row.read(X))
            row.finish(Y, scaled, y, *[row.read(one) for one in given], last=True)

    def one_row(row, _):
        x = row.read(X)
        if residual is not None:
            # What is normalized is the sum that is returned, rounded. LLVM adds in f16 then.
            x = row.map(lambda x, other: (x + other).to(X.dtype), x, row.read(residual))
            row.write(total, x)
        x, _, factor = statistics(row, x, eps, centred)
        y = row.map_late(lambda x: x * factor, x)
        parameters = kept or [row.read(one) for one in given]
        with fx.fastmath("contract"):
            if scales is None:
                # Two parameters take the registers that the address of the row would be in.
                row = row if bias is None else row.again()
                row.finish(Y, scaled, y, *parameters, last=True)
            else:
                y = row.map_mixed(scaled, fused, y, *parameters)
                row.write(Y, quantized(row, y, Y.dtype, scales), last=True)

    if goes_in_two(plan) and residual is None and scales is None:
        each_row_in_two(plan, X.shape, send, sent_row, X)
    else:
        each_row(plan, X.shape, one_row, X, *([] if residual is None else [residual]))


@fly.jit(specialize=for_model("N"))
def norm_rows(
    X: Matrix,
    eps: fx.Float64,
    centred: fx.Constexpr[bool],
    plan: fx.Constexpr[Plan],
    weight=None,
    bias=None,
    residual=None,
    dtype=None,
):
    Y = fx.empty(X.shape, X.dtype if dtype is None else dtype)
    scales = None if dtype is None else fx.empty(X.shape[0], fx.Float32)
    total = None if residual is None else fx.empty(X.shape, X.dtype)
    norm_kernel(X, Y, eps, centred, plan, weight, bias, residual, total, scales).launch(
        grid=grid_of(plan, X.shape[0]),
        block=plan.threads,
        cluster=plan.cluster,
        attributes=plan.attributes,
    )
    return Y, scales, total


def _norm(x, eps, centred, weight=None, bias=None, residual=None, dtype=None):
    """Calls norm_rows; returns the results there are."""
    check_types(FLOATS, x=x, residual=residual)
    weight, bias = as_vectors(x, weight=weight, bias=bias)
    vectors = [one for one in (weight, bias) if one is not None]
    matrix = as_matrix(x)
    matrices = [matrix]
    if residual is not None:
        check_shapes(x, residual)
        residual = as_matrix(residual)
        matrices.append(residual)
    kind = None if dtype is None else format_of(dtype)
    of_rows = plan(*matrices, *vectors, kernel="" if kind else _kernel(centred, len(matrices) > 1))
    found = norm_rows(matrix, eps, centred, of_rows, weight, bias, residual, kind)
    y, scales, total = found
    results = (
        y.reshape(x.shape),
        None if scales is None else scales.reshape(x.shape[:-1]),
        None if total is None else total.reshape(x.shape),
    )
    made = tuple(one for one in results if one is not None)
    return made[0] if len(made) == 1 else made


def _kernel(centred: bool, adds: bool = False, backward: bool = False) -> str:
    """The name that the plans of a kernel have."""
    name = "layer_norm" if centred else "rms_norm"
    return f"{'add_' if adds else ''}{name}{'_backward' if backward else ''}"


@operator(
    "(Tensor x, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor", fake=like
)
def layer_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """(x - mean) / sqrt(variance + eps) · weight + bias along the last dimension.

    x: of f16, bf16, f32 or f64, of one or more dimensions. weight, bias: of a floating-point type,
    as long as a row, or None. Returns an array of x's type and shape.
    """
    return _norm(x, eps, True, weight, bias)


@operator("(Tensor x, Tensor? weight=None, float eps=1e-06) -> Tensor", fake=like)
def rms_norm(x: Any, weight: Any = None, eps: float = 1e-6) -> Any:
    """x / sqrt(mean(x²) + eps) · weight along the last dimension. As `layer_norm`."""
    return _norm(x, eps, False, weight)


def _two(x: Any, *_: Any) -> Any:
    return x.new_empty(x.shape), x.new_empty(x.shape)


@operator(
    "(Tensor x, Tensor residual, Tensor? weight=None, Tensor? bias=None, float eps=1e-05)"
    " -> (Tensor, Tensor)",
    fake=_two,
)
def add_layer_norm(
    x: Any, residual: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """(layer_norm(x + residual, weight, bias, eps), x + residual); residual is like x."""
    return _norm(x, eps, True, weight, bias, residual)


@operator(
    "(Tensor x, Tensor residual, Tensor? weight=None, float eps=1e-06) -> (Tensor, Tensor)",
    fake=_two,
)
def add_rms_norm(x: Any, residual: Any, weight: Any = None, eps: float = 1e-6) -> Any:
    """(rms_norm(x + residual, weight, eps), x + residual); residual is like x."""
    return _norm(x, eps, False, weight, None, residual)


def _fake_quantized(x: Any, dtype: str, *_: Any) -> Any:
    import torch

    scales = x.new_empty(x.shape[:-1], dtype=torch.float32)
    return x.new_empty(x.shape, dtype=getattr(torch, dtype)), scales


@operator(
    "(Tensor x, str dtype, Tensor? weight=None, Tensor? bias=None, float eps=1e-05)"
    " -> (Tensor, Tensor)",
    fake=_fake_quantized,
)
def layer_norm_quantized(
    x: Any, dtype: str, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """quantize_rows(layer_norm(x, weight, bias, eps), dtype), without rounding in between."""
    return _norm(x, eps, True, weight, bias, None, dtype)


@operator(
    "(Tensor x, str dtype, Tensor? weight=None, float eps=1e-06) -> (Tensor, Tensor)",
    fake=_fake_quantized,
)
def rms_norm_quantized(x: Any, dtype: str, weight: Any = None, eps: float = 1e-6) -> Any:
    """quantize_rows(rms_norm(x, weight, eps), dtype), without rounding in between."""
    return _norm(x, eps, False, weight, None, None, dtype)


def _fake_add_quantized(x: Any, residual: Any, dtype: str, *more: Any) -> Any:
    return *_fake_quantized(x, dtype), x.new_empty(x.shape)


@operator(
    "(Tensor x, Tensor residual, str dtype, Tensor? weight=None, float eps=1e-06)"
    " -> (Tensor, Tensor, Tensor)",
    fake=_fake_add_quantized,
)
def add_rms_norm_quantized(
    x: Any, residual: Any, dtype: str, weight: Any = None, eps: float = 1e-6
) -> Any:
    """(*rms_norm_quantized(x + residual, dtype, weight, eps), x + residual); residual is like x."""
    return _norm(x, eps, False, weight, None, residual, dtype)


def _fake_backward(gradient: Any, x: Any, weight: Any, eps: float, centred: bool) -> Any:
    of_weight = x.new_empty(0) if weight is None else weight.new_empty(weight.shape)
    of_bias = of_weight.clone() if centred else x.new_empty(0)
    return x.new_empty(x.shape), of_weight, of_bias


@operator(
    "(Tensor gradient, Tensor x, Tensor? weight, float eps, bool centred)"
    " -> (Tensor, Tensor, Tensor)",
    fake=_fake_backward,
)
def norm_backward(gradient: Any, x: Any, weight: Any, eps: float, centred: bool) -> Any:
    """The gradients of x, weight and bias from those of layer_norm (centred) or of rms_norm.

    gradient and x are of one type and shape. Without a weight, the gradients of weight and bias are
    empty; so is that of the bias of rms_norm, which has none. Sums over rows are the same in each
    run.
    """
    check_types(FLOATS, gradient=gradient, x=x)
    check_shapes(gradient, x)
    (weight,) = as_vectors(x, weight=weight)
    matrices = as_matrix(gradient), as_matrix(x)
    vectors = [] if weight is None else [weight]
    of_rows = plan(*matrices, *vectors, kernel=_kernel(centred, backward=True))
    if weight is not None and of_rows.ahead and has_room(of_rows, x.itemsize, 1 + centred):
        dx, *others = norm_backward_at_once(*matrices, weight, eps, centred, of_rows)
        return dx.reshape(x.shape), *others
    of_columns = column_plan(x.shape[-1], of_rows.vector)
    dx, *others = norm_backward_rows(*matrices, eps, centred, of_rows, of_columns, weight)
    return dx.reshape(x.shape), *others


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    x, *parameters, ctx.eps = inputs
    ctx.save_for_backward(x, *parameters)


def _save_sum(ctx: Any, inputs: Any, output: Any) -> None:
    _, _, *parameters, ctx.eps = inputs
    ctx.save_for_backward(output[1], *parameters)


def _gradients(ctx: Any, gradient: Any, centred: bool) -> tuple[Any, Any, Any]:
    x, weight, bias = (*ctx.saved_tensors, None)[:3]
    factor = bias.new_ones(bias.shape) if weight is None and bias is not None else weight
    dx, dweight, dbias = norm_backward(gradient, x, factor, ctx.eps, centred)
    return dx, None if weight is None else dweight, None if bias is None else dbias


@layer_norm.gradient(_save)
def _(ctx: Any, gradient: Any) -> Any:
    return *_gradients(ctx, gradient, True), None


@rms_norm.gradient(_save)
def _(ctx: Any, gradient: Any) -> Any:
    return *_gradients(ctx, gradient, False)[:2], None


@add_layer_norm.gradient(_save_sum)
def _(ctx: Any, gradient: Any, of_sum: Any) -> Any:
    dx, *others = _gradients(ctx, gradient, True)
    return dx + of_sum, dx + of_sum, *others, None


@add_rms_norm.gradient(_save_sum)
def _(ctx: Any, gradient: Any, of_sum: Any) -> Any:
    dx, dweight, _ = _gradients(ctx, gradient, False)
    return dx + of_sum, dx + of_sum, dweight, None
