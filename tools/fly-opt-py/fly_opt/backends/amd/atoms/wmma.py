"""Matrix instructions of RDNA and gfx1250, by a table of their names."""

from __future__ import annotations

from fly_dialect.atoms.amd.wmma import (
    Gfx11Wmma,
    Gfx120xWmma,
    Gfx1250Wmma,
    Gfx1250WmmaScale,
    Wave32,
)
from fly_dialect.bindings import ir
from fly_dialect.dialect import type_of
from fly_dialect.types import bits

from fly_opt.atoms.emitters import Multiply, Operands, multiplies
from fly_opt.backends.amd.atoms.mfma import accumulator, matrix_format, packed
from fly_opt.ir import pointers

_LANES = 32
_EIGHT = {"f8E4M3FN": "fp8", "f8E5M2": "bf8"}
_C_MODIFIERS = ("none", "neg", "abs", "neg_abs")
_ROWS = ("row0", "row1")


def _bool(value: bool) -> ir.BoolAttr:
    return ir.BoolAttr.get(value)


def _signs(op: Wave32) -> dict[str, ir.Attribute]:
    return {"signA": _bool(op.sign_a), "signB": _bool(op.sign_b), "clamp": _bool(op.clamp)}


def _is_integer(element: str) -> bool:
    return element.lstrip("su").startswith("i")


def _of_rdna(op: Wave32) -> Operands:
    """A and B: a vector of half words, with bfloat16 as integers; narrower types packed into words.
    On gfx11 each half of the wave holds all of A and B."""
    copies = 2 if isinstance(op, Gfx11Wmma) else 1
    values = op.m * op.k * copies // _LANES
    if bits(op.a.lstrip("su")) < 16:
        one = pointers.words(values * bits(op.a.lstrip("su")) // 32)
    else:
        one = ir.VectorType.get([values], type_of("i16" if op.a == "bf16" else op.a))
    return Operands(one, one, accumulator(op, _LANES))


@multiplies(_of_rdna, Gfx11Wmma, Gfx120xWmma)
def rdna(call: Multiply[Wave32]) -> ir.Value:
    op = call.op
    integers = _is_integer(op.a)
    name = f"rocdl.wmma.{op.acc}.{op.shape}.{_elements(op)}"
    operands = [call.a, call.b, call.c]
    return call.builder.value(name, call.c.type, operands, _signs(op) if integers else None)


def _elements(op: Wave32) -> str:
    """Returns the suffix of the op's name: the types of A and B."""
    if op.a in _EIGHT:
        return f"{_EIGHT[op.a]}_{_EIGHT[op.b]}"
    return f"iu{bits(op.a.lstrip('su'))}" if _is_integer(op.a) else op.a


def _of_gfx1250(op: Gfx1250Wmma) -> Operands:
    values = op.m * op.k // _LANES
    if bits(op.a) < 16:
        one = pointers.words(values * bits(op.a) // 32)
    else:
        one = ir.VectorType.get([values], type_of(op.a))
    return Operands(one, one, accumulator(op, _LANES))


@multiplies(_of_gfx1250, Gfx1250Wmma)
def gfx1250(call: Multiply[Gfx1250Wmma]) -> ir.Value:
    op = call.op
    attributes = _signs(op) if _is_integer(op.a) else {"modC": _c_modifier(0)}
    name = f"rocdl.wmma.{op.acc}.{op.shape}.{_elements(op)}"
    return call.builder.value(name, call.c.type, [call.a, call.b, call.c], attributes)


def _c_modifier(code: int) -> ir.Attribute:
    if code >= len(_C_MODIFIERS):
        raise ValueError(f"modC must be from 0 to {len(_C_MODIFIERS) - 1}, not {code}")
    return ir.Attribute.parse(f"#rocdl<wmma_c_modifier {_C_MODIFIERS[code]}>")


def _scaled_operands(op: Gfx1250WmmaScale) -> Operands:
    return Operands(
        packed(op.m, op.k, op.a, _LANES),
        packed(op.n, op.k, op.b, _LANES),
        accumulator(op, _LANES),
    )


@multiplies(_scaled_operands, Gfx1250WmmaScale)
def scaled(call: Multiply[Gfx1250WmmaScale]) -> ir.Value:
    op = call.op
    exponents = ir.Attribute.parse("#rocdl<wmma_matrix_scale_format e8>")
    attributes: dict[str, ir.Attribute] = {
        "modC": _c_modifier(op.mod_c),
        "scaleAType": _row(op.opsel_a),
        "fmtScaleA": exponents,
        "scaleBType": _row(op.opsel_b),
        "fmtScaleB": exponents,
        "reuseA": _bool(op.reuse_a),
        "reuseB": _bool(op.reuse_b),
    }
    form = "f4"
    if op.m == 16:
        form = "f8f6f4"
        attributes |= {"fmtA": matrix_format(op.a), "fmtB": matrix_format(op.b)}
    block = "16" if op.block_size == 16 else ""
    name = f"rocdl.wmma.scale{block}.{op.acc}.{op.shape}.{form}"
    scales = [call.field("scale_a"), call.field("scale_b")]
    operands = [call.a, call.b, call.c, *scales]
    return call.builder.value(name, call.c.type, operands, attributes)


def _row(opsel: int) -> ir.Attribute:
    return ir.Attribute.parse(f"#rocdl<wmma_matrix_scale {_ROWS[opsel]}>")
