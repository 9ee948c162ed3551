"""Operators and conversions on vectors: those of scalars, applied elementwise.

A Python number is weak, as for scalars. A scalar of the same kind takes the vector's element type,
as in PyTorch, and so do coordinates: an i64 extent does not widen i32 offsets.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fly_trace.core import tracing
from fly_trace.values import arithmetic, conversion, math_functions
from fly_trace.values.arithmetic import BITS, PLAIN, PREDICATES, SIGNS
from fly_trace.values.dtypes import BOOL, F32, I32, DType, check_computes, promote, weak
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector_shapes import Shape, broadcast, count, flat, vector_ir
from fly_trace.values.vector_values import Vector

if TYPE_CHECKING:
    from fly_trace.session.builder import Builder


def convert(vector: Vector, dtype: DType) -> Vector:
    """Converts each element, as `fx.Float16(x)` converts a scalar."""
    if dtype is vector.dtype:
        return vector
    builder = tracing.current("a conversion")
    if dtype.is_bool:
        if vector.dtype.is_narrow:
            vector = convert(vector, F32 if vector.dtype.is_float else I32)
        return binary("ne", vector, 0.0 if vector.dtype.is_float else 0)
    value = vector.value
    for name, kind in conversion.steps(vector.dtype, dtype):
        value = builder.one(name, f"vector<{vector.numel}x{kind}>", value)
    return Vector(value, vector.shape, dtype)


def element_dtype(a: Any, b: Any) -> DType:
    """The promoted element type of two operands, at least one of them a vector."""
    if isinstance(a, Vector) and isinstance(b, Vector):
        if a.are_coordinates != b.are_coordinates:
            vector, other = (b, a) if a.are_coordinates else (a, b)
            return _unwidened_dtype(vector, other.dtype)
        return conversion.checked(promote, a.dtype, b.dtype)
    vector, other = (a, b) if isinstance(a, Vector) else (b, a)
    if not isinstance(other, Scalar):
        return conversion.checked(weak, other, vector.dtype)
    return _unwidened_dtype(vector, other.dtype)


def _unwidened_dtype(vector: Vector, weak: DType) -> DType:
    """The element type of an operation on a vector and an operand that does not widen it: a scalar
    or coordinates."""
    if weak.is_bool or (weak.is_float == vector.dtype.is_float and not vector.dtype.is_bool):
        return vector.dtype
    return conversion.checked(promote, vector.dtype, weak)


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
    dtype, shape = element_dtype(a, b), _meeting_shape(a, b)
    conversion.checked(check_computes, dtype)
    if operation == "divmod":
        return binary("floordiv", a, b), binary("mod", a, b)
    if operation == "truediv" and not dtype.is_float:
        dtype = F32
    if operation in PREDICATES:
        return _compare(builder, operation, a, b, dtype, shape)
    if dtype.is_bool and operation not in BITS:
        tracing.refuse(f"`{SIGNS[operation]}` of bools", "convert them, as in v.to(fx.Int32)")
    if operation in PLAIN:
        name = PLAIN[operation][dtype.is_float]
    elif operation in BITS and not dtype.is_float:
        name = BITS[operation]
    elif operation == "truediv":
        name = "arith.divf"
    else:
        return _by_lanes(functools.partial(_scalar_binary, operation), shape, a, b)
    x, y = spread(a, dtype, shape), spread(b, dtype, shape)
    return Vector(builder.one(name, vector_ir(dtype, count(shape)), x, y), shape, dtype)


def _scalar_binary(operation: str, a: Any, b: Any) -> Any:
    return math_functions.power(a, b) if operation == "pow" else arithmetic.binary(operation, a, b)


def _compare(
    builder: Builder, operation: str, a: Any, b: Any, dtype: DType, shape: Shape
) -> Vector:
    signed, unsigned, ordered = PREDICATES[operation]
    if dtype.is_float:
        name, predicate = "arith.cmpf", ordered
    else:
        name, predicate = "arith.cmpi", signed if dtype.kind == "int" else unsigned
    x, y = spread(a, dtype, shape), spread(b, dtype, shape)
    number = builder.integer(predicate, "i64")
    kind = vector_ir(BOOL, count(shape))
    return Vector(builder.one(name, kind, x, y, predicate=number), shape, BOOL)


def unary(operation: str, a: Vector) -> Vector:
    if operation == "pos":
        return a
    conversion.checked(check_computes, a.dtype)
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
    dtype = element_dtype(a, b) if isinstance(a, Vector) or isinstance(b, Vector) else None
    if dtype is None:
        dtype = math_functions.meet("where", a, b)
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
