"""Operators on scalars, with Python's semantics for values of fixed width.

- Integers wrap at their width. `//` and `%` round towards minus infinity, as in Python.
- `/` is a float division (two integers: f32). Float `//` and `%` follow CPython step by step.
- A shift by the width or more gives Python's result, truncated to the width (0, or -1 for `>>` of a
  negative number). A dynamic negative amount counts as a large one.
- The host function's integers have 64 bits, whatever their parameters' types.

`dtypes.PROMOTION` gives the type of an operation on two types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values import integer_ops
from fly_trace.values.conversion import checked, convert
from fly_trace.values.dtypes import BOOL, F32, I64, DType, check_computes, default, promote, weak
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
# comparison → predicates of arith.cmpi (signed, unsigned) and arith.cmpf (unordered only for !=).
PREDICATES = {
    "eq": (0, 0, 1),
    "ne": (1, 1, 13),
    "lt": (2, 6, 4),
    "le": (3, 7, 5),
    "gt": (4, 8, 2),
    "ge": (5, 9, 3),
}
PLAIN = {
    "add": ("arith.addi", "arith.addf"),
    "sub": ("arith.subi", "arith.subf"),
    "mul": ("arith.muli", "arith.mulf"),
}
BITS = {"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"}


def common(a: Any, b: Any) -> DType:
    """The promoted type of two operands, at least one of them a Scalar."""
    if isinstance(a, Scalar):
        if isinstance(b, Scalar):
            return a.dtype if a.dtype is b.dtype else checked(promote, a.dtype, b.dtype)
        return checked(weak, b, a.dtype)
    if isinstance(b, Scalar):
        return checked(weak, a, b.dtype)
    return checked(promote, checked(default, a), checked(default, b))


def binary(operation: str, a: Any, b: Any) -> Any:
    """`a operation b`, or NotImplemented if an operand is not a number, so that Python reports
    it."""
    for operand in (a, b):
        if not isinstance(operand, (Scalar, bool, int, float)):
            return NotImplemented
    builder = tracing.current(f"`{SIGNS[operation]}` on a typed value")
    dtype = common(a, b)
    checked(check_computes, dtype)
    if operation in PREDICATES:
        return compare(builder, operation, a, b, dtype)
    if builder.host:
        if dtype.is_float or operation == "truediv":
            refuse_host_float()
        dtype = I64
    if operation == "divmod":
        return binary("floordiv", a, b), binary("mod", a, b)
    if operation in ("lshift", "rshift"):
        _need_integers(operation, a, b, dtype)
        x, by = builder.ssa(convert(a, dtype)), b.number if isinstance(b, Scalar) else b
        if by is None:
            by = builder.ssa(convert(b, dtype))
        assert not isinstance(by, float), "floats were refused"
        return Scalar(dtype, integer_ops.shift(builder, operation, x, by, dtype))
    if operation in BITS:
        if dtype.is_float:
            _need_integers(operation, a, b, dtype)
        x, y = (builder.ssa(convert(operand, dtype)) for operand in (a, b))
        return Scalar(dtype, builder.one(BITS[operation], dtype.ir, x, y))
    if dtype.is_bool:
        tracing.refuse(
            f"`{SIGNS[operation]}` of two bools is a count in Python and a bool in NumPy",
            "convert one of them, as in fx.Int32(x); or use &, | and ^",
        )
    if operation == "truediv" and not dtype.is_float:
        dtype = F32
    x, y = (builder.ssa(convert(operand, dtype)) for operand in (a, b))
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


def refuse_host_float() -> NoReturn:
    tracing.refuse(
        "the host function computes with integers only: its results are grids, blocks and"
        " arguments",
        "compute with floats in the kernel",
    )


def _need_integers(operation: str, a: Any, b: Any, dtype: DType) -> None:
    if dtype.is_float or (dtype.is_bool and operation in ("lshift", "rshift")):
        found = " and ".join(describe(operand) for operand in (a, b))
        tracing.refuse(f"`{SIGNS[operation]}` needs integers, not {found}")


def compare(builder: Builder, operation: str, a: Any, b: Any, dtype: DType) -> Scalar:
    """Compares two operands; returns a bool. Python numbers are known to fit `dtype`, because
    `common` refuses others."""
    if builder.host:
        if dtype.is_float:
            tracing.refuse(
                "the host function computes with integers only",
                "compare floats in the kernel",
            )
        dtype = I64
    x, y = (builder.ssa(convert(operand, dtype)) for operand in (a, b))
    signed, unsigned, ordered = PREDICATES[operation]
    if dtype.is_float:
        name, predicate = "arith.cmpf", ordered
    else:
        name, predicate = "arith.cmpi", signed if dtype.kind == "int" else unsigned
    return Scalar(BOOL, builder.one(name, "i1", x, y, predicate=builder.integer(predicate, "i64")))


def unary(operation: str, a: Scalar) -> Scalar:
    builder = tracing.current(f"`{operation}` of a typed value")
    if operation == "pos":
        return a
    dtype = a.dtype
    checked(check_computes, dtype)
    if operation == "invert":
        if dtype.is_float:
            tracing.refuse(f"`~` needs an integer or a bool, not {describe(a)}")
        ones = builder.constant(1 if dtype.is_bool else -1, dtype)
        return Scalar(dtype, builder.one("arith.xori", dtype.ir, builder.ssa(a), ones))
    if dtype.is_bool:
        sign = {"neg": "`-`"}.get(operation, operation)
        tracing.refuse(f"{sign} of a bool", "convert it first, as in fx.Int32(x)")
    if builder.host:
        a, dtype = convert(a, I64), I64
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
