"""Operators and conversions on vectors: those of scalars, applied elementwise.

The types are promoted by the same table: a Python number is weak, a typed scalar is not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values import arithmetic, comparison, conversion, promotion
from fly_trace.values.arithmetic import BITS, PLAIN, SIGNS
from fly_trace.values.dtypes import BOOL, DType
from fly_trace.values.elementwise import PREDICATES, Elementwise
from fly_trace.values.functions import math_functions
from fly_trace.values.promotion import check_computes
from fly_trace.values.rounding import converted
from fly_trace.values.rounding import mode_of as rounding_of
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vector_values import Vector
from fly_trace.values.vector_shapes import Shape, broadcast, count, flat, vector_ir

if TYPE_CHECKING:
    from fly_trace.session.builder import Builder


def convert(
    vector: Vector,
    dtype: DType,
    *,
    rounding: str | None = None,
    saturate: bool = False,
    rounding_mode: str | None = None,
) -> Vector:
    """Converts each element, as `x.to(…)` converts a scalar."""
    mode = rounding_of(rounding if rounding_mode is None else rounding_mode)
    if dtype is vector.dtype:
        return vector
    ops = Elementwise(tracing.current("a conversion"), vector.numel)
    if mode is None and not saturate:
        made = ops.convert(vector.value, vector.dtype, dtype)
    else:
        made = converted(ops, vector.value, vector.dtype, dtype, mode, saturate)
    return Vector(made, vector.shape, dtype)


def _meeting_shape(*operands: Any) -> Shape:
    """The broadcast shape of the vectors among the operands."""
    return functools.reduce(broadcast, (v.shape for v in operands if isinstance(v, Vector)))


def spread(value: Any, dtype: DType, shape: Shape) -> Any:
    """The SSA vector of an operand, converted and broadcast."""
    if isinstance(value, Vector):
        if flat(value.shape) != flat(shape):
            value = value.broadcast_to(shape)
        return value.to(dtype).value
    return Vector.filled(shape, value, dtype).value


def binary(operation: str, a: Any, b: Any) -> Any:
    """`a operation b` with at least one vector, or NotImplemented if the other is not a number."""
    for operand in (a, b):
        if not isinstance(operand, (Vector, Scalar, bool, int, float)):
            return NotImplemented
    builder = tracing.current(f"`{SIGNS[operation]}` on a vector")
    shape = _meeting_shape(a, b)
    if operation in PREDICATES:
        return _compare(builder, operation, a, b, shape)
    if operation == "divmod":
        return binary("floordiv", a, b), binary("mod", a, b)
    if operation in ("floordiv", "mod", "pow", "lshift", "rshift"):
        return _by_lanes(functools.partial(_scalar_binary, operation), shape, a, b)
    dtype = arithmetic.common(a, b)
    conversion.checked(check_computes, dtype)
    dtype = arithmetic.computed(operation, dtype, a, b)
    if operation == "truediv":
        name = "arith.divf"
    else:
        name = BITS[operation] if operation in BITS else PLAIN[operation][dtype.is_float]
    x, y = spread(a, dtype, shape), spread(b, dtype, shape)
    return Vector(builder.one(name, vector_ir(dtype, count(shape)), x, y), shape, dtype)


def _scalar_binary(operation: str, a: Any, b: Any) -> Any:
    return math_functions.power(a, b) if operation == "pow" else arithmetic.binary(operation, a, b)


def _compare(builder: Builder, operation: str, a: Any, b: Any, shape: Shape) -> Vector:
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Scalar) and comparison.holds(other.dtype, one.number):
            a, b = (one.number, b) if one is a else (a, one.number)
    if isinstance(a, (Vector, Scalar)) and isinstance(b, (Vector, Scalar)):
        first, second = a.dtype, b.dtype
    else:
        first = second = arithmetic.common(a, b)
    conversion.checked(check_computes, first, second)
    x, y = spread(a, first, shape), spread(b, second, shape)
    ops = Elementwise(builder, count(shape))
    return Vector(comparison.compare(ops, operation, x, first, y, second), shape, BOOL)


def unary(operation: str, a: Vector) -> Vector:
    conversion.checked(check_computes, a.dtype)
    if operation == "pos":
        return convert(a, promotion.operated("pos", a.dtype) or a.dtype)
    if operation == "neg" and a.dtype.is_float:
        builder = tracing.current("`-` of a vector")
        return Vector(
            builder.one("arith.negf", vector_ir(a.dtype, a.numel), a.value), a.shape, a.dtype
        )
    return over_lanes(lambda x: arithmetic.unary(operation, x))(a)


def select(condition: Any, a: Any, b: Any) -> Vector:
    """Elementwise `a` where the condition is true, else `b`."""
    builder = tracing.current("a selection")
    if isinstance(condition, Vector) and not condition.dtype.is_bool:
        tracing.refuse(f"the condition must be of bools, not {condition.described}")
    for operand in (a, b):
        if not isinstance(operand, (Vector, Scalar, bool, int, float)):
            tracing.refuse(f"a selection takes numbers and vectors, not {describe(operand)}")
    dtype = arithmetic.common(a, b)
    shape = next(v.shape for v in (condition, a, b) if isinstance(v, Vector))
    x, y = spread(a, dtype, shape), spread(b, dtype, shape)
    test = (
        spread(condition, BOOL, shape) if isinstance(condition, Vector) else builder.ssa(condition)
    )
    kind = vector_ir(dtype, count(shape))
    return Vector(builder.one("arith.select", kind, test, x, y), shape, dtype)


def _by_lanes(function: Callable[..., Any], shape: Shape, *operands: Any) -> Vector:
    """Applies `function` to the scalars in each position."""
    spread_out = [
        operand.broadcast_to(shape) if isinstance(operand, Vector) else operand
        for operand in operands
    ]
    results = []
    for lane in range(count(shape)):
        given = [v[lane] if isinstance(v, Vector) else v for v in spread_out]
        results.append(function(*given))
    return Vector.from_elements(results).reshape(shape)


def over_lanes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Extends a function of scalars to vectors, elementwise."""

    @functools.wraps(function)
    def wide(*operands: Any, **named: Any) -> Any:
        if not any(isinstance(operand, Vector) for operand in operands):
            return function(*operands, **named)
        return _by_lanes(functools.partial(function, **named), _meeting_shape(*operands), *operands)

    return wide
