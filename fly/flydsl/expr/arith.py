"""`flydsl.expr.arith`: the dialect `arith`, and functions that promote their operands."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

from fly_trace.core import tracing
from fly_trace.values.dtypes import BOOL, I32
from fly_trace.values.elementwise import Elementwise
from fly_trace.values.functions.fast_math import FastMathFlags, of_op
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vector_arithmetic import spread
from fly_trace.values.vector.vectors import Vector
from fly_trace.values.vector_shapes import broadcast, count

from fly.flydsl._mlir.dialects import arith as _dialect
from fly.flydsl.expr.utils.arith import (
    ArithValue,
    _to_raw,
    andi,
    constant,
    constant_vector,
    current_fastmath,
    fastmath,
    index,
    index_cast,
    resolve_fastmath,
    select,
    shli,
    sitofp,
    trunc_f,
    unwrap,
    xori,
)
from fly.flydsl.numbers import promotion
from fly.flydsl.numbers.operators import typed, wrapped
from fly.flydsl.numbers.raw import RawScalar, RawVector, lift, raw_scalar
from fly.flydsl.numbers.types import Index

# What `fx` has of this module.
__all__ = [
    "FastMathFlags",
    "RoundingMode",
    "ceildiv",
    "cmpf",
    "cmpi",
    "constant_vector",
    "fastmath",
    "index_cast",
    "max",
    "maximumf",
    "maxnumf",
    "min",
    "minimumf",
    "minnumf",
    "shrui",
]
_EXPORTED = (
    *(ArithValue, _to_raw, andi, constant, current_fastmath, index, resolve_fastmath, select),
    *(shli, sitofp, trunc_f, unwrap, xori, FastMathFlags),
)


class RoundingMode:
    """The directions of `x.to(dtype, rounding_mode=…)`."""

    to_nearest_even, toward_zero = "to_nearest_even", "toward_zero"
    to_nearest_away = "to_nearest_away"  # refused where it is used
    downward, upward = "downward", "upward"


# Function → the ops of signed integers, unsigned ones and floats.
_OPS = {
    "max": ("arith.maxsi", "arith.maxui", "arith.maximumf"),
    "min": ("arith.minsi", "arith.minui", "arith.minimumf"),
    "maxnumf": (None, None, "arith.maxnumf"),
    "minnumf": (None, None, "arith.minnumf"),
    "maximumf": (None, None, "arith.maximumf"),
    "minimumf": (None, None, "arith.minimumf"),
    "ceildiv": ("arith.ceildivsi", "arith.ceildivui", None),
}


def _extreme(is_less: Any) -> Any:
    """The greatest or least of two numbers: a NaN, if one is; 0.0 is greater than -0.0."""

    def folded(a: Any, b: Any) -> Any:
        if isinstance(a, float) and (math.isnan(a) or math.isnan(b)):
            return math.nan
        if a == b == 0 and isinstance(a, float):
            return a if is_less(math.copysign(1, b), math.copysign(1, a)) else b
        return a if is_less(b, a) else b

    return folded


_FOLDED = {
    "max": _extreme(operator.lt),
    "min": _extreme(operator.gt),
    "ceildiv": lambda a, b: -(-a // b),
}


def _flat(operands: Any) -> list[Any]:
    found = []
    for one in operands:
        found += _flat(one) if isinstance(one, (list, tuple)) else [typed(lift(one))]
    return found


def _promoted(name: str, operands: list[Any], fastmath: Any) -> Any:
    if not operands:
        raise ValueError(f"fx.{name} takes at least one operand")
    if name in ("max", "min", "ceildiv"):
        _check(name, [one.dtype for one in operands])
    types = [I32 if one.dtype is BOOL else one.dtype for one in operands]
    dtype = functools.reduce(promotion.common, types)
    kind = 2 if dtype.is_float else 1 if dtype.kind == "uint" else 0
    op = _OPS[name][kind]
    if op is None:
        tracing.refuse(f"fx.{name} does not take {dtype.name}")
    vectors = [one for one in operands if isinstance(one, Vector)]
    raw = all(isinstance(one, (RawScalar, RawVector)) for one in operands)
    if vectors:
        shape = functools.reduce(broadcast, (one.shape for one in vectors))
        ops = Elementwise(tracing.current(f"fx.{name}"), count(shape))
        values = [spread(one, dtype, shape) for one in operands]
    else:
        numbers = [dtype(one) for one in operands]
        if all(one.number is not None for one in numbers) and name in _FOLDED:
            made = functools.reduce(_FOLDED[name], [one.number for one in numbers])
            if name == "ceildiv" and made > dtype.range[1]:
                raise OverflowError(f"fx.ceildiv: {made} does not fit in {dtype.title}")
            return Scalar(dtype, number=wrapped(made, dtype))
        builder = tracing.current(f"fx.{name}")
        ops, values = Elementwise(builder), [builder.ssa(one) for one in numbers]
    flags = of_op(ops.builder, fastmath) if dtype.is_float else {}
    made = functools.reduce(lambda a, b: ops.op(op, dtype, a, b, **flags), values)
    if vectors:
        return (RawVector if raw else Vector)(made, shape, dtype)
    return raw_scalar(dtype, made) if raw else Scalar(dtype, made)


def _check(name: str, types: list[Any]) -> None:
    """Refuses types that the function does not take."""
    for dtype in types:
        if dtype is Index:
            tracing.refuse(f"fx.{name} does not support Index", "convert it to fx.Int64")
        if dtype.is_narrow:
            tracing.refuse(f"fx.{name} does not support the narrow storage float {dtype.title}")
        if name == "ceildiv" and dtype.is_bool:
            tracing.refuse("fx.ceildiv does not support Boolean", "convert it to fx.Int32")
        if name == "ceildiv" and dtype.is_float:
            tracing.refuse(f"fx.ceildiv requires integer operands, not {dtype.title}")


def _function(name: str, text: str) -> Any:
    def function(*operands: Any, fastmath: Any = None) -> Any:
        return _promoted(name, _flat(operands), fastmath)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


max = _function("max", "The greatest, of the common type; NaN if any float is NaN.")
min = _function("min", "The least, of the common type; NaN if any float is NaN.")
maxnumf = _function("maxnumf", "The greater float that is not NaN.")
minnumf = _function("minnumf", "The lesser float that is not NaN.")
maximumf = _function("maximumf", "The greater float; NaN if one is NaN.")
minimumf = _function("minimumf", "The lesser float; NaN if one is NaN.")
ceildiv = _function("ceildiv", "The quotient of two integers, rounded up.")


def shrui(value: Any, amount: Any, **_: Any) -> Any:
    """`value` shifted to the right; zeros come in."""
    return typed(lift(value)).shrui(amount)


def cmpi(predicate: Any, lhs: Any, rhs: Any, **named: Any) -> Any:
    """A comparison of integers by a predicate of `arith`."""
    return _dialect.cmpi(predicate, _to_raw(lhs), _to_raw(rhs), **named)


def cmpf(predicate: Any, lhs: Any, rhs: Any, **named: Any) -> Any:
    """A comparison of floats by a predicate of `arith`."""
    return _dialect.cmpf(predicate, _to_raw(lhs), _to_raw(rhs), **named)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_dialect, name)
