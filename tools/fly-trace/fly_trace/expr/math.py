"""`fx.math`: functions of numbers and, elementwise, of vectors. `max`, `min` propagate NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_trace.values import conversion
from fly_trace.values.dtypes import DType
from fly_trace.values.functions import bits, math_functions
from fly_trace.values.functions.fast_math import Flags
from fly_trace.values.vector import vector_arithmetic
from fly_trace.values.vector.vector_arithmetic import over_lanes
from fly_trace.values.vector.vectors import Vector

__all__ = [
    "abs",
    "absf",
    "absi",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitcast",
    "cbrt",
    "ceil",
    "ceildiv",
    "clampf",
    "copysign",
    "cos",
    "cosh",
    "ctlz",
    "ctpop",
    "cttz",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fma",
    "fpowi",
    "ipowi",
    "isfinite",
    "isinf",
    "isnan",
    "isnormal",
    "log",
    "log1p",
    "log2",
    "log10",
    "max",
    "maximum",
    "maximumf",
    "maxnumf",
    "min",
    "minimum",
    "minimumf",
    "minnumf",
    "pow",
    "powf",
    "round",
    "roundeven",
    "rsqrt",
    "sin",
    "sincos",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "where",
]


def _of_floats(name: str) -> Callable[..., Any]:
    return over_lanes(math_functions.BY_NAME[name])


exp, exp2, expm1 = map(_of_floats, ("exp", "exp2", "expm1"))
log, log2, log10, log1p = map(_of_floats, ("log", "log2", "log10", "log1p"))
sqrt, rsqrt, cbrt = map(_of_floats, ("sqrt", "rsqrt", "cbrt"))
sin, cos, tan = map(_of_floats, ("sin", "cos", "tan"))
asin, acos, atan = map(_of_floats, ("asin", "acos", "atan"))
sinh, cosh, tanh = map(_of_floats, ("sinh", "cosh", "tanh"))
asinh, acosh, atanh = map(_of_floats, ("asinh", "acosh", "atanh"))
erf, erfc = map(_of_floats, ("erf", "erfc"))
floor, ceil, trunc = map(_of_floats, ("floor", "ceil", "trunc"))
round, roundeven = map(_of_floats, ("round", "roundeven"))
isnan, isinf, isfinite, isnormal = map(_of_floats, ("isnan", "isinf", "isfinite", "isnormal"))
pow, fpowi, atan2 = map(
    over_lanes, (math_functions.pow_, math_functions.fpowi, math_functions.atan2)
)
powf = pow
absf, copysign, clampf = map(
    over_lanes, (math_functions.absf, math_functions.copysign, math_functions.clampf)
)
abs, fma, ceildiv = map(
    over_lanes, (math_functions.abs_, math_functions.fma, math_functions.ceildiv)
)
maximum, minimum = map(over_lanes, (math_functions.maximum, math_functions.minimum))
maxnumf, minnumf = map(over_lanes, (math_functions.maxnumf, math_functions.minnumf))
max, min = maximumf, minimumf = maximum, minimum
ctpop, ctlz, cttz = map(over_lanes, (bits.ctpop, bits.ctlz, bits.cttz))
absi, ipowi = map(over_lanes, (bits.absi, bits.ipowi))


def sincos(x: Any, *, fastmath: Flags = None) -> tuple[Any, Any]:
    """Sine and cosine."""
    return sin(x, fastmath=fastmath), cos(x, fastmath=fastmath)


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition is true, else `b`; elementwise for vectors. Both are evaluated,
    whereas a conditional expression evaluates only one."""
    if any(isinstance(operand, Vector) for operand in (condition, a, b)):
        return vector_arithmetic.select(condition, a, b)
    return math_functions.where(condition, a, b)


def bitcast(x: Any, dtype: DType) -> Any:
    """The same bits as a `dtype`. For a vector, the number of elements follows from the width."""
    return x.bitcast(dtype) if isinstance(x, Vector) else conversion.bitcast(x, dtype)
