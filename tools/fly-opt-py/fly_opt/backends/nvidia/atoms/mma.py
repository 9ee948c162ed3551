"""mma.sync.

Source: PTX ISA 8.8, "mma".
"""

from __future__ import annotations

from fly_dialect.atoms.nvidia.mma import MmaSync
from fly_dialect.bindings import ir
from fly_dialect.types import bits

from fly_opt.atoms.emitters import Multiply, Operands, multiplies
from fly_opt.backends.nvidia.atoms.copies import intrinsic
from fly_opt.backends.nvidia.atoms.wgmma import NAMES
from fly_opt.ir import pointers
from fly_opt.ir.builder import Builder
from fly_opt.ir.storage import storage_type

LANES = 32


def _operands(op: MmaSync) -> Operands:
    words = [pointers.words(rows * op.k * bits(op.a) // LANES // 32) for rows in (op.m, op.n)]
    count = op.m * op.n // LANES
    return Operands(words[0], words[1], ir.VectorType.get([count], storage_type(op.acc)))


@multiplies(_operands, MmaSync)
def mma(call: Multiply[MmaSync]) -> ir.Value:
    op, builder = call.op, call.builder
    name = f"mma.m{op.m}n{op.n}k{op.k}.row.col"
    half = op.a == "f16"
    if half:
        name += f".{op.acc}.{op.acc}"
    elif op.a == "i8":
        name += ".s8"
    elif op.a.startswith("f8"):
        name += f".f32.{NAMES[op.a]}.{NAMES[op.b]}.f32"
    else:
        name += f".{NAMES[op.a]}"
    pair = ir.VectorType.get([2], ir.F16Type.get()) if half else pointers.integer(32)
    inputs = [*_parts(builder, call.a, pair), *_parts(builder, call.b, pair)]
    packed = op.acc == "f16"
    if packed:
        words = pointers.bitcast(builder, call.c, pointers.words(2))
        sums, element = _parts(builder, words, pair), pair
    else:
        element = ir.VectorType(call.c.type).element_type
        sums = _elements(builder, call.c, element)
    result = ir.Type.parse(f"!llvm.struct<({', '.join([str(element)] * len(sums))})>")
    made = intrinsic(builder, name, result, [*inputs, *sums]).results[0]
    parts = [pointers.extract(builder, made, index, element) for index in range(len(sums))]
    if packed:
        parts = [pointers.bitcast(builder, part, pointers.integer(32)) for part in parts]
    vector = ir.VectorType.get([len(parts)], parts[0].type)
    value = builder.value("llvm.mlir.poison", vector, [])
    for index, part in enumerate(parts):
        place = builder.constant(index, 32)
        value = builder.value("llvm.insertelement", vector, [value, part, place])
    return pointers.bitcast(builder, value, call.c.type)


def _elements(builder: Builder, vector: ir.Value, element: ir.Type) -> list[ir.Value]:
    places = [builder.constant(index, 32) for index in range(ir.VectorType(vector.type).shape[0])]
    return [builder.value("llvm.extractelement", element, [vector, place]) for place in places]


def _parts(builder: Builder, words: ir.Value, type_: ir.Type) -> list[ir.Value]:
    """The words of an operand, as the type that the instruction takes."""
    parts = _elements(builder, words, pointers.integer(32))
    return [pointers.bitcast(builder, part, type_) for part in parts]
