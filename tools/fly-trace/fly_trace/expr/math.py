"""`fx.math`: functions of numbers, element by element of vectors. `max`, `min` let NaN through."""

from __future__ import annotations

from typing import Any

from fly_trace import conversion, functions, vector_arithmetic
from fly_trace.dtypes import DType
from fly_trace.functions import (
    abs_,
    ceil,
    ceildiv,
    cos,
    erf,
    exp,
    exp2,
    floor,
    fma,
    log,
    log2,
    maximum,
    maxnumf,
    minimum,
    minnumf,
    pow_,
    rsqrt,
    sin,
    sqrt,
    tanh,
)
from fly_trace.vector_arithmetic import over_lanes
from fly_trace.vectors import Vector

__all__ = [
    "abs",
    "bitcast",
    "ceil",
    "ceildiv",
    "cos",
    "erf",
    "exp",
    "exp2",
    "floor",
    "fma",
    "log",
    "log2",
    "max",
    "maximum",
    "maxnumf",
    "min",
    "minimum",
    "minnumf",
    "pow",
    "rsqrt",
    "sin",
    "sqrt",
    "tanh",
    "where",
]

ceil, cos, erf, exp, exp2, floor = map(over_lanes, (ceil, cos, erf, exp, exp2, floor))
log, log2, rsqrt, sin, sqrt, tanh = map(over_lanes, (log, log2, rsqrt, sin, sqrt, tanh))
abs, pow, fma, ceildiv = map(over_lanes, (abs_, pow_, fma, ceildiv))
maximum, minimum, maxnumf, minnumf = map(over_lanes, (maximum, minimum, maxnumf, minnumf))
max, min = maximum, minimum


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`, element by element of vectors. Both are computed; a
    conditional expression computes only one."""
    if any(isinstance(operand, Vector) for operand in (condition, a, b)):
        return vector_arithmetic.select(condition, a, b)
    return functions.where(condition, a, b)


def bitcast(x: Any, dtype: DType) -> Any:
    """The same bits as a `dtype`; of a vector as many as the bits make."""
    return x.bitcast(dtype) if isinstance(x, Vector) else conversion.bitcast(x, dtype)
