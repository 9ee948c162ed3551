"""Matrices in the order in which waves read them, and products with them."""

from __future__ import annotations

import math
from typing import Any

from fly_backend.choice import choose
from fly_common.errors import UsageError

from fly.kernels.arrays import address, contiguous, copied
from fly.kernels.gemm.epilogue import Epilogue
from fly.kernels.gemm.operands import (
    as_operand,
    check_activation,
    check_bias,
    result_type,
    with_bias,
)
from fly.kernels.gemm.plans import ROWS, WIDEST, Access, access, edge, element_type, plan_for
from fly.kernels.gemm.preshuffled.preshuffled_gemm import COLUMNS, preshuffled_gemm
from fly.kernels.operators import operator
from fly.kernels.shapes import TARGETS


def shuffled_shape(dtype: Any, k: int, n: int) -> tuple[int, int, int, int]:
    """The shape of a shuffled K × N matrix of a type of NumPy or torch: blocks of columns and of K,
    filled up to whole tiles, and in each block columns and values. It is the same on all targets,
    which a compiled graph of torch relies on."""
    wide = WIDEST * 8 // element_type(dtype).bits
    columns, depth = edge(n), ROWS[0] // WIDEST
    blocks = -(-n // columns) * columns // COLUMNS
    return blocks, max(1, -(-k // (wide * depth))) * depth, COLUMNS, wide


def _fake(b: Any) -> Any:
    return b.new_empty(shuffled_shape(b.dtype, *b.shape))


@operator("(Tensor b) -> Tensor", fake=_fake)
def preshuffle(b: Any) -> Any:
    """A matrix in the order in which waves read it, for `matmul_preshuffled`.

    b: K × N, of a type that `matmul` multiplies. Returns an array of four dimensions, with zeros
    where b ends within a tile. The order is the same for all targets.
    """
    if b.ndim != 2:
        raise UsageError(f"b is K × N, and has {b.ndim} dimensions")
    blocks, deep, rows, wide = shuffled_shape(b.dtype, *b.shape)
    padded = _zeros(b, (blocks * rows, deep * wide))
    padded[: b.shape[1], : b.shape[0]] = b.T
    return contiguous(padded.reshape(blocks, rows, deep, wide).swapaxes(1, 2))


def _zeros(like: Any, shape: tuple[int, ...]) -> Any:
    if hasattr(like, "new_zeros"):  # torch's
        return like.new_zeros(shape)
    import numpy as np

    return np.zeros(shape, like.dtype)


def _fake_product(
    a: Any, b: Any, n: int, bias: Any = None, *, activation: Any = None, out_dtype: Any = None
) -> Any:
    import torch

    dtype = getattr(torch, result_type(a, out_dtype).long_name)
    return a.new_empty((*a.shape[:-1], n), dtype=dtype)


@operator(
    "(Tensor a, Tensor b, int n, Tensor? bias=None, *, str? activation=None,"
    " ScalarType? out_dtype=None) -> Tensor",
    fake=_fake_product,
)
def matmul_preshuffled(
    a: Any,
    b: Any,
    n: int,
    bias: Any = None,
    *,
    activation: str | None = None,
    out_dtype: Any = None,
) -> Any:
    """activation(a·B + bias), of b = preshuffle(B).

    a: … × K. b: of a's type, as `preshuffle` returns it for a matrix of K × n.
    bias, activation and out_dtype: as of `matmul`. Returns … × n. UsageError for shapes that do not
    fit.
    """
    check_activation(activation)
    if a.ndim < 1:
        raise UsageError("a is … × K, and has no dimension")
    if b.dtype != a.dtype:
        raise UsageError(f"a is of {a.dtype} and b of {b.dtype}", hint="convert one of them")
    k, m = a.shape[-1], math.prod(a.shape[:-1])
    if tuple(b.shape) != (wanted := shuffled_shape(b.dtype, k, n)):
        raise UsageError(
            f"b has shape {tuple(b.shape)}, not {wanted}, as preshuffle makes it of {k} × {n}"
        )
    check_bias(bias, n, "b has")
    left = as_operand(a.reshape(1, m, k))
    out = result_type(a, out_dtype).name
    plain = Epilogue(out, math.gcd(WIDEST, n), activation=activation or "")
    bias, epilogue = with_bias(plain, bias)
    plan = plan_for(a.dtype, (1, m, k, n), access(left, 2), Access(True, 1), 1)
    # The kernel reads adjacent elements, which are `preshuffle`'s and need not be those of a view.
    b = contiguous(b)
    b = copied(b) if address(b) % WIDEST else b
    whole = n % plan.columns == 0 and choose().target in TARGETS
    made = preshuffled_gemm(left, b, n, left if bias is None else bias, plan, epilogue, whole)
    return made.reshape(*a.shape[:-1], n)
