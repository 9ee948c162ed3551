"""Conversions between integers of 128 bits and floats. LLVM has them for AMD's targets only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fly_trace.values.dtypes import F32, F64, I32, I64, U64, U128, DType

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.values.elementwise import Elementwise

# float → its exponent's bias, its fraction's stored bits, and the integer of its width.
_LAYOUTS = {F32: (127, 23, I32), F64: (1023, 52, I64)}


def from_integer(ops: Elementwise, x: ir.Value, source: DType, dtype: DType) -> ir.Value:
    """An i128 or u128 as an f32 or f64, rounded to nearest even.

    The magnitude is shifted until its first bit is 1. Its upper 64 bits, the last of which stands
    for all lower ones too, round as the whole number would; a power of two then scales them."""
    bias, fraction, integer = _LAYOUTS[dtype]
    zero = ops.constant(0, U128)
    if source.kind == "int":
        negative = ops.test("lt", x, zero, source)
        x = ops.select(negative, ops.op("arith.subi", U128, zero, x), x, U128)
    leading = ops.op("math.ctlz", U128, x)
    leading = ops.op("arith.minui", U128, leading, ops.constant(127, U128))
    shifted = ops.op("arith.shli", U128, x, leading)
    upper = ops.op("arith.shrui", U128, shifted, ops.constant(64, U128))
    upper = ops.op("arith.trunci", U64, upper)
    lower = ops.op("arith.trunci", U64, shifted)
    rest = ops.op("arith.extui", U64, ops.test("ne", lower, ops.constant(0, U64), U64))
    rounded = ops.op("arith.uitofp", dtype, ops.op("arith.ori", U64, upper, rest))
    places = ops.op("arith.trunci", integer, leading)
    exponent = ops.op("arith.subi", integer, ops.constant(bias + 64, integer), places)
    bits = ops.op("arith.shli", integer, exponent, ops.constant(fraction, integer))
    result = ops.op("arith.mulf", dtype, rounded, ops.op("arith.bitcast", dtype, bits))
    if source.kind == "int":
        result = ops.select(negative, ops.op("arith.negf", dtype, result), result, dtype)
    return result


def from_float(ops: Elementwise, x: ir.Value, dtype: DType) -> ir.Value:
    """An f64 as an i128 or u128, truncated; undefined out of range."""
    bias, fraction, integer = _LAYOUTS[F64]
    bits = ops.op("arith.bitcast", integer, x)
    exponent = ops.op("arith.shrui", U64, bits, ops.constant(fraction, U64))
    exponent = ops.op("arith.andi", I64, exponent, ops.constant(2047, U64))
    exponent = ops.op("arith.subi", I64, exponent, ops.constant(bias, I64))
    stored = ops.op("arith.andi", U64, bits, ops.constant((1 << fraction) - 1, U64))
    whole = ops.op("arith.ori", U64, stored, ops.constant(1 << fraction, U64))
    # An f64 of 2**52 or more is an integer; any other one has fewer than 64 bits.
    places = ops.op("arith.subi", I64, exponent, ops.constant(fraction, I64))
    places = ops.op("arith.andi", I64, places, ops.constant(127, I64))
    places = ops.op("arith.extui", U128, places)
    large = ops.op("arith.shli", U128, ops.op("arith.extui", U128, whole), places)
    negative = ops.test("lt", x, ops.constant(0.0, F64), F64)
    zero = ops.constant(0, U128)
    large = ops.select(negative, ops.op("arith.subi", U128, zero, large), large, U128)
    small = ops.op("arith.fptosi", I64, x)
    small = ops.op("arith.extsi", U128, small)
    is_large = ops.test("ge", exponent, ops.constant(fraction, I64), I64)
    return ops.select(is_large, large, small, dtype)
