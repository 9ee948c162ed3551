"""Comparisons of numbers of any two types.

They compare the numbers themselves: an i32 of -1 is less than every u32, and 2**24 + 1 as an i32 is
greater than 2**24 as an f32, although its conversion to f32 is not. (C, FlyDSL and NumPy compare
what the operands are after promotion.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fly_trace.values.dtypes import BOOL, F32, F64, FRACTION_BITS, DType
from fly_trace.values.elementwise import Elementwise
from fly_trace.values.promotion import TYPES, promote

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

# `a < b` is `b > a`.
_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_GREATER = ("ne", "gt", "ge")  # those that hold for a greater left operand


def exact_type(a: DType, b: DType) -> DType | None:
    """The type in which two types are compared: their common type, or a wider float, if it
    represents all values of both."""
    if a.is_float == b.is_float:
        return promote(a, b) if a.is_float else TYPES[a, b]
    integer = b if a.is_float else a
    needed = integer.bits - (integer.kind == "int")
    for wide in (promote(a, b), F32, F64):
        if FRACTION_BITS[wide.name] >= needed and promote(a, wide) is promote(b, wide) is wide:
            return wide
    return None


def holds(dtype: DType, number: object) -> bool:
    """Whether the constant `number` is an integer that is a value of `dtype`."""
    if not isinstance(number, int):
        return False
    if dtype.is_float:
        return abs(number) <= 2 ** FRACTION_BITS[dtype.name]
    low, high = dtype.range
    return low <= number <= high


def compare(
    ops: Elementwise, operation: str, x: ir.Value, a: DType, y: ir.Value, b: DType
) -> ir.Value:
    """`x operation y` of an x of type `a` and a y of type `b`: lt le gt ge eq ne."""
    dtype = exact_type(a, b)
    if dtype is not None:
        x, y = ops.convert(x, a, dtype), ops.convert(y, b, dtype)
        return ops.test(operation, x, y, dtype)
    if b.is_float or (not a.is_float and b.kind == "int"):
        operation, x, a, y, b = _SWAPPED[operation], y, b, x, a
    if a.is_float:
        return _float_with_integer(ops, operation, x, a, y, b)
    return _signed_with_unsigned(ops, operation, x, a, y, b)


def _signed_with_unsigned(
    ops: Elementwise, operation: str, x: ir.Value, a: DType, y: ir.Value, b: DType
) -> ir.Value:
    """A negative x is less than any y; any other is compared in the wider type, as unsigned."""
    negative = ops.test("lt", x, ops.constant(0, a), a)
    unsigned = ops.test(operation, ops.convert(x, a, b), y, b)
    if operation in ("lt", "le", "ne"):
        return ops.op("arith.ori", BOOL, negative, unsigned)
    positive = ops.op("arith.xori", BOOL, negative, ops.constant(True, BOOL))
    return ops.op("arith.andi", BOOL, positive, unsigned)


def _float_with_integer(
    ops: Elementwise, operation: str, x: ir.Value, a: DType, y: ir.Value, b: DType
) -> ir.Value:
    """An f64 cannot represent all integers of 64 bits or more. Rounding is monotonic: if y rounded
    to f64 differs from x, it is on the same side of x as y. Otherwise x is an integer, and compared
    as one, unless it is beyond the integer type's greatest value because y was rounded up."""
    x, near = ops.convert(x, a, F64), ops.convert(y, b, F64)
    by_rounded = ops.test(operation, x, near, F64)
    bits = b.bits - (b.kind == "int")
    by_integer = ops.test(operation, ops.convert(x, F64, b), y, b)
    beyond = ops.test("ge", x, ops.constant(2.0**bits, F64), F64)
    above = ops.constant(operation in _GREATER, BOOL)
    by_integer = ops.select(beyond, above, by_integer, BOOL)
    same = ops.test("eq", x, near, F64)
    return ops.select(same, by_integer, by_rounded, BOOL)
