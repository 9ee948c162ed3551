"""Conversions between f32 and floats of 8 bits by the instruction cvt, from sm_89 on.

    arith.extf    cvt.rn.f16x2.e4m3x2, cvt.rn.f16x2.e5m2x2
    arith.truncf  cvt.rn.satfinite.e4m3x2.f32, cvt.rn.satfinite.e5m2x2.f32

An instruction converts two elements. Narrowing saturates, but an overflow has to give NaN (E4M3)
or infinity (E5M2), as everywhere else: what rounds to more than the format's maximum is replaced.

Source: PTX ISA 8.8, "cvt".
"""

from __future__ import annotations

from fly_dialect.bindings import ir

from fly_opt.ir import pointers, vectors
from fly_opt.ir.builder import Builder
from fly_opt.ir.intrinsics import call
from fly_opt.passes.math.narrow_floats import Format, floats

# Magnitudes from which on, or above which, a number rounds to more than the greatest one.
_OVERFLOW = {"e4m3": 464.0, "e5m2": 61440.0}
_GREATER, _GREATER_EQUAL = 2, 3  # arith's predicates of ordered comparisons


def _widen(builder: Builder, form: Format, word: ir.Value, count: int) -> list[ir.Value]:
    """Converts two bytes at a time: the lower ones of the word, then the upper ones."""
    pair = ir.VectorType.get([2], ir.F16Type.get())
    name = f"llvm.nvvm.{form.name}x2.to.f16x2.rn"
    found = []
    for half in range((count + 1) // 2):
        codes = word
        if half:
            codes = builder.value("arith.shrui", word.type, [word, builder.constant(16, 32)])
        codes = builder.value("arith.trunci", pointers.integer(16), [codes])
        wide = _call(builder, name, pair, [codes])
        found.append(builder.value("arith.extf", floats(2), [wide]))
    return found


def _narrow(builder: Builder, form: Format, values: ir.Value, count: int) -> list[ir.Value]:
    i16, i32 = pointers.integer(16), pointers.integer(32)
    word = builder.constant(0, 32)
    for half in range((count + 1) // 2):
        low, high = (vectors.extract(builder, values, 2 * half + i, None) for i in range(2))
        # The first operand becomes the upper byte.
        pair = _call(builder, f"llvm.nvvm.ff.to.{form.name}x2.rn", i16, [high, low])
        wide = builder.value("arith.extui", i32, [pair])
        for place, value in enumerate((low, high)):
            wide = _with_overflow(builder, form, wide, value, 8 * place)
        if half:
            wide = builder.value("arith.shli", i32, [wide, builder.constant(16, 32)])
        word = builder.value("arith.ori", i32, [word, wide])
    return [word]


def _with_overflow(
    builder: Builder, form: Format, codes: ir.Value, value: ir.Value, shift: int
) -> ir.Value:
    """Replaces the code of the greatest number, at bit `shift`, by that of an overflow, which is
    the next code in both formats."""
    i32, i1 = pointers.integer(32), pointers.integer(1)
    magnitude = _call(builder, "llvm.fabs.f32", value.type, [value])
    limit = builder.constant_of(ir.FloatAttr.get(ir.F32Type.get(), _OVERFLOW[form.name]))
    # 464 is halfway between 448 and 480 and rounds to 448, whose code is even; 61440 is halfway
    # between 57344, whose code is odd, and infinity.
    predicate = _GREATER if form.name == "e4m3" else _GREATER_EQUAL
    attributes = {"predicate": ir.IntegerAttr.get(pointers.integer(64), predicate)}
    over = builder.value("arith.cmpf", i1, [magnitude, limit], attributes)
    step = builder.value("arith.extui", i32, [over])
    step = builder.value("arith.shli", i32, [step, builder.constant(shift, 32)])
    return builder.value("arith.addi", i32, [codes, step])


def _call(builder: Builder, name: str, kind: ir.Type, operands: list[ir.Value]) -> ir.Value:
    """Calls an intrinsic at the builder's insertion point."""
    assert builder.ip is not None
    assert builder.loc is not None
    with builder.ip, builder.loc:
        return call(name, kind, operands)


FORMATS = {
    "f8E4M3FN": Format("e4m3", 4, _widen, _narrow),
    "f8E5M2": Format("e5m2", 4, _widen, _narrow),
}
