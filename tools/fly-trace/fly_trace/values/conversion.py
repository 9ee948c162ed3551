"""Conversion between element types: `fx.Float32(x)`, `x.to(…)`, `fx.bitcast`."""

from __future__ import annotations

from typing import Any

from fly_common.quoting import quoted

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values.dtypes import F32, I32, DType, PromotionError, check_fits, default, rounded
from fly_trace.values.scalars import Number, Scalar


def checked(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except PromotionError as error:
        tracing.refuse(str(error))


def scalar(value: Any, what: str) -> Scalar:
    """Converts a number to a Scalar. A Python number gets its default type."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, (bool, int, float)):
        return Scalar(checked(default, value), number=value)
    return tracing.refuse(f"{what} must be a number, not {describe(value)}")


def convert(value: Any, dtype: DType) -> Scalar:
    """Converts a number to `dtype`, as Python and NumPy do. Integers wrap, floats round to nearest
    even, a float is truncated to an integer (out of range: undefined), and a bool is the comparison
    with zero."""
    if not isinstance(value, Scalar):
        if not isinstance(value, (bool, int, float)):
            tracing.refuse(f"fx.{dtype.title} takes a number, not {describe(value)}")
        return Scalar(dtype, number=_number(value, dtype))
    if value.dtype is dtype:
        return value
    if value.number is not None:
        return Scalar(dtype, number=_number(value.number, dtype, wraps=True))
    builder = tracing.current(f"fx.{dtype.title}(…)")
    if dtype.is_bool and value.dtype.is_narrow:
        value = convert(value, F32 if value.dtype.is_float else I32)
    x, source = builder.ssa(value), value.dtype
    if dtype.is_bool:
        zero = builder.constant(0, source)
        name, predicate = ("arith.cmpf", 13) if source.is_float else ("arith.cmpi", 1)
        number = builder.integer(predicate, "i64")
        return Scalar(dtype, builder.one(name, "i1", x, zero, predicate=number))
    for name, kind in steps(source, dtype):
        x = builder.one(name, kind, x)
    return Scalar(dtype, x)


def steps(source: DType, dtype: DType) -> list[tuple[str, str]]:
    """The ops that convert from `source` to `dtype`, which is not a bool, each with its result
    type. Narrow floats are only converted to and from f32, like the hardware's instructions."""
    if source.is_narrow and source.is_float:
        rest = [] if dtype is F32 else steps(F32, dtype)
        return [("arith.extf", "f32"), *rest]
    if dtype.is_narrow and dtype.is_float:
        first = [] if source is F32 else steps(source, F32)
        return [*first, ("arith.truncf", dtype.ir)]
    if source.is_float and dtype.is_float:
        if dtype.bits > source.bits:
            return [("arith.extf", dtype.ir)]
        if dtype.bits < source.bits:
            return [("arith.truncf", dtype.ir)]
        # f16 and bf16 have different ranges: convert through f32, which contains both.
        return [("arith.extf", "f32"), ("arith.truncf", dtype.ir)]
    if source.is_float:
        return [("arith.fptosi" if dtype.is_signed else "arith.fptoui", dtype.ir)]
    if dtype.is_float:
        return [("arith.sitofp" if source.kind == "int" else "arith.uitofp", dtype.ir)]
    if dtype.bits == source.bits:
        return []
    if dtype.bits < source.bits:
        return [("arith.trunci", dtype.ir)]
    return [("arith.extsi" if source.kind == "int" else "arith.extui", dtype.ir)]


def _number(number: Number, dtype: DType, wraps: bool = False) -> Number:
    """Converts a Python number to `dtype`. It must fit, unless it belongs to a typed constant."""
    if dtype.is_bool:
        return bool(number)
    if dtype.is_float:
        if not wraps:
            checked(check_fits, number, dtype)
        return rounded(float(number), dtype)
    if isinstance(number, float):
        if number != number or abs(number) == float("inf"):
            tracing.refuse(f"{quoted(number)} has no integer value")
        number = int(number)
    if wraps:
        low, high = dtype.range
        return (number - low) % (high - low + 1) + low
    checked(check_fits, int(number), dtype)
    return int(number)


def bitcast(value: Any, dtype: DType) -> Scalar:
    """The same bits as a `dtype`."""
    value = scalar(value, "the argument of fx.bitcast")
    if value.dtype.bits != dtype.bits:
        tracing.refuse(
            f"{value.dtype.name} and {dtype.name} differ in width; a bitcast needs equal widths"
        )
    builder = tracing.kernel("a bitcast")
    if value.dtype.ir == dtype.ir:
        return Scalar(dtype, builder.ssa(value))
    return Scalar(dtype, builder.one("arith.bitcast", dtype.ir, builder.ssa(value)))
