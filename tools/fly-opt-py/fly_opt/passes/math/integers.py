"""math.ipowi: powers of integers, by repeated squaring in a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

EQ, NE, SLT, SGT = 0, 1, 2, 4  # arith's CmpIPredicate


def power(base: ir.Value, exponent: ir.Value) -> ir.Value:
    """Computes base^exponent of signed integers of one width, modulo 2^width. A negative power is 0
    except for 1 and -1; for 0 it is undefined."""
    from fly_dialect.bindings import ir

    kind = base.type
    i1, i64 = (ir.IntegerType.get_signless(width) for width in (1, 64))

    def make(
        name: str, *operands: ir.Value, result: ir.Type = kind, **attributes: ir.Attribute
    ) -> ir.Value:
        return ir.Operation.create(name, [result], list(operands), attributes).results[0]

    def constant(number: int) -> ir.Value:
        return make("arith.constant", value=ir.IntegerAttr.get(kind, number))

    def test(predicate: int, a: ir.Value, b: ir.Value) -> ir.Value:
        number = ir.IntegerAttr.get(i64, predicate)
        return make("arith.cmpi", a, b, result=i1, predicate=number)

    zero, one, minus_one = constant(0), constant(1), constant(-1)
    loop = ir.Operation.create("scf.while", [kind] * 3, [one, base, exponent], regions=2)
    before, after = (region.blocks.append(*[kind] * 3) for region in loop.regions)
    with ir.InsertionPoint(before):
        left = test(SGT, before.arguments[2], zero)
        ir.Operation.create("scf.condition", [], [left, *before.arguments])
    with ir.InsertionPoint(after):
        product, square, rest = after.arguments
        odd = test(NE, make("arith.andi", rest, one), zero)
        grown = make("arith.select", odd, make("arith.muli", product, square), product)
        squared = make("arith.muli", square, square)
        ir.Operation.create("scf.yield", [], [grown, squared, make("arith.shrsi", rest, one)])
    # To a negative power, 1 is 1, -1 alternates, and all others are 0.
    alternating = make("arith.select", test(EQ, make("arith.andi", exponent, one), zero), one, base)
    inverse = make("arith.select", test(EQ, base, minus_one), alternating, zero)
    inverse = make("arith.select", test(EQ, base, one), one, inverse)
    return make("arith.select", test(SLT, exponent, zero), inverse, loop.results[0])
