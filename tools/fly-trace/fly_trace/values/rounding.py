"""Conversions that round in a given direction, or saturate: `x.to(dtype, rounding=…, saturate=…)`.

LLVM's conversions round to nearest even, or truncate to an integer. The other directions follow
from the nearest number: if it is on the wrong side of the operand, the next one is on the right
side, and its encoding is one more or one less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_common.quoting import quoted
from fly_numerics.small_floats import FORMATS, SmallFloat

from fly_trace.core import tracing
from fly_trace.values import comparison
from fly_trace.values.dtypes import BOOL, F32, I16, I32, I64, DType, greatest
from fly_trace.values.elementwise import Elementwise

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

__all__ = ["RoundingMode"]


class RoundingMode:
    """The values of `rounding`."""

    to_nearest_even = "to_nearest_even"
    toward_zero = "toward_zero"
    downward = "downward"
    upward = "upward"


# The op that makes a float an integer before its conversion to an integer type, which truncates.
_TO_INTEGER = {
    RoundingMode.to_nearest_even: "math.roundeven",
    RoundingMode.toward_zero: None,
    RoundingMode.downward: "math.floor",
    RoundingMode.upward: "math.ceil",
}
_ENCODINGS = {16: I16, 32: I32, 64: I64}


def mode_of(rounding: Any) -> str | None:
    """The rounding mode that a user gives. None for the conversion's own."""
    if rounding is None or rounding in _TO_INTEGER:
        return rounding
    if rounding == "stochastic":
        tracing.refuse(
            "a conversion can't round stochastically: not all targets have an instruction for it",
            "add random bits below the last bit that is kept, and round toward_zero",
        )
    tracing.refuse(f"rounding takes {', '.join(_TO_INTEGER)}, not {quoted(rounding)}")


def converted(
    ops: Elementwise,
    x: ir.Value,
    source: DType,
    dtype: DType,
    rounding: str | None,
    saturate: bool,
) -> ir.Value:
    """x, of type `source`, as a `dtype`. With `saturate`, what is beyond the greatest or the least
    number of `dtype` becomes that number, and NaN becomes the integer 0."""
    if source.is_narrow and source.is_float:
        x, source = ops.convert(x, source, F32), F32
    if source.is_bool or dtype.is_bool or source is dtype:
        return ops.convert(x, source, dtype)
    if not dtype.is_float:
        if source.is_float:
            return _integer_of_float(ops, x, source, dtype, rounding, saturate)
        if saturate:
            x = _limited(ops, x, source, *_common_range(source, dtype))
        return ops.convert(x, source, dtype)
    if dtype.is_narrow:
        return _narrow(ops, x, source, dtype, rounding, saturate)
    found = ops.convert(x, source, dtype)
    if rounding not in (None, RoundingMode.to_nearest_even):
        found = _directed(ops, x, source, found, dtype, rounding)
    return _limited(ops, found, dtype, -greatest(dtype), greatest(dtype)) if saturate else found


def _integer_of_float(
    ops: Elementwise,
    x: ir.Value,
    source: DType,
    dtype: DType,
    rounding: str | None,
    saturate: bool,
) -> ir.Value:
    if source.bits < 32:
        x, source = ops.convert(x, source, F32), F32
    if rounding is not None and (name := _TO_INTEGER[rounding]):
        x = ops.op(name, source, x)
    found = ops.convert(x, source, dtype)
    if not saturate:
        return found
    # A conversion that is out of range is poison, which a selection of the other value drops.
    low, high = dtype.range
    bounds = ("le", float(low), low), ("ge", float(high + 1), high)
    for operation, bound, limit in bounds:
        if abs(bound) > greatest(source):
            bound = float("inf") if bound > 0 else float("-inf")
        beyond = ops.test(operation, x, ops.constant(bound, source), source)
        found = ops.select(beyond, ops.constant(limit, dtype), found, dtype)
    is_nan = ops.test("ne", x, x, source)
    return ops.select(is_nan, ops.constant(0, dtype), found, dtype)


def _narrow(
    ops: Elementwise,
    x: ir.Value,
    source: DType,
    dtype: DType,
    rounding: str | None,
    saturate: bool,
) -> ir.Value:
    """A float of 8 bits or less, by the target's instructions, which round to nearest even."""
    if rounding not in (None, RoundingMode.to_nearest_even):
        tracing.refuse(
            f"a conversion to {dtype.name} rounds to nearest even only",
            "round it before, as in x.to(fx.Float16, rounding=…)",
        )
    if not saturate:
        return ops.convert(x, source, dtype)
    form = FORMATS.get(dtype.name)
    if not isinstance(form, SmallFloat):
        tracing.refuse(f"a conversion to {dtype.name} can't saturate", "limit it with fx.clampf")
    most = form.decode(form.greatest)
    x = _limited(ops, ops.convert(x, source, F32), F32, -most, most)
    return ops.convert(x, F32, dtype)


def _common_range(source: DType, dtype: DType) -> tuple[int | None, int | None]:
    """The bounds of `dtype` that a value of `source` may be beyond."""
    (low, high), (least, most) = dtype.range, source.range
    return low if low > least else None, high if high < most else None


def _limited(
    ops: Elementwise, x: ir.Value, dtype: DType, low: float | None, high: float | None
) -> ir.Value:
    """x, or the bound that it is beyond; NaN stays NaN."""
    for operation, bound in (("lt", low), ("gt", high)):
        if bound is not None:
            limit = ops.constant(bound, dtype)
            x = ops.select(ops.test(operation, x, limit, dtype), limit, x, dtype)
    return x


def _directed(
    ops: Elementwise, x: ir.Value, source: DType, nearest: ir.Value, dtype: DType, rounding: str
) -> ir.Value:
    encoding = _ENCODINGS[dtype.bits]
    bits = ops.op("arith.bitcast", encoding, nearest)
    negative = ops.test("lt", bits, ops.constant(0, encoding), encoding)
    more, less = ops.constant(1, encoding), ops.constant(-1, encoding)
    if rounding == RoundingMode.toward_zero:
        above = comparison.compare(ops, "gt", nearest, dtype, x, source)
        below = comparison.compare(ops, "lt", nearest, dtype, x, source)
        wrong, step = ops.select(negative, below, above, BOOL), less
    elif rounding == RoundingMode.upward:
        wrong = comparison.compare(ops, "lt", nearest, dtype, x, source)
        step = ops.select(negative, less, more, encoding)
    else:
        wrong = comparison.compare(ops, "gt", nearest, dtype, x, source)
        step = ops.select(negative, more, less, encoding)
    moved = ops.op("arith.bitcast", dtype, ops.op("arith.addi", encoding, bits, step))
    return ops.select(wrong, moved, nearest, dtype)
