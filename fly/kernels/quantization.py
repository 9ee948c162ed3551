"""Rounding to 8 bits, with a scale for each row."""

from __future__ import annotations

from typing import Any

from fly_backend.choice import choose, row_of
from fly_common.errors import UsageError
from fly_target.target import Target

import fly
import fly.expr as fx
from fly.kernels.approximations import reciprocal
from fly.kernels.arrays import FLOATS, as_matrix, check_types
from fly.kernels.operators import operator
from fly.kernels.rowwise.row_plans import Plan, plan
from fly.kernels.rowwise.rows import Matrix, Row

# The types of 8 bits by torch's names, and the greatest number of each.
FORMATS = {
    "int8": (fx.Int8, 127.0),
    "float8_e4m3fn": (fx.Float8E4M3FN, 448.0),
    "float8_e4m3fnuz": (fx.Float8E4M3FNUZ, 240.0),
    "float8_e5m2": (fx.Float8E5M2, 57344.0),
    "float8_e5m2fnuz": (fx.Float8E5M2FNUZ, 57344.0),
}


GREATEST = 3.4028234663852886e38  # number of f32


def format_of(dtype: str) -> Any:
    """The element type of a name. UsageError for one that is not known, or that the target does
    not convert to."""
    chip = row_of(choose())
    known = [name for name, (kind, _) in FORMATS.items() if _converts(chip, kind)]
    if dtype not in known:
        what = (
            f"{chip.name} has no conversion to {dtype}"
            if dtype in FORMATS
            else f"dtype is {dtype!r}"
        )
        raise UsageError(what, hint=f"on {chip.name}, it is one of {', '.join(known)}")
    return FORMATS[dtype][0]


def _converts(chip: Target, kind: Any) -> bool:
    return kind is fx.Int8 or kind.name in chip.narrow_floats


def quantized(row, x, dtype, scales):
    """Stores the scale of a row to `scales`, and returns the row divided by it, in a kernel: its
    greatest magnitude becomes the greatest number of `dtype`."""
    (limit,) = (most for kind, most in FORMATS.values() if kind is dtype)
    most = row.magnitude(x)
    scale = most * (1 / limit)
    if row.leads():
        scales[row.index] = scale.to(scales.dtype)
    # Finite, so that a row of zeros or of the smallest numbers stays in the range.
    inverse = fx.minnumf(limit * reciprocal(most), GREATEST)
    return row.map(lambda x: converted(x * inverse, dtype), x)


def converted(values, dtype):
    """Returns numbers rounded to the nearest of a type; as Int8 they are within its range."""
    if dtype is fx.Int8:
        return values.to(dtype, rounding="to_nearest_even")
    return values.to(dtype, saturate=True)


@fly.kernel
def quantize_kernel(X: fx.Tensor, Y: fx.Tensor, scales: fx.Tensor, plan: fx.Constexpr[Plan]):
    row = Row(plan, X.shape[1])
    row.write(Y, quantized(row, row.read(X), Y.dtype, scales))


@fly.jit
def quantize_matrix(X: Matrix, dtype: fx.Constexpr, plan: fx.Constexpr[Plan]):
    Y, scales = fx.empty(X.shape, dtype), fx.empty(X.shape[0], fx.Float32)
    quantize_kernel(X, Y, scales, plan).launch(grid=X.shape[0], block=plan.threads)
    return Y, scales


def _fake(x: Any, dtype: str) -> Any:
    import torch

    return x.new_empty(x.shape, dtype=getattr(torch, dtype)), x.new_empty(
        x.shape[:-1], dtype=torch.float32
    )


@operator("(Tensor x, str dtype) -> (Tensor, Tensor)", fake=_fake)
def quantize_rows(x: Any, dtype: str) -> Any:
    """Rounds x to 8 bits: (y, scales), where y · scales[…, None] is about x.

    x: of a floating-point type, of one or more dimensions. dtype: torch's name of a type of 8 bits.
    y: of that type and of x's shape; scales: of f32, one for each row along the last dimension, so
    that its greatest magnitude becomes the greatest number of the type. The scale of a row of zeros
    is 0. A row with NaN or an infinity has such a scale, and its y is not specified. Rounding is to
    nearest, ties to even.
    """
    check_types(FLOATS, x=x)
    matrix = as_matrix(x)
    y, scales = quantize_matrix(matrix, format_of(dtype), plan(matrix))
    return y.reshape(x.shape), scales.reshape(x.shape[:-1])
