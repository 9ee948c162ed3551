"""Numbers from one element type to another: `fx.Float32(x)`, `x.to(…)`, `fx.bitcast`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_trace import tracing
from fly_trace.dtypes import DType, PromotionError, check_fits, default, rounded
from fly_trace.tracing import describe
from fly_trace.values import Number, Scalar

if TYPE_CHECKING:
    from fly_trace.builder import Builder


def checked(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except PromotionError as error:
        tracing.refuse(str(error))


def scalar(value: Any, what: str) -> Scalar:
    """A Scalar of a value that must be a number; a Python number takes its default type."""
    if isinstance(value, Scalar):
        return value
    if isinstance(value, (bool, int, float)):
        return Scalar(checked(default, value), number=value)
    return tracing.refuse(f"{what} must be a number, not {describe(value)}")


def convert(value: Any, dtype: DType) -> Scalar:
    """A number as a `dtype`: Python's and NumPy's casts. Integers wrap, floats round to nearest
    even, a float becomes an integer by dropping its fraction (out of range: undefined), anything
    becomes a bool by being compared with zero."""
    if not isinstance(value, Scalar):
        if not isinstance(value, (bool, int, float)):
            tracing.refuse(f"fx.{dtype.title} takes a number, not {describe(value)}")
        return Scalar(dtype, number=_number(value, dtype))
    if value.dtype is dtype:
        return value
    if value.number is not None:
        return Scalar(dtype, number=_number(value.number, dtype, wraps=True))
    builder = tracing.current(f"fx.{dtype.title}(…)")
    x, source = value.value, value.dtype
    if dtype.is_bool:
        zero = builder.constant(0, source)
        name, predicate = ("arith.cmpf", 13) if source.is_float else ("arith.cmpi", 1)
        number = builder.integer(predicate, "i64")
        return Scalar(dtype, builder.one(name, "i1", x, zero, predicate=number))
    if source.is_float and dtype.is_float:
        return Scalar(dtype, _resize_float(builder, x, source, dtype))
    if source.is_float:
        name = "arith.fptosi" if dtype.is_signed else "arith.fptoui"
        return Scalar(dtype, builder.one(name, dtype.ir, x))
    if dtype.is_float:
        name = "arith.sitofp" if source.kind == "int" else "arith.uitofp"
        return Scalar(dtype, builder.one(name, dtype.ir, x))
    if dtype.bits == source.bits:
        return Scalar(dtype, x)
    if dtype.bits < source.bits:
        return Scalar(dtype, builder.one("arith.trunci", dtype.ir, x))
    name = "arith.extsi" if source.kind == "int" else "arith.extui"
    return Scalar(dtype, builder.one(name, dtype.ir, x))


def _resize_float(builder: Builder, x: Any, source: DType, dtype: DType) -> Any:
    if dtype.bits > source.bits:
        return builder.one("arith.extf", dtype.ir, x)
    if dtype.bits < source.bits:
        return builder.one("arith.truncf", dtype.ir, x)
    # f16 and bf16 hold different values: by way of f32, which holds both.
    return builder.one("arith.truncf", dtype.ir, builder.one("arith.extf", "f32", x))


def _number(number: Number, dtype: DType, wraps: bool = False) -> Number:
    """A Python number as `dtype` holds it. It must fit, unless it is a typed constant's."""
    if dtype.is_bool:
        return bool(number)
    if dtype.is_float:
        if not wraps:
            checked(check_fits, number, dtype)
        return rounded(float(number), dtype)
    if isinstance(number, float):
        if number != number or abs(number) == float("inf"):
            tracing.refuse(f"{number} has no integer value")
        number = int(number)
    if wraps:
        low, high = dtype.range
        return (number - low) % (high - low + 1) + low
    checked(check_fits, int(number), dtype)
    return int(number)


def bitcast(value: Any, dtype: DType) -> Scalar:
    """The same bits as a `dtype`."""
    value = scalar(value, "what fx.bitcast takes")
    if value.dtype.bits != dtype.bits:
        tracing.refuse(
            f"{value.dtype.name} and {dtype.name} differ in width; a bitcast keeps the bits"
        )
    builder = tracing.kernel("a bitcast")
    if value.dtype.ir == dtype.ir:
        return Scalar(dtype, builder.ssa(value))
    return Scalar(dtype, builder.one("arith.bitcast", dtype.ir, builder.ssa(value)))
