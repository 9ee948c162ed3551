"""Conversion between element types: `fx.Float32(x)`, `x.to(…)`, `fx.bitcast`."""

from __future__ import annotations

from typing import Any

from fly_common.quoting import quoted

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values.dtypes import DType, PromotionError, check_fits, rounded
from fly_trace.values.elementwise import Elementwise
from fly_trace.values.promotion import default
from fly_trace.values.rounding import converted, mode_of
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


def integer(value: Any, what: str, *types: DType) -> Scalar:
    """An integer operand. A number that is known must fit in one of the types; it then has the
    first one."""
    found = scalar(value, what)
    if not found.dtype.is_integer:
        tracing.refuse(f"{what} must be an integer, not {describe(value)}")
    number = found.number
    if number is None:
        return found
    for dtype in types:
        low, high = dtype.range
        if low <= number <= high:
            return convert(found, types[0])
    low, high = types[-1].range
    tracing.refuse(f"{what}: {quoted(number)} doesn't fit in {types[-1].name} ({low} to {high})")


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
    made = Elementwise(builder).convert(builder.ssa(value), value.dtype, dtype)
    return Scalar(dtype, made)


def to(
    value: Scalar,
    dtype: DType,
    *,
    rounding: str | None = None,
    saturate: bool = False,
    rounding_mode: str | None = None,
) -> Scalar:
    """`x.to(dtype)`. `rounding` is to_nearest_even, toward_zero, downward or upward (FlyDSL's name
    is `rounding_mode`). With `saturate`, a number beyond the type's range becomes its greatest or
    least one, and NaN the integer 0."""
    mode = mode_of(rounding if rounding_mode is None else rounding_mode)
    if mode is None and not saturate:
        return convert(value, dtype)
    builder = tracing.kernel("a conversion with rounding or saturation")
    ops = Elementwise(builder)
    return Scalar(dtype, converted(ops, builder.ssa(value), value.dtype, dtype, mode, saturate))


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
