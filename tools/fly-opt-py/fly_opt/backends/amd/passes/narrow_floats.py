"""Conversions between f32 and floats of 8 bits or fewer, by each target's own instructions.

    arith.extf    v_cvt_pk_f32_fp8, v_cvt_scalef32_pk_f32_fp4, v_cvt_scalef32_pk32_f32_fp6
    arith.truncf  v_cvt_pk_fp8_f32, v_cvt_scalef32_pk_fp4_f32, v_cvt_scalef32_2xpk16_fp6_f32

See `fly_opt.passes.math.narrow_floats` for vectors and padding.

Sources: the CDNA3, CDNA4 and RDNA4 ISA manuals, "Vector ALU" and the opcode tables; MLIR's rocdl
dialect for the operands of its ops.
"""

from __future__ import annotations

from fly_dialect.bindings import ir

from fly_opt.ir import pointers, vectors
from fly_opt.ir.builder import Builder
from fly_opt.passes.math.narrow_floats import Format, floats, shuffled


def _one(builder: Builder) -> ir.Value:
    """The scale of a scaled instruction, which uses the exponent of an f32."""
    return builder.constant_of(ir.FloatAttr.get(ir.F32Type.get(), 1.0))


def _chosen(name: str, number: int) -> dict[str, ir.Attribute]:
    return {name: ir.IntegerAttr.get(pointers.integer(32), number)}


def _widen_eight(builder: Builder, form: Format, word: ir.Value, count: int) -> list[ir.Value]:
    """Converts two bytes at a time: the lower ones of the word, then the upper ones."""
    name = f"rocdl.cvt.pk.f32.{form.name}"
    halves = [ir.BoolAttr.get(upper) for upper in (False, True)[: (count + 1) // 2]]
    return [builder.value(name, floats(2), [word], {"wordSel": half}) for half in halves]


def _narrow_eight(builder: Builder, form: Format, values: ir.Value, count: int) -> list[ir.Value]:
    i32 = pointers.integer(32)
    word = vectors.poison(builder, i32)
    for upper in (False, True)[: (count + 1) // 2]:
        pair = [vectors.extract(builder, values, 2 * upper + i, None) for i in range(2)]
        attributes = {"wordSel": ir.BoolAttr.get(upper)}
        word = builder.value(f"rocdl.cvt.pk.{form.name}.f32", i32, [*pair, word], attributes)
    return [word]


def _widen_four(builder: Builder, form: Format, word: ir.Value, count: int) -> list[ir.Value]:
    """Converts two elements at a time: those of one byte of the word."""
    name, operands = f"rocdl.cvt.scalef32.pk.f32.{form.name}", [word, _one(builder)]
    return [
        builder.value(name, floats(2), operands, _chosen("srcSelIndex", byte))
        for byte in range((count + 1) // 2)
    ]


def _narrow_four(builder: Builder, form: Format, values: ir.Value, count: int) -> list[ir.Value]:
    i32, one = pointers.integer(32), _one(builder)
    word = vectors.poison(builder, i32)
    for byte in range((count + 1) // 2):
        pair = [vectors.extract(builder, values, 2 * byte + i, None) for i in range(2)]
        name, chosen = f"rocdl.cvt.scalef32.pk.{form.name}.f32", _chosen("dstSelIndex", byte)
        word = builder.value(name, i32, [word, *pair, one], chosen)
    return [word]


def _widen_six(builder: Builder, form: Format, words: ir.Value, _: int) -> list[ir.Value]:
    name = f"rocdl.cvt.scalef32.pk32.f32.{form.name}"
    return [builder.value(name, floats(32), [words, _one(builder)])]


def _narrow_six(builder: Builder, form: Format, values: ir.Value, _: int) -> list[ir.Value]:
    """The instruction interleaves its two operands: the even elements and the odd ones."""
    halves = [shuffled(builder, values, range(first, 32, 2)) for first in (0, 1)]
    name = f"rocdl.cvt.scalef32.2xpk16.{form.name}.f32"
    return [builder.value(name, pointers.words(6), [*halves, _one(builder)])]


# `Target.narrow_floats` says which of them a target converts.
FORMATS = {
    "f8E4M3FNUZ": Format("fp8", 4, _widen_eight, _narrow_eight),
    "f8E5M2FNUZ": Format("bf8", 4, _widen_eight, _narrow_eight),
    "f8E4M3FN": Format("fp8", 4, _widen_eight, _narrow_eight),
    "f8E5M2": Format("bf8", 4, _widen_eight, _narrow_eight),
    "f6E2M3FN": Format("fp6", 32, _widen_six, _narrow_six),
    "f6E3M2FN": Format("bf6", 32, _widen_six, _narrow_six),
    "f4E2M1FN": Format("fp4", 8, _widen_four, _narrow_four),
}
