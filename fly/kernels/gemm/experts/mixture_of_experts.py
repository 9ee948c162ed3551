"""A mixture of experts: each token goes through the networks of k experts.

The rows of tokens are gathered in the order of experts, multiplied group by group, and the results
of a token are added up in the order of its experts, so that sums are the same in each run.
"""

from __future__ import annotations

from typing import Any

from fly_common.errors import UsageError

import fly
import fly.expr as fx
from fly.kernels.arrays import FLOATS, as_matrix, check_types, contiguous
from fly.kernels.gemm.experts.expert_routing import moe_route
from fly.kernels.gemm.experts.expert_sorting import moe_sort
from fly.kernels.gemm.grouped_gemm import grouped_matmul
from fly.kernels.gemm.matrix_product import matmul
from fly.kernels.mixed_precision import in_order
from fly.kernels.operators import operator
from fly.kernels.rowwise.row_plans import Plan, plan
from fly.kernels.rowwise.rows import Row
from fly.kernels.shapes import for_model

Rows = fx.Tensor[fx.Float, "R", fx.sym_int32("D")]
Places = fx.Tensor[fx.Int32, "n"]
Shares = fx.Tensor[fx.Float32, "n"]


@fly.kernel
def gather_kernel(
    X: fx.Tensor, order: fx.Tensor, Y: fx.Tensor, k: fx.Constexpr[int], plan: fx.Constexpr[Plan]
):
    columns = X.shape[1]
    token = Row(plan, columns, order[fx.block_idx.x] // k)
    Row(plan, columns).write(Y, token.read(X))


@fly.kernel
def combine_kernel(
    X: fx.Tensor,
    places: fx.Tensor,
    weights: fx.Tensor,
    Y: fx.Tensor,
    k: fx.Constexpr[int],
    plan: fx.Constexpr[Plan],
):
    token, columns = fx.block_idx.x, X.shape[1]
    # On AMD, numbers that all lanes have are read in this order, which takes the fewest registers.
    shares = [weights[token * k + i] for i in range(k)]
    in_order()
    # Places are not negative, which makes addresses cheaper.
    rows = [places[token * k + i].to(fx.Uint32) for i in range(k)]
    in_order()
    parts = [Row(plan, columns, place).read(X) for place in rows]
    in_order()
    row = Row(plan, columns)

    def total(*x):
        found = 0.0
        for one, share in zip(x, shares, strict=True):
            found = fx.fma(one, share, found)
        return found

    row.finish(Y, total, *parts)


@fly.jit
def gather(X: Rows, order: Places, k: fx.Constexpr[int], plan: fx.Constexpr[Plan]):
    Y = fx.empty((order.shape[0], X.shape[1]), X.dtype)
    gather_kernel(X, order, Y, k, plan).launch(grid=order.shape[0], block=plan.threads)
    return Y


@fly.jit(specialize=for_model("D"))
def combine(
    X: Rows,
    places: Places,
    weights: Shares,
    k: fx.Constexpr[int],
    plan: fx.Constexpr[Plan],
):
    tokens = weights.shape[0] // k
    Y = fx.empty((tokens, X.shape[1]), X.dtype)
    combine_kernel(X, places, weights, Y, k, plan).launch(grid=tokens, block=plan.threads)
    return Y


def _fake_gather(x: Any, order: Any, places: Any, k: int) -> Any:
    return x.new_empty((order.shape[0], x.shape[1]))


@operator("(Tensor x, Tensor order, Tensor places, int k) -> Tensor", fake=_fake_gather)
def moe_gather(x: Any, order: Any, places: Any, k: int) -> Any:
    """The rows of tokens in the order of experts: row i is that of token order[i] // k.

    x: tokens × D, of f16, bf16, f32 or f64. order, places: as `moe_sort` returns them for tokens ·
    k choices; their elements are not checked, as they are the device's. Returns (tokens · k) × D.
    UsageError for other shapes and types.
    """
    _check(x, 1, order, places, (x.shape[0] if x.ndim else 0, k))
    x = as_matrix(x)
    return gather(x, order, k, plan(x))


def _fake_combine(x: Any, order: Any, places: Any, weights: Any) -> Any:
    return x.new_empty((weights.shape[0], x.shape[1]))


@operator("(Tensor x, Tensor order, Tensor places, Tensor weights) -> Tensor", fake=_fake_combine)
def moe_combine(x: Any, order: Any, places: Any, weights: Any) -> Any:
    """The sum of each token's rows, times their weights, in f32.

    x: (tokens · k) × D, in the order of experts, of f16, bf16, f32 or f64. weights: tokens × k of
    f32. order, places: as `moe_sort` returns them, not checked. Returns tokens × D of x's type.
    UsageError for other shapes and types.
    """
    check_types(("float32",), weights=weights)
    if weights.ndim != 2:
        raise UsageError(f"weights are tokens × k, not {tuple(weights.shape)}")
    _check(x, weights.shape[1], order, places, tuple(weights.shape))
    x = as_matrix(x)
    return combine(x, places, contiguous(weights).reshape(-1), weights.shape[1], plan(x))


def _check(x: Any, chosen: int, order: Any, places: Any, choices: tuple[int, int]) -> None:
    """UsageError for other types and shapes than those of `chosen` rows of x for each of tokens,
    and `choices`, tokens × k."""
    check_types(FLOATS, x=x)
    check_types(("int32",), order=order, places=places)
    tokens, k = choices
    if k < 1:
        raise UsageError(f"k is {k}, less than 1")
    if x.ndim != 2:
        raise UsageError(f"x has {x.ndim} dimensions, not 2")
    shapes = [tuple(one.shape) for one in (x, order, places)]
    if shapes != [(tokens * chosen, x.shape[1]), (tokens * k,), (tokens * k,)]:
        raise UsageError(
            f"the shapes of x, order and places do not fit {tokens} tokens and k = {k}: "
            + ", ".join(map(str, shapes))
        )


def _save_gather(ctx: Any, inputs: Any, output: Any) -> None:
    x, order, places, ctx.k = inputs
    ctx.save_for_backward(order, places)
    ctx.tokens = x.shape[0]


@moe_gather.gradient(_save_gather)
def _(ctx: Any, gradient: Any) -> Any:
    import torch

    order, places = ctx.saved_tensors
    ones = gradient.new_ones((ctx.tokens, ctx.k), dtype=torch.float32)
    return moe_combine(gradient, order, places, ones), None, None, None


def _save_combine(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


@moe_combine.gradient(_save_combine)
def _(ctx: Any, gradient: Any) -> Any:
    x, order, places, weights = ctx.saved_tensors
    spread = moe_gather(gradient, order, places, weights.shape[1])
    of_x = spread * weights.flatten()[order][:, None]
    of_weights = (spread.float() * x.float()).sum(1)[places].reshape(weights.shape)
    return of_x.to(x.dtype), None, None, of_weights


def moe(x: Any, gate: Any, w1: Any, w2: Any, k: int, activation: str = "silu") -> Any:
    """The sum over a token's k experts e of weight_e · activation(x · w1_e) · w2_e.

    x: tokens × D. gate: D × E; x · gate are the logits that `moe_route` chooses by. w1: E × D × H.
    w2: E × H × D. All are of one type, and so is the result, tokens × D. UsageError as of
    `moe_route` and `grouped_matmul`.
    """
    if x.ndim != 2:
        raise UsageError(f"x is tokens × D, and has {x.ndim} dimensions")
    weights, experts = moe_route(matmul(x, gate), k)
    order, places, offsets = moe_sort(experts, gate.shape[1])
    hidden = grouped_matmul(moe_gather(x, order, places, k), w1, offsets, activation=activation)
    return moe_combine(grouped_matmul(hidden, w2, offsets), order, places, weights)
