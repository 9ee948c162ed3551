"""Matrix instructions of CDNA, by a table of their names."""

from __future__ import annotations

from fly_dialect.atoms.amd.mfma import Mfma, MfmaScale
from fly_dialect.atoms.matrix import WaveMma
from fly_dialect.bindings import ir
from fly_dialect.dialect import type_of
from fly_dialect.types import bits

from fly_opt.atoms.emitters import Multiply, Operands, multiplies
from fly_opt.ir import pointers

_LANES = 64
# Names of the 8-bit formats in the mnemonics, the same for both encodings.
_EIGHT = {"f8E4M3FNUZ": "fp8", "f8E4M3FN": "fp8", "f8E5M2FNUZ": "bf8", "f8E5M2": "bf8"}


def _name(op: Mfma) -> str:
    """Returns the suffix of the op's name. Newer instructions have a dot before the type; those
    that take bfloat16 as CDNA2 does end in `.1k`."""
    values = op.m * op.k // _LANES
    if op.a in _EIGHT:
        return f"{op.shape}.{_EIGHT[op.a]}.{_EIGHT[op.b]}"
    if op.a == "i8":
        return f"{op.shape}{'.' if values >= 8 else ''}i8"
    if op.a == "f32" and values == 2:
        return f"{op.shape}.xf32"
    if op.a == "bf16":
        return f"{op.shape}{ {2: 'bf16', 4: 'bf16.1k', 8: '.bf16'}[values] }"
    return f"{op.shape}{'.' if values == 8 else ''}{op.a}"


def _operands(op: Mfma) -> Operands:
    """A and B: one float, a vector of floats or half words, or bytes as an integer or as words."""
    values = op.m * op.k // _LANES
    element = op.a
    if bits(element) == 8:
        one = pointers.integer(8 * values) if values <= 8 else pointers.words(values // 4)
    elif values == 1:
        one = type_of(element)
    else:
        # Only the newest instructions take bfloat16 as such; the others take i16.
        element = "i16" if element == "bf16" and values < 8 else element
        one = ir.VectorType.get([values], type_of(element))
    return Operands(one, one, accumulator(op, _LANES))


def accumulator(op: WaveMma, lanes: int) -> ir.VectorType:
    """Returns the type of C and D: each thread's share of the tile."""
    return ir.VectorType.get([op.m * op.n // lanes], type_of(op.acc))


@multiplies(_operands, Mfma)
def mfma(call: Multiply[Mfma]) -> ir.Value:
    builder, i32 = call.builder, pointers.integer(32)
    # The field that permutes B in other instructions negates operands in those of f64.
    blgp = "mfma_neg_modifier" if call.op.acc == "f64" else "mfma_perm_b"
    attributes = {
        "cbsz": ir.IntegerAttr.get(i32, 0),
        "abid": ir.IntegerAttr.get(i32, 0),
        "blgp": ir.Attribute.parse(f"#rocdl<{blgp} none>"),
    }
    name = f"rocdl.mfma.{call.op.acc}.{_name(call.op)}"
    return builder.value(name, call.c.type, [call.a, call.b, call.c], attributes)


# The formats of the scaled instructions, as the op's attributes name them.
FORMATS = {
    "f8E4M3FN": "fp8_e4m3",
    "f8E5M2": "fp8_e5m2",
    "f6E2M3FN": "fp6_e2m3",
    "f6E3M2FN": "fp6_e3m2",
    "f4E2M1FN": "fp4_e2m1",
}


def matrix_format(element: str) -> ir.Attribute:
    return ir.Attribute.parse(f"#rocdl<matrix_format {FORMATS[element]}>")


def packed(rows: int, k: int, element: str, lanes: int) -> ir.Type:
    """Returns the type of the words that hold a thread's share of rows × k elements."""
    return pointers.words(rows * k * bits(element) // lanes // 32)


def _scaled_operands(op: MfmaScale) -> Operands:
    return Operands(
        packed(op.m, op.k, op.a, _LANES),
        packed(op.n, op.k, op.b, _LANES),
        accumulator(op, _LANES),
    )


@multiplies(_scaled_operands, MfmaScale)
def scaled(call: Multiply[MfmaScale]) -> ir.Value:
    op, i32 = call.op, pointers.integer(32)
    attributes = {
        "cbsz": matrix_format(op.a),
        "blgp": matrix_format(op.b),
        "opselA": ir.IntegerAttr.get(i32, op.opsel_a),
        "opselB": ir.IntegerAttr.get(i32, op.opsel_b),
    }
    scales = [call.field("scale_a"), call.field("scale_b")]
    name = f"rocdl.mfma.scale.{op.acc}.{op.shape}.f8f6f4"
    operands = [call.a, call.b, call.c, *scales]
    return call.builder.value(name, call.c.type, operands, attributes)
