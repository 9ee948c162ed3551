"""Operators on scalars, with Python's semantics for values of fixed width.

- Integers wrap at their width. `//` and `%` round towards minus infinity, as in Python.
- `/` is a float division (two integers: f32). Float `//` and `%` follow CPython step by step.
- A shift by the width or more gives Python's result, truncated to the width (0, or -1 for `>>` of a
  negative number). A dynamic negative amount counts as a large one.
- The host function's integers have 64 bits, whatever their parameters' types.

`promotion` has the type of an operation on two types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values import comparison, integer_ops, promotion
from fly_trace.values.conversion import checked, convert
from fly_trace.values.dtypes import BOOL, F32, I64, DType
from fly_trace.values.elementwise import PREDICATES, Elementwise
from fly_trace.values.promotion import check_computes
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder

SIGNS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "lshift": "<<",
    "rshift": ">>",
    "and": "&",
    "or": "|",
    "xor": "^",
    "divmod": "divmod",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
PLAIN = {
    "add": ("arith.addi", "arith.addf"),
    "sub": ("arith.subi", "arith.subf"),
    "mul": ("arith.muli", "arith.mulf"),
}
BITS = {"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"}


def common(a: Any, b: Any) -> DType:
    """The promoted type of two operands, at least one of them a Scalar."""
    return checked(promotion.common, a, b)


def computed(operation: str, dtype: DType, *operands: Any) -> DType:
    """What the operands of an operation, of the common type `dtype`, are converted to."""
    found = checked(promotion.operated, operation, dtype)
    if found is None:
        found = " and ".join(describe(operand) for operand in operands)
        tracing.refuse(f"`{SIGNS[operation]}` needs integers, not {found}")
    return found


def binary(operation: str, a: Any, b: Any) -> Any:
    """`a operation b`, or NotImplemented if an operand is not a number, so that Python reports
    it."""
    for operand in (a, b):
        if not isinstance(operand, (Scalar, bool, int, float)):
            return NotImplemented
    builder = tracing.current(f"`{SIGNS[operation]}` on a typed value")
    if operation in PREDICATES:
        return compare(builder, operation, a, b)
    if operation == "divmod":
        return binary("floordiv", a, b), binary("mod", a, b)
    shifts = operation in ("lshift", "rshift")
    dtype = checked(promotion.shifted if shifts else promotion.common, a, b)
    checked(check_computes, dtype)
    if builder.host:
        if dtype.is_float or operation == "truediv":
            refuse_host_float()
        dtype = I64
    dtype = computed(operation, dtype, a, b)
    if shifts:
        x, by = builder.ssa(convert(a, dtype)), b.number if isinstance(b, Scalar) else b
        if by is None:
            by = builder.ssa(convert(_amount(b, dtype), dtype))
        assert not isinstance(by, float), "floats were refused"
        return Scalar(dtype, integer_ops.shift(builder, operation, x, by, dtype))
    x, y = (builder.ssa(convert(operand, dtype)) for operand in (a, b))
    if operation in BITS:
        return Scalar(dtype, builder.one(BITS[operation], dtype.ir, x, y))
    if operation in PLAIN:
        name = PLAIN[operation][dtype.is_float]
        return Scalar(dtype, builder.one(name, dtype.ir, x, y))
    if operation == "truediv":
        return Scalar(dtype, builder.one("arith.divf", dtype.ir, x, y))
    if dtype.is_float:
        return Scalar(dtype, _float_division(builder, operation, x, y, dtype))
    known = b if isinstance(b, int) else b.number if isinstance(b, Scalar) else None
    if known == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    return Scalar(dtype, integer_ops.division(builder, operation, x, y, known, dtype))


def _amount(by: Scalar, dtype: DType) -> Scalar:
    """A dynamic amount of a shift of a value of `dtype`, limited to what every amount of the width
    or more does, if it may not fit. (A negative one counts as a large one.)"""
    if by.dtype.bits <= dtype.bits:
        return by
    builder = tracing.current("a shift")
    most = builder.constant(dtype.bits, by.dtype)
    return Scalar(by.dtype, builder.one("arith.minui", by.dtype.ir, builder.ssa(by), most))


def refuse_host_float() -> NoReturn:
    tracing.refuse(
        "the host function computes with integers only: its results are grids, blocks and"
        " arguments",
        "compute with floats in the kernel",
    )


def compare(builder: Builder, operation: str, a: Any, b: Any) -> Scalar:
    """Compares two operands; returns a bool. That of a Python int, which does not fit the other
    operand's type, is known."""
    if (known := _beyond(operation, a, b)) is not None:
        return Scalar(BOOL, number=known)
    if isinstance(a, Scalar) and isinstance(b, Scalar) and a.dtype is not b.dtype:
        if comparison.holds(b.dtype, a.number):
            a = convert(a, b.dtype)
        elif comparison.holds(a.dtype, b.number):
            b = convert(b, a.dtype)
    types = [x.dtype if isinstance(x, Scalar) else None for x in (a, b)]
    if types[0] is None or types[1] is None:
        types = [common(a, b)] * 2
    first, second = types
    assert first is not None
    assert second is not None
    checked(check_computes, first, second)
    if builder.host:
        if first.is_float or second.is_float:
            tracing.refuse(
                "the host function computes with integers only",
                "compare floats in the kernel",
            )
        first = second = I64
    x, y = builder.ssa(convert(a, first)), builder.ssa(convert(b, second))
    made = comparison.compare(Elementwise(builder), operation, x, first, y, second)
    return Scalar(BOOL, made)


def _beyond(operation: str, a: Any, b: Any) -> bool | None:
    """The result of a comparison of a typed integer with a Python int that its type can't hold."""
    typed, number = (a, b) if isinstance(a, Scalar) else (b, a)
    if type(number) is not int or not typed.dtype.is_integer:
        return None
    low, high = typed.dtype.range
    if low <= number <= high:
        return None
    if operation in ("eq", "ne"):
        return operation == "ne"
    is_less = number > high if typed is a else number < low  # a < b
    return is_less is (operation in ("lt", "le"))


def unary(operation: str, a: Scalar) -> Scalar:
    builder = tracing.current(f"`{operation}` of a typed value")
    checked(check_computes, a.dtype)
    dtype = checked(promotion.operated, operation, a.dtype)
    if dtype is None:
        tracing.refuse(f"`~` needs an integer or a bool, not {describe(a)}")
    if operation == "invert":
        ones = builder.constant(1 if dtype.is_bool else -1, dtype)
        return Scalar(dtype, builder.one("arith.xori", dtype.ir, builder.ssa(a), ones))
    if operation == "pos":
        return convert(a, dtype)
    if builder.host:
        a, dtype = convert(a, I64), I64
    a = convert(a, dtype)
    x = builder.ssa(a)
    if operation == "abs":
        if dtype.is_float:
            return Scalar(dtype, builder.one("math.absf", dtype.ir, x))
        return a if dtype.kind == "uint" else Scalar(dtype, integer_ops.absolute(builder, x, dtype))
    if dtype.is_float:
        return Scalar(dtype, builder.one("arith.negf", dtype.ir, x))
    return Scalar(dtype, builder.one("arith.subi", dtype.ir, builder.constant(0, dtype), x))


def _float_division(
    builder: Builder, operation: str, x: ir.Value, y: ir.Value, dtype: DType
) -> ir.Value:
    """Python's float `//` and `%`, following CPython's float_floor_div and float_rem."""
    kind = dtype.ir
    wide = kind if dtype.bits >= 32 else "f32"

    def make(name: str, *operands: ir.Value) -> ir.Value:
        return builder.one(name, wide, *operands)

    def test(predicate: int, a: ir.Value, b: ir.Value) -> ir.Value:
        number = builder.integer(predicate, "i64")
        return builder.one("arith.cmpf", "i1", a, b, predicate=number)

    if wide != kind:
        x, y = (builder.one("arith.extf", wide, operand) for operand in (x, y))
    wide_dtype = dtype if wide == kind else F32
    zero, one = builder.constant(0.0, wide_dtype), builder.constant(1.0, wide_dtype)
    rest = make("arith.remf", x, y)
    exact = test(1, rest, zero)
    negative = builder.one("arith.xori", "i1", test(4, y, zero), test(4, rest, zero))
    other_sign = builder.one(
        "arith.andi", "i1", negative, builder.one("arith.xori", "i1", exact, _true(builder))
    )
    if operation == "mod":
        result = make("arith.select", other_sign, make("arith.addf", rest, y), rest)
        result = make("arith.select", exact, make("math.copysign", zero, y), result)
    else:
        quotient = make("arith.divf", make("arith.subf", x, rest), y)
        quotient = make("arith.select", other_sign, make("arith.subf", quotient, one), quotient)
        # The quotient is close to an integer; rounding to nearest gives that integer.
        floor = make("math.floor", quotient)
        half = builder.constant(0.5, wide_dtype)
        up = test(2, make("arith.subf", quotient, floor), half)
        floor = make("arith.select", up, make("arith.addf", floor, one), floor)
        is_zero = test(1, quotient, zero)
        signed_zero = make("math.copysign", zero, make("arith.divf", x, y))
        result = make("arith.select", is_zero, signed_zero, floor)
    return result if wide == kind else builder.one("arith.truncf", kind, result)


def _true(builder: Builder) -> ir.Value:
    return builder.constant(True, BOOL)
