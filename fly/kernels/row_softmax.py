"""Softmax and its logarithm along a dimension, and their gradients.

A row that fits into a block's registers is read once. A longer one is read twice: the first time
for its maximum and the sum of exponentials, by an online normalizer (Milakov and Gimelshein,
arXiv:1805.02867).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import fly
import fly.expr as fx
from fly.kernels.approximations import exp, reciprocal
from fly.kernels.arrays import FLOATS, along, check_types
from fly.kernels.operators import like, operator
from fly.kernels.rowwise.row_plans import Plan, plan
from fly.kernels.rowwise.row_streams import each_row, each_row_in_two, goes_in_two, grid_of
from fly.kernels.rowwise.rows import Line, Matrix, Row, added

# The lowest numbers of 32 and 64 bits: LOWEST - LOWEST is 0, unlike -inf - -inf.
LOWEST = {32: -3.4028234663852886e38, 64: -1.7976931348623157e308}


class Normalizer(NamedTuple):
    """A bound of some numbers, and the sum of exp(x - bound) over them. The bound is their maximum,
    or the lowest finite number if all are -inf."""

    bound: Any
    total: Any

    @classmethod
    def of(cls, numbers: Any) -> Normalizer:
        """The normalizer of a vector. The bound ignores NaN, which the sum has then."""
        bound = fx.maxnumf(LOWEST[numbers.dtype.bits], *numbers)
        return cls(bound, added(exp(numbers - bound)))

    @classmethod
    def of_row(cls, row: Row, x: Line) -> Normalizer:
        """The normalizer of a row, for all threads."""
        if not row.plan.fits:
            return row.fold(cls.of, cls.merge, x).over(row)
        # One exponential of each element, which `store` uses again.
        bound = _greatest(row, fx.maxnumf(LOWEST[x.at(0).dtype.bits], *x.at(0)))
        return cls(bound, row.reduce(added(exp(x.at(0) - bound))))

    def merge(self, other: Normalizer) -> Normalizer:
        """The normalizer of both sets of numbers."""
        bound = fx.maxnumf(self.bound, other.bound)
        own, others = (one.total * exp(one.bound - bound) for one in (self, other))
        return Normalizer(bound, own + others)

    def over(self, row: Row) -> Normalizer:
        """The normalizer of the numbers of all threads that have a row."""
        bound = _greatest(row, self.bound)
        return Normalizer(bound, row.reduce(self.total * exp(self.bound - bound)))

    def send(self, row: Row) -> None:
        """Sends the normalizer of a warp's numbers, for `received`."""
        with fx.fastmath("nnan"):
            bound = fx.warp.reduce(self.bound, "max")
        row.exchange.send([bound, fx.warp.reduce(self.total * exp(self.bound - bound))])

    @classmethod
    def received(cls, row: Row) -> Normalizer:
        """The normalizer of a row, for all threads, of those that all warps have sent."""
        found = row.exchange.received([fx.Float32] * 2)
        with fx.fastmath("nnan"):
            (bound,) = row.exchange.over_warps([one[:1] for one in found], "max")
        parts = [(total * exp(one - bound),) for one, total in found]
        return cls(bound, *row.exchange.over_warps(parts))

    def store(self, row: Row, Y: Any, x: Line, log: bool) -> None:
        """Stores the softmax of a row, or its logarithm."""
        if log:
            of_total = fx.log(self.total)
            row.write(Y, row.map(lambda x: (x - self.bound) - of_total, x), last=True)
        else:
            share = reciprocal(self.total)
            powers = row.map(lambda x: exp(x - self.bound), x)
            row.finish(Y, lambda power: power * share, powers, last=True)


def _greatest(row: Row, bound: Any) -> Any:
    """The greatest of all threads' bounds, none of which is NaN."""
    with fx.fastmath("nnan"):
        return row.reduce(bound, "max")


@fly.kernel
def softmax_kernel(X: fx.Tensor, Y: fx.Tensor, log: fx.Constexpr[bool], plan: fx.Constexpr[Plan]):
    def one_row(row, _):
        x = row.read(X, float("-inf"))
        normalizer = Normalizer.of_row(row, x)
        normalizer.store(row, Y, x, log)

    def send(row):
        row.fold(Normalizer.of, Normalizer.merge, row.read(X, float("-inf"))).send(row)

    def sent_row(row, _):
        Normalizer.received(row).store(row, Y, row.read(X, float("-inf")), log)

    if goes_in_two(plan):
        each_row_in_two(plan, X.shape, send, sent_row, X)
    else:
        each_row(plan, X.shape, one_row, X)


@fly.kernel
def softmax_backward_kernel(
    dY: fx.Tensor,
    Y: fx.Tensor,
    dX: fx.Tensor,
    log: fx.Constexpr[bool],
    plan: fx.Constexpr[Plan],
):
    def one_row(row, _):
        dy, y = row.read(dY), row.read(Y)
        if log:
            total = row.sum(dy)
            row.write(dX, row.map(lambda dy, y: dy - exp(y) * total, dy, y), last=True)
        else:
            with fx.fastmath("contract"):
                total = row.sum(row.map(lambda dy, y: dy * y, dy, y))
            rest = row.map(lambda dy: dy - total, dy)
            row.finish(dX, lambda rest, y: rest * y, rest, row.map(lambda y: y, y), last=True)

    each_row(plan, Y.shape, one_row, dY, Y)


@fly.jit
def softmax_rows(X: Matrix, log: fx.Constexpr[bool], plan: fx.Constexpr[Plan]):
    Y = fx.empty(X.shape, X.dtype)
    softmax_kernel(X, Y, log, plan).launch(
        grid=grid_of(plan, X.shape[0]),
        block=plan.threads,
        cluster=plan.cluster,
        attributes=plan.attributes,
    )
    return Y


@fly.jit
def softmax_backward_rows(dY: Matrix, Y: Matrix, log: fx.Constexpr[bool], plan: fx.Constexpr[Plan]):
    dX = fx.empty(Y.shape, Y.dtype)
    softmax_backward_kernel(dY, Y, dX, log, plan).launch(
        grid=grid_of(plan, Y.shape[0]),
        block=plan.threads,
        cluster=plan.cluster,
        attributes=plan.attributes,
    )
    return dX


def _forward(x: Any, dim: int, log: bool) -> Any:
    check_types(FLOATS, x=x)
    return along(dim, lambda x: softmax_rows(x, log, plan(x, kernel="softmax")), x)


def _backward(gradient: Any, y: Any, dim: int, log: bool) -> Any:
    check_types(FLOATS, gradient=gradient, y=y)
    return along(
        dim,
        lambda gradient, y: softmax_backward_rows(
            gradient, y, log, plan(gradient, y, kernel="softmax_backward")
        ),
        gradient,
        y,
    )


def _like_second(first: Any, second: Any, dim: int = -1) -> Any:
    return second.new_empty(second.shape)


@operator("(Tensor x, int dim=-1) -> Tensor", fake=like)
def softmax(x: Any, dim: int = -1) -> Any:
    """exp(x) / sum(exp(x)) along a dimension.

    x: of f16, bf16, f32 or f64, of one or more dimensions. Returns an array of the same type and
    shape. Sums are in f32, of f64 in f64. Slices with NaN or +inf, and those of nothing but -inf,
    become NaN, as in torch.softmax.
    """
    return _forward(x, dim, log=False)


@operator("(Tensor x, int dim=-1) -> Tensor", fake=like)
def log_softmax(x: Any, dim: int = -1) -> Any:
    """The logarithm of softmax(x, dim), which is more accurate than fx.log of it. As `softmax`."""
    return _forward(x, dim, log=True)


@operator("(Tensor gradient, Tensor y, int dim=-1) -> Tensor", fake=_like_second)
def softmax_backward(gradient: Any, y: Any, dim: int = -1) -> Any:
    """y · (gradient - sum(gradient · y)): the gradient of x, from those of y = softmax(x, dim).
    Both are of one type and shape, as is the result."""
    return _backward(gradient, y, dim, log=False)


@operator("(Tensor gradient, Tensor y, int dim=-1) -> Tensor", fake=_like_second)
def log_softmax_backward(gradient: Any, y: Any, dim: int = -1) -> Any:
    """gradient - exp(y) · sum(gradient): the gradient of x, from those of y = log_softmax(x,
    dim). Both are of one type and shape, as is the result."""
    return _backward(gradient, y, dim, log=True)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(output)
    ctx.dim = inputs[1]


@softmax.gradient(_save)
def _(ctx: Any, gradient: Any) -> Any:
    return softmax_backward(gradient, *ctx.saved_tensors, ctx.dim), None


@log_softmax.gradient(_save)
def _(ctx: Any, gradient: Any) -> Any:
    return log_softmax_backward(gradient, *ctx.saved_tensors, ctx.dim), None
