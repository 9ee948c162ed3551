"""Cross entropy of logits and classes, and its gradient."""

from __future__ import annotations

from typing import Any

from fly_common.errors import UsageError

import fly
import fly.expr as fx
from fly.kernels.approximations import exp
from fly.kernels.arrays import FLOATS, INTEGERS, as_matrix, check_types, contiguous
from fly.kernels.operators import operator
from fly.kernels.row_softmax import Normalizer
from fly.kernels.rowwise.row_plans import Plan, plan
from fly.kernels.rowwise.row_streams import each_row, grid_of
from fly.kernels.rowwise.rows import Matrix, wide_type


@fly.kernel
def cross_entropy_kernel(
    X: fx.Tensor,
    targets: fx.Tensor,
    losses: fx.Tensor,
    log_sums: fx.Tensor,
    smoothing: fx.Float64,
    ignored: fx.Int64,
    smooth: fx.Constexpr[bool],
    plan: fx.Constexpr[Plan],
):
    wide = log_sums.dtype

    def one_row(row, _):
        index = row.index
        target = targets[index].to(fx.Int64)
        is_class = 0 <= target < X.shape[1]
        assert target == ignored or is_class, f"targets[{index}] is {target}, which is no class"
        x = row.read(X, float("-inf"))
        normalizer = Normalizer.of_row(row, x)
        log_sum = normalizer.bound + fx.log(normalizer.total)
        # The logarithm of the softmax is x - log_sum: of the target, and in the mean of all.
        loss = wide(0)
        if smooth:
            share = smoothing.to(wide)
            own = (1 - share) * own_logit(X, index, target, is_class, log_sum)
            loss = -own - share * (row.mean(row.read(X)) - log_sum)
        else:
            loss = -own_logit(X, index, target, is_class, log_sum)
        if row.leads():
            log_sums[index] = log_sum
            losses[index] = fx.where(target == ignored, wide(0), loss)

    each_row(plan, X.shape, one_row, X)


def own_logit(X, index, target, is_class, log_sum):
    """Returns log(softmax(x)) of the target's class, and 0 if it is none."""
    own = log_sum.dtype(0)
    if is_class:
        own = X[index, target].to(log_sum.dtype) - log_sum
    return own


@fly.kernel
def cross_entropy_backward_kernel(
    gradients: fx.Tensor,
    X: fx.Tensor,
    targets: fx.Tensor,
    log_sums: fx.Tensor,
    dX: fx.Tensor,
    smoothing: fx.Float64,
    ignored: fx.Int64,
    plan: fx.Constexpr[Plan],
):
    wide, share = log_sums.dtype, smoothing.to(log_sums.dtype)

    def one_row(row, _):
        index = row.index
        target, log_sum = targets[index].to(fx.Int64), log_sums[index]
        gradient = fx.where(target == ignored, wide(0), gradients[index])

        def derivative(x, column):
            own = fx.where(column == target.to(fx.Int32), 1 - share, wide(0))
            return (exp(x - log_sum) - (own + share / X.shape[1])) * gradient

        row.write(dX, row.map(derivative, row.read(X), row.places()), last=True)

    each_row(plan, X.shape, one_row, X)


@fly.jit
def cross_entropy_matrix(
    X: Matrix,
    targets: fx.Tensor[fx.Integer, "M"],
    smoothing: fx.Float64,
    ignored: fx.Int64,
    smooth: fx.Constexpr[bool],
    plan: fx.Constexpr[Plan],
):
    rows, wide = X.shape[0], wide_type(X.dtype)
    losses, log_sums = fx.empty(rows, wide), fx.empty(rows, wide)
    cross_entropy_kernel(X, targets, losses, log_sums, smoothing, ignored, smooth, plan).launch(
        grid=grid_of(plan, rows),
        block=plan.threads,
        cluster=plan.cluster,
        attributes=plan.attributes,
    )
    return losses, log_sums


@fly.jit
def cross_entropy_backward_matrix(
    gradients: fx.Tensor[fx.Float, "M"],
    X: Matrix,
    targets: fx.Tensor[fx.Integer, "M"],
    log_sums: fx.Tensor[fx.Float, "M"],
    smoothing: fx.Float64,
    ignored: fx.Int64,
    plan: fx.Constexpr[Plan],
):
    dX = fx.empty(X.shape, X.dtype)
    cross_entropy_backward_kernel(
        gradients, X, targets, log_sums, dX, smoothing, ignored, plan
    ).launch(
        grid=grid_of(plan, X.shape[0]),
        block=plan.threads,
        cluster=plan.cluster,
        attributes=plan.attributes,
    )
    return dX


def _fake_rows(x: Any, *_: Any) -> Any:
    import torch

    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    return x.new_empty(x.shape[:-1], dtype=wide), x.new_empty(x.shape[:-1], dtype=wide)


@operator(
    "(Tensor x, Tensor targets, float smoothing=0.0, int ignore_index=-100) -> (Tensor, Tensor)",
    fake=_fake_rows,
)
def cross_entropy_rows(
    x: Any, targets: Any, smoothing: float = 0.0, ignore_index: int = -100
) -> Any:
    """(losses, log_sums) of each row of x: -log_softmax(x)[target], and log(sum(exp(x))).

    As `cross_entropy`; losses are 0 where the target is ignored. Both results are of f32, of f64
    for x of f64, and have the shape of targets.
    """
    check_types(FLOATS, x=x)
    check_types(INTEGERS, targets=targets)
    _check_rows(x, targets=targets)
    if not 0 <= smoothing <= 1:
        raise UsageError(f"smoothing is {smoothing}, not from 0 to 1")
    matrix = as_matrix(x)
    of_rows = plan(matrix, kernel="cross_entropy")
    losses, log_sums = cross_entropy_matrix(
        matrix, targets.reshape(-1), smoothing, ignore_index, smoothing > 0, of_rows
    )
    return losses.reshape(targets.shape), log_sums.reshape(targets.shape)


@operator(
    "(Tensor gradient, Tensor x, Tensor targets, Tensor log_sums, float smoothing,"
    " int ignore_index) -> Tensor",
    fake=lambda gradient, x, *_: x.new_empty(x.shape),
)
def cross_entropy_backward(
    gradient: Any, x: Any, targets: Any, log_sums: Any, smoothing: float, ignore_index: int
) -> Any:
    """The gradient of x, from that of the losses of `cross_entropy_rows`, and its log_sums."""
    check_types(FLOATS, gradient=gradient, x=x, log_sums=log_sums)
    check_types(INTEGERS, targets=targets)
    _check_rows(x, gradient=gradient, targets=targets, log_sums=log_sums)
    matrix = as_matrix(x)
    dx = cross_entropy_backward_matrix(
        contiguous(gradient).reshape(-1),
        matrix,
        targets.reshape(-1),
        log_sums.reshape(-1),
        smoothing,
        ignore_index,
        plan(matrix, kernel="cross_entropy_backward"),
    )
    return dx.reshape(x.shape)


def _check_rows(x: Any, **numbers: Any) -> None:
    """UsageError for arrays that do not have a number for each row of x."""
    for name, one in numbers.items():
        if not x.ndim or tuple(one.shape) != tuple(x.shape[:-1]):
            rows = f"the rows {tuple(x.shape[:-1])}" if x.ndim else "x no dimension"
            raise UsageError(f"{name} has the shape {tuple(one.shape)}, and {rows}")


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    x, targets, ctx.smoothing, ctx.ignored = inputs
    ctx.save_for_backward(x, targets, output[1])
    ctx.set_materialize_grads(False)


@cross_entropy_rows.gradient(_save)
def _(ctx: Any, of_losses: Any, of_log_sums: Any) -> Any:
    """Most losses use no log_sums, whose gradient is the softmax: a kernel has no part in it."""
    x, targets, log_sums = ctx.saved_tensors
    dx = None
    if of_losses is not None:
        dx = cross_entropy_backward(of_losses, x, targets, log_sums, ctx.smoothing, ctx.ignored)
    if of_log_sums is not None:
        shares = (x.to(log_sums.dtype) - log_sums[..., None]).exp()
        more = (shares * of_log_sums[..., None]).to(x.dtype)
        dx = more if dx is None else dx + more
    return dx, None, None, None


def cross_entropy(
    x: Any,
    targets: Any,
    smoothing: float = 0.0,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Any:
    """The cross entropy of the softmax of x along the last dimension and the targets' classes.

    x: of f16, bf16, f32 or f64, with a row for each target. targets: integers, each a class or
    ignore_index. smoothing: the share of the target that is spread over all classes. reduction:
    "mean" over the targets that are not ignored, "sum", or "none" (the losses of the rows, 0 for
    ignored ones). Returns f32, f64 for x of f64. A target that is no class fails an assert.
    """
    if reduction not in ("mean", "sum", "none"):
        raise UsageError(f"reduction is {reduction!r}", hint="it is 'mean', 'sum' or 'none'")
    losses, _ = cross_entropy_rows(x, targets, smoothing, ignore_index)
    if reduction == "none":
        return losses
    total = losses.sum()
    return total if reduction == "sum" else total / _count(targets, ignore_index, total)


def _count(targets: Any, ignore_index: int, total: Any) -> Any:
    """How many targets are not ignored, as a number of total's type. They are compared as i64, as
    in the kernel, since torch takes -100 for 156 beside u8. NumPy's 0 is NaN: it warns of
    divisions by 0."""
    if hasattr(targets, "long"):  # torch's
        return (targets.long() != ignore_index).sum()
    count = (targets.astype("int64") != ignore_index).sum()
    return total.dtype.type(count or float("nan"))
