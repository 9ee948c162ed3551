"""Integer division, shifts and absolute value as ops of arith, with Python's semantics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_trace.core import tracing
from fly_trace.values.dtypes import BOOL, DType
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder


def test(builder: Builder, predicate: int, a: ir.Value, b: ir.Value) -> ir.Value:
    """arith.cmpi: 0 eq, 1 ne, 2 slt, 6 ult."""
    return builder.one("arith.cmpi", "i1", a, b, predicate=builder.integer(predicate, "i64"))


def division(
    builder: Builder, operation: str, x: ir.Value, y: ir.Value, known: Any, dtype: DType
) -> ir.Value:
    """Floor division ("floordiv") or its remainder ("mod"). `known` is the divisor if it is
    static."""

    def make(name: str, *operands: ir.Value) -> ir.Value:
        return builder.one(f"arith.{name}", dtype.ir, *operands)

    if dtype.kind == "uint":
        return make("divui" if operation == "floordiv" else "remui", x, y)
    if builder.host:
        # The host program has floordivsi; kernels spell it out, for LLVM has no such instruction.
        quotient = make("floordivsi", x, y)
        if operation == "floordiv":
            return quotient
        return make("subi", x, make("muli", quotient, y))
    if known is not None and known > 0 and known & (known - 1) == 0:
        # An arithmetic shift and a mask already round towards minus infinity.
        if operation == "floordiv":
            return make("shrsi", x, builder.constant(known.bit_length() - 1, dtype))
        return make("andi", x, builder.constant(known - 1, dtype))
    rest = make("remsi", x, y)
    zero = builder.constant(0, dtype)
    inexact = test(builder, 1, rest, zero)
    other_sign = test(builder, 2, make("xori", rest, y), zero)
    adjust = builder.one("arith.andi", "i1", inexact, other_sign)
    if operation == "mod":
        return make("select", adjust, make("addi", rest, y), rest)
    quotient = make("divsi", x, y)
    one = builder.constant(1, dtype)
    return make("select", adjust, make("subi", quotient, one), quotient)


def ceildiv(builder: Builder, x: ir.Value, y: ir.Value, dtype: DType) -> ir.Value:
    """The quotient rounded towards plus infinity, without an intermediate that could overflow."""

    def make(name: str, *operands: ir.Value) -> ir.Value:
        return builder.one(f"arith.{name}", dtype.ir, *operands)

    if builder.host:
        return make("ceildivsi", x, y)
    unsigned = dtype.kind == "uint"
    quotient = make("divui" if unsigned else "divsi", x, y)
    rest = make("remui" if unsigned else "remsi", x, y)
    zero, one = builder.constant(0, dtype), builder.constant(1, dtype)
    up = test(builder, 1, rest, zero)
    if not unsigned:
        same_sign = test(builder, 5, make("xori", rest, y), zero)
        up = builder.one("arith.andi", "i1", up, same_sign)
    return make("select", up, make("addi", quotient, one), quotient)


def shift(
    builder: Builder, operation: str, x: ir.Value, by: int | ir.Value, dtype: DType
) -> ir.Value:
    """`<<` or `>>` by a number or by a value of `dtype`. LLVM's shifts are undefined for amounts of
    the width or more, so the amount is limited."""
    right = {"int": "arith.shrsi"}.get(dtype.kind, "arith.shrui")
    name = right if operation == "rshift" else "arith.shli"
    if isinstance(by, int):
        if by < 0:
            raise ValueError("negative shift count")
        if by >= dtype.bits and name != "arith.shrsi":
            return builder.constant(0, dtype)
        amount = min(by, dtype.bits - 1)
        return builder.one(name, dtype.ir, x, builder.constant(amount, dtype))
    if builder.host:
        return builder.one(name, dtype.ir, x, by)
    last = builder.constant(dtype.bits - 1, dtype)
    kept = builder.one("arith.minui", dtype.ir, by, last)
    shifted = builder.one(name, dtype.ir, x, kept)
    if name == "arith.shrsi":
        return shifted
    inside = test(builder, 6, by, builder.constant(dtype.bits, dtype))
    return builder.one("arith.select", dtype.ir, inside, shifted, builder.constant(0, dtype))


def absolute(builder: Builder, x: ir.Value, dtype: DType) -> ir.Value:
    zero = builder.constant(0, dtype)
    negative = builder.one("arith.subi", dtype.ir, zero, x)
    if builder.host:
        return builder.one("arith.maxsi", dtype.ir, x, negative)
    less = test(builder, 2, x, zero)
    return builder.one("arith.select", dtype.ir, less, negative, x)


def check_index(value: Scalar, what: str) -> None:
    """Refuses a scalar that cannot be an index."""
    if not value.dtype.is_integer:
        tracing.refuse(
            f"{what} must be an integer, not a dynamic {value.dtype.name}",
            "compare and use fx.where for a mask" if value.dtype is BOOL else "convert it first",
        )
