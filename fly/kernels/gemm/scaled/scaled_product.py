"""Products of matrices of 8-bit floats, of which blocks have scales: `scaled_matmul`."""

from __future__ import annotations

import math
from typing import Any

from fly_common.errors import UsageError

from fly.kernels.arrays import FLOATS, check_types, filled
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.operands import (
    as_operand,
    check_activation,
    check_operands,
    result_type,
    with_bias,
)
from fly.kernels.gemm.plans import WIDEST, plan
from fly.kernels.gemm.scaled.scaled_gemm import BLOCK, scaled_gemm
from fly.kernels.gemm.scaled.scaled_warpgroup_gemm import scaled_warpgroup_gemm
from fly.kernels.gemm.warpgroups.warpgroup_choices import RESULTS, multiplies, readable, scaled_plan
from fly.kernels.operators import operator
from fly.kernels.quantization import FORMATS

EIGHT_BITS = tuple(name for name in FORMATS if name != "int8")
KNOWN = "out_dtype=float32, float16 or bfloat16"


def _fake(a: Any, b: Any, *_: Any, out_dtype: Any = None, **__: Any) -> Any:
    import torch

    dtype = getattr(torch, result_type(a, out_dtype).long_name)
    return a.new_empty((*a.shape[:-1], b.shape[-1]), dtype=dtype)


@operator(
    "(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, Tensor? bias=None, *,"
    " str? activation=None, ScalarType? out_dtype=None) -> Tensor",
    fake=_fake,
)
def scaled_matmul(
    a: Any,
    b: Any,
    scale_a: Any,
    scale_b: Any,
    bias: Any = None,
    *,
    activation: str | None = None,
    out_dtype: Any = None,
) -> Any:
    """activation(A·B + bias), where A is a with each 128 elements of a row times their scale, and B
    is b with each block of 128 × 128 times its scale.

    a: … × M × K. b: K × N, of the same type, an 8-bit float that the target multiplies. scale_a: …
    × M × ⌈K / 128⌉ and scale_b: ⌈K / 128⌉ × ⌈N / 128⌉, of f32. All in any order in memory: the
    transposes of an N × K weight and of its scales are not copied. bias: N. activation: as of
    `matmul`. out_dtype: the result's element type, of NumPy or torch: f32 by default, f16 or bf16.

    Products of a block of K are added as the instruction adds them, and multiplied by both scales
    and added to the others in f32. Returns a contiguous array of … × M × N. No gradient. UsageError
    for shapes that do not fit, and for types that the target can't multiply.
    """
    check_types(EIGHT_BITS, a=a)
    check_types(("float32",), scale_a=scale_a, scale_b=scale_b)
    check_types(FLOATS, bias=bias)
    check_activation(activation)
    out = result_type(a, out_dtype)
    if out.name not in RESULTS:
        raise UsageError(f"results can't be of {out.long_name}", hint=f"give {KNOWN}")
    if a.ndim < 2 or b.ndim != 2:
        raise UsageError(f"a and b have {a.ndim} and {b.ndim} dimensions, and must have 2")
    check_operands(a, b)
    n, shape = b.shape[1], tuple(a.shape[:-1])
    blocks, columns = -(-b.shape[0] // BLOCK), -(-n // BLOCK)
    for name, scale, wanted in (
        ("scale_a", scale_a, (*shape, blocks)),
        ("scale_b", scale_b, (blocks, columns)),
        ("bias", bias, (n,)),
    ):
        if scale is not None and tuple(scale.shape) != wanted:
            raise UsageError(f"{name} has shape {tuple(scale.shape)}, and must have {wanted}")
    epilogue = Epilogue(
        out.name,
        math.gcd(WIDEST, n),
        activation=activation or "",
    )
    if b.shape[0] == 0:  # no scales, and sums of nothing
        a, b = filled(a, (*shape, 1), 0.0), filled(b, (1, n), 0.0)
        scale_a, scale_b = (filled(scale_a, (*one, 1), 0.0) for one in (shape, (1,)))
    m = math.prod(shape)
    left, scale_a = (x.reshape(1, m, x.shape[-1]) for x in (a, scale_a))
    bias, epilogue = with_bias(epilogue, bias)
    left, right = as_operand(left), as_operand(b[None])
    given = scale_a, scale_b[None], scale_a if bias is None else bias
    if multiplies(left, right, epilogue, tf32=False):
        left, right = readable(left, 2), readable(right, 1)
        made = scaled_warpgroup_gemm(
            left, right, *given, scaled_plan(left, right, epilogue), epilogue
        )
    else:
        made = scaled_gemm(left, right, *given, plan(left, right, 1), epilogue)
    return made.reshape(*shape, n)
