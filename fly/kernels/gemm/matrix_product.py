"""Matrix products of arrays: shapes as in torch.matmul, types, and the gradient."""

from __future__ import annotations

import math
from typing import Any

from fly_common.errors import UsageError

from fly.kernels.arrays import broadcast, contiguous, strides
from fly.kernels.gemm.batched_gemm import gemm
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.operands import (
    as_matrices,
    as_operand,
    before,
    check_activation,
    check_added,
    check_bias,
    check_operands,
    leading_shape,
    result_type,
    wide,
    with_bias,
)
from fly.kernels.gemm.plans import WIDEST, access, plan
from fly.kernels.gemm.warpgroups.warpgroup_choices import (
    multiplies,
    readable,
    warpgroup_plan,
    with_adjacent,
)
from fly.kernels.gemm.warpgroups.warpgroup_gemm import warpgroup_gemm
from fly.kernels.gemm.warps.warp_gemm import warp_gemm
from fly.kernels.gemm.warps.warp_plans import warp_multiplies, warp_plan
from fly.kernels.operators import operator, wanted


def _fake(a: Any, b: Any, *_: Any, out_dtype: Any = None, **__: Any) -> Any:
    import torch

    shape = torch.matmul(*[x.new_empty(x.shape, dtype=torch.float32) for x in (a, b)]).shape
    return a.new_empty(shape, dtype=getattr(torch, result_type(a, out_dtype).long_name))


@operator(
    "(Tensor a, Tensor b, Tensor? bias=None, Tensor? c=None, *, str? activation=None,"
    " float alpha=1.0, float beta=1.0, ScalarType? out_dtype=None, int? split_k=None,"
    " bool tf32=False) -> Tensor",
    fake=_fake,
)
def matmul(
    a: Any,
    b: Any,
    bias: Any = None,
    c: Any = None,
    *,
    activation: str | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    out_dtype: Any = None,
    split_k: int | None = None,
    tf32: bool = False,
) -> Any:
    """activation(alpha · a·b + beta · c + bias).

    a: … × M × K. b: … × K × N, of the same type, in any order in memory: the transpose of an N × K
    weight is not copied. Dimensions before the last two are broadcast, and an array of one
    dimension is a row or a column, as in torch.matmul. Types are f16, bf16, f32, f64, i8 and the
    target's 8-bit floats; sums are in f32, of f64 in f64, of i8 in i32.

    bias: N. c: broadcast to the result. activation: "relu", "gelu" (by erf) or "silu". out_dtype:
    the result's element type; by default that of a, i32 for i8, and f32 for 8-bit floats. split_k:
    how many blocks share a sum, chosen if None. tf32: whether f32 may be rounded to 10 bits of
    fraction before it is multiplied, where an instruction does so.

    Returns a contiguous array of … × M × N. The order of additions depends on nothing but shapes,
    strides and target. UsageError for shapes that do not fit, and for types that the target can't
    multiply.
    """
    check_operands(a, b)
    check_activation(activation)
    if split_k is not None and split_k < 1:
        raise UsageError(f"split_k is {split_k}, and must be positive")
    left, right = as_matrices(a, b)
    m, n = left.shape[-2], right.shape[-1]
    leading = leading_shape(left.shape[:-2], right.shape[:-2])
    shape = (*leading, *((m,) if a.ndim > 1 else ()), *((n,) if b.ndim > 1 else ()))
    count = math.prod(leading)
    if right.ndim == 2:  # all rows of a are those of one matrix
        count, m, right = 1, count * m, right[None]
        left = left.reshape(1, m, left.shape[-1])
    else:
        left, right = [
            broadcast(x, (*leading, *x.shape[-2:])).reshape(count, *x.shape[-2:])
            for x in (left, right)
        ]
    if c is not None:
        c = broadcast(c, shape).reshape(count, m, n)
    out = result_type(a, out_dtype).name
    made = product(left, right, bias, c, activation, alpha, beta, out, split_k, tf32)
    return made.reshape(shape)


def product(
    a: Any,
    b: Any,
    bias: Any = None,
    c: Any = None,
    activation: str | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    out: str = "f32",
    split_k: int | None = None,
    tf32: bool = False,
) -> Any:
    """As `matmul`, of arrays of three dimensions; `out` is the type of results, as in
    signatures."""
    n = b.shape[2]
    check_added(c=c)
    check_bias(bias, n, "b has")
    epilogue = Epilogue(
        out=out,
        vector=math.gcd(WIDEST, n),
        addend=c is not None,
        scaled=alpha != 1.0,
        activation=activation or "",
    )
    bias, epilogue = with_bias(epilogue, bias)
    if epilogue.out == "i32" and epilogue != Epilogue("i32", epilogue.vector):
        raise UsageError(
            "i32 results are plain sums, without bias, c, alpha and activation",
            hint="give another type of results, such as out_dtype=torch.float32",
        )
    if c is not None:
        c = c if strides(c)[2] == 1 else contiguous(c)
        epilogue = epilogue.limited(access(c, 2))
    a, b = as_operand(a), as_operand(b)
    added = a if bias is None else bias, a if c is None else c
    if multiplies(a, b, epilogue, bool(tf32)):
        a, b = readable(a, 2), readable(b, 1)
        chosen = warpgroup_plan(a, b, epilogue, split_k)
        return warpgroup_gemm(a, b, *added, alpha, beta, chosen, epilogue)
    if warp_multiplies(a, b, epilogue):
        a, b = with_adjacent(a, 2), with_adjacent(b, 1)
        return warp_gemm(a, b, *added, alpha, beta, warp_plan(a, b, epilogue, split_k), epilogue)
    return gemm(a, b, *added, alpha, beta, plan(a, b, split_k), epilogue)


def _save(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)
    ctx.options = keyword_only_inputs


@matmul.gradient(_save)
def _(ctx: Any, gradient: Any) -> Any:
    """Computes what is asked for alone: weights that are frozen cost no product."""
    a, b, bias, c = ctx.saved_tensors
    for_a, for_b, for_bias, for_c = wanted(ctx, 4)
    options = dict(ctx.options, split_k=None)
    if (activation := options.pop("activation")) is not None:
        # What the activation takes is not rounded to the type of results.
        sums = matmul(a, b, bias, c, **dict(options, out_dtype=wide(a)))
        gradient = before(activation, gradient, sums)
    of_a = of_b = of_bias = of_c = None
    if for_bias:
        rows = gradient.reshape(gradient.numel() // max(1, *bias.shape), *bias.shape)
        of_bias = rows.sum(0, dtype=wide(a)).to(bias.dtype)
    if for_c:
        of_c = (gradient.to(wide(a)) * options["beta"]).sum_to_size(c.shape).to(c.dtype)
    gradient = gradient.to(a.dtype)
    gradient = gradient.unsqueeze(-1) if b.ndim == 1 else gradient
    gradient = gradient.unsqueeze(-2) if a.ndim == 1 else gradient
    left, right = as_matrices(a, b)
    scaled = {name: options[name] for name in ("alpha", "tf32")}
    if for_a:
        of_a = matmul(gradient, right.mT, **scaled).sum_to_size(left.shape).reshape(a.shape)
    if for_b:
        if right.ndim == 2:  # the rows of a are those of one matrix
            left, gradient = left.flatten(0, -2), gradient.flatten(0, -2)
        of_b = matmul(left.mT, gradient, **scaled).sum_to_size(right.shape).reshape(b.shape)
    return of_a, of_b, of_bias, of_c
