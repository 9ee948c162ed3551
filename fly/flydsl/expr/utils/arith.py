"""`flydsl.expr.utils.arith`: numbers of MLIR, and builders of the dialect `arith` that take
values of the language."""

from __future__ import annotations

from typing import Any

from fly_trace.core import tracing
from fly_trace.values.functions.fast_math import fastmath as fastmath
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vectors import Vector

from fly.flydsl.numbers.methods import select as _select
from fly.flydsl.numbers.operators import typed, wrapped
from fly.flydsl.numbers.raw import RawScalar, is_value, lift, lower, raw_scalar
from fly.flydsl.numbers.types import Index, dtype_of, vector_parts


class _ArithKind(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, (RawScalar, Vector))

    def __call__(cls, value: Any, signed: bool | None = None) -> Any:
        held = typed(lift(value))
        if isinstance(held, Vector):
            return held
        if not isinstance(held, Scalar):
            tracing.refuse(f"ArithValue takes a number, not {tracing.describe(value)}")
        ssa = tracing.current("ArithValue").ssa(held)
        return Scalar(held.dtype, ssa) if signed else raw_scalar(held.dtype, ssa)


class ArithValue(metaclass=_ArithKind):
    """A number or vector of MLIR, with the operators of `arith`."""


def _to_raw(value: Any) -> Any:
    """The value as one of MLIR."""
    if is_value(value):
        return value
    held = typed(value)
    if isinstance(held, Scalar):
        return held.ir_value()  # type: ignore[attr-defined]
    return held.ir_value() if hasattr(held, "ir_value") else held


def constant(value: Any, *, type: Any = None, index: bool = False) -> Any:
    """A constant of a type of MLIR; without one, of FlyDSL's type for a number of Python."""
    builder = tracing.current("arith.constant")
    if type is not None and vector_parts(type) is not None:
        return constant_vector(value, type)
    dtype = Index if index else dtype_of(type) if type is not None else typed(value).dtype
    if dtype is None:
        tracing.refuse(f"arith.constant makes numbers, not {type}")
    return raw_scalar(dtype, builder.constant(wrapped(value, dtype), dtype))


def arith_const(value: Any, ty: Any = None) -> Any:
    """A constant of a type of MLIR."""
    return constant(value, type=ty)


def constant_vector(element_value: Any, vector_type: Any) -> Any:
    """A vector of one number."""
    parts = vector_parts(vector_type)
    if parts is None:
        tracing.refuse(f"arith.constant_vector takes a vector type, not {vector_type}")
    builder = tracing.current("arith.constant_vector")
    number = wrapped(element_value, parts[1])
    return lift(builder.splat(number, parts[1], str(vector_type)))


def index(value: Any) -> Any:
    """An index constant."""
    return constant(value, index=True)


def index_cast(target_type: Any, value: Any) -> Any:
    """Between index and integers."""
    return _to_raw(value).index_cast(target_type)


def select(condition: Any, true_value: Any, false_value: Any) -> Any:
    """`true_value` where the condition is true, else `false_value`."""
    held = typed(lift(condition))
    found = _select(held, true_value, false_value)
    return _to_raw(found)


def unwrap(value: Any, *, type: Any = None, index: bool = False) -> Any:
    """The value as one of MLIR; a number of Python as a constant."""
    if isinstance(value, (bool, int, float)):
        return constant(value, type=type, index=index)
    return _to_raw(value)


def _of_two(op: str) -> Any:
    def function(lhs: Any, rhs: Any) -> Any:
        a, b = _to_raw(lhs), _to_raw(rhs)
        builder = tracing.current(op)
        return lift(builder.op(op, [lower(a).type], [lower(a), lower(b)]).results[0])

    function.__name__ = op.partition(".")[2]
    return function


def _cast(op: str) -> Any:
    def function(target_type: Any, value: Any) -> Any:
        builder = tracing.current(op)
        return lift(builder.op(op, [lower(target_type)], [lower(_to_raw(value))]).results[0])

    function.__name__ = op.partition(".")[2]
    return function


andi, xori, shli = (_of_two(f"arith.{name}") for name in ("andi", "xori", "shli"))
sitofp, trunc_f = _cast("arith.sitofp"), _cast("arith.truncf")
sitofp.__doc__ = "A signed integer as a float."
trunc_f.__doc__ = "A float as one of fewer bits."


def current_fastmath() -> Any:
    """The flags of `with fx.fastmath(…)`, by name; None without."""
    builder = tracing.active()
    if builder is None or builder.fastmath is None:
        return None
    return str(builder.fastmath).partition("<")[2].rstrip(">")


def resolve_fastmath(explicit: Any) -> Any:
    return explicit if explicit is not None else current_fastmath()


def element_type(kind: Any) -> Any:
    """The element type of a vector type; any other type itself."""
    return getattr(kind, "element_type", kind)
