"""The parts of an f64 ±m·2^k with 1/2 <= m < 1, by its bits.

Formulas use them for f64 that are as large as an f32 or are 0, infinite or NaN: subnormal f64 do
not occur. The significand of 0, infinities and NaNs is the number itself, and the exponent is 0.
"""

from __future__ import annotations

from fly_dialect.bindings import ir

BITS = 52
MASK = 0x7FF
HALF = 1022  # the biased exponent of 1/2


def significand(value: ir.Value) -> ir.Value:
    bits = _cast(value, _i64())
    kept = _made("andi", bits, _number(~(MASK << BITS)))
    made = _cast(_made("ori", kept, _number(HALF << BITS)), value.type)
    return _select(_is_ordinary(_biased(bits)), made, value)


def exponent(value: ir.Value) -> ir.Value:
    biased = _biased(_cast(value, _i64()))
    power = _made("subi", biased, _number(HALF))
    chosen = _select(_is_ordinary(biased), power, _number(0))
    i32 = ir.IntegerType.get_signless(32)
    return ir.Operation.create("arith.trunci", [i32], [chosen]).results[0]


def _biased(bits: ir.Value) -> ir.Value:
    return _made("andi", _made("shrui", bits, _number(BITS)), _number(MASK))


def _is_ordinary(biased: ir.Value) -> ir.Value:
    """Returns whether a biased exponent is neither 0 nor the greatest: b - 1 < 2046, unsigned."""
    less = _made("subi", biased, _number(1))
    predicate = ir.IntegerAttr.get(_i64(), 6)  # ult
    i1 = ir.IntegerType.get_signless(1)
    operands, attributes = [less, _number(MASK - 1)], {"predicate": predicate}
    return ir.Operation.create("arith.cmpi", [i1], operands, attributes).results[0]


def _i64() -> ir.IntegerType:
    return ir.IntegerType.get_signless(64)


def _number(value: int) -> ir.Value:
    attributes = {"value": ir.IntegerAttr.get(_i64(), value)}
    return ir.Operation.create("arith.constant", [_i64()], [], attributes).results[0]


def _cast(value: ir.Value, kind: ir.Type) -> ir.Value:
    return ir.Operation.create("arith.bitcast", [kind], [value]).results[0]


def _made(name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    return ir.Operation.create(f"arith.{name}", [a.type], [a, b]).results[0]


def _select(condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    return ir.Operation.create("arith.select", [a.type], [condition, a, b]).results[0]
