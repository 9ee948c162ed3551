"""Functions of integers: fx.ctpop, fx.ctlz, fx.cttz, fx.absi, fx.ipowi."""

from __future__ import annotations

from typing import Any

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values.arithmetic import common
from fly_trace.values.conversion import checked, convert, scalar
from fly_trace.values.functions.math_functions import power
from fly_trace.values.promotion import check_computes
from fly_trace.values.scalars import Scalar


def _integer(name: str, x: Any) -> Scalar:
    value = scalar(x, f"the argument of fx.{name}")
    if not value.dtype.is_integer:
        tracing.refuse(f"fx.{name} takes an integer, not {describe(x)}")
    checked(check_computes, value.dtype)
    return value


def _counted(name: str, x: Any) -> Scalar:
    builder = tracing.kernel(f"fx.{name}")
    value = _integer(name, x)
    return Scalar(value.dtype, builder.one(f"math.{name}", value.dtype.ir, builder.ssa(value)))


def ctpop(x: Any) -> Scalar:
    """The number of bits that are 1."""
    return _counted("ctpop", x)


def ctlz(x: Any) -> Scalar:
    """The number of leading zero bits; the width for 0."""
    return _counted("ctlz", x)


def cttz(x: Any) -> Scalar:
    """The number of trailing zero bits; the width for 0."""
    return _counted("cttz", x)


def absi(x: Any) -> Any:
    """The absolute value of an integer. The least integer is unchanged, as in two's complement."""
    return abs(_integer("absi", x))


def ipowi(base: Any, exp: Any) -> Scalar:
    """An integer to an integer power, with its width. A negative power gives 0, except for the
    bases 1 and -1; 0 to a negative power is undefined."""
    x, n = _integer("ipowi", base), _integer("ipowi", exp)
    dtype = common(base, exp)
    if isinstance(exp, int) and exp >= 0:
        return power(x, exp)
    if not dtype.is_signed:
        tracing.refuse(
            f"fx.ipowi takes signed integers, not {describe(base)} and {describe(exp)}",
            "convert them, as in fx.Int32(x)",
        )
    builder = tracing.kernel("fx.ipowi")
    operands = [builder.ssa(convert(operand, dtype)) for operand in (x, n)]
    return Scalar(dtype, builder.one("math.ipowi", dtype.ir, *operands))
