"""Inline assembly of wgmma, for which LLVM has no intrinsics.

Accumulators are written asynchronously. They pass through the assembly that starts a product, and
through the one that waits for it, as operands that are tied to results: so LLVM neither copies nor
reads them in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fly_dialect.bindings import ir

from fly_opt.ir import pointers
from fly_opt.ir.builder import Builder

if TYPE_CHECKING:
    from fly_opt.passes.llvm.conversion import Conversion


def wait(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Lowers fly_nvvm.wgmma_wait."""
    pending = ir.IntegerAttr(op.attributes["pending"]).value
    sums = conversion.value(op.operands[0])
    return tied(conversion.builder, f"wgmma.wait_group.sync.aligned {pending};", sums, [])


def registers(count: int) -> str:
    """The operands of `count` accumulator registers."""
    return "{" + ", ".join(f"${index}" for index in range(count)) + "}"


def count_of(type_: ir.Type) -> int:
    """The 32-bit registers of a vector."""
    return pointers.width(type_) // 32


def tied(builder: Builder, text: str, sums: ir.Value, inputs: Sequence[ir.Value]) -> ir.Value:
    """Emits assembly that updates a vector of sums: registers $0, $1, …; `inputs` are i32 and i64
    values, in the registers behind them."""
    whole = sums.type
    count = count_of(whole)
    wide = isinstance(ir.VectorType(whole).element_type, ir.F32Type)
    element = ir.F32Type.get() if wide else pointers.integer(32)
    letter = "f" if wide else "r"
    vector = ir.VectorType.get([count], element)
    sums = pointers.bitcast(builder, sums, vector)
    places = [builder.constant(index, 32) for index in range(count)]
    parts = [builder.value("llvm.extractelement", element, [sums, place]) for place in places]
    given = ["l" if pointers.width(value.type) == 64 else "r" for value in inputs]
    constraints = [f"={letter}"] * count + given + [str(n) for n in range(count)]
    attributes = {
        "asm_string": ir.StringAttr.get(text),
        "constraints": ir.StringAttr.get(",".join([*constraints, "~{memory}"])),
        "has_side_effects": ir.UnitAttr.get(),
    }
    result = ir.Type.parse(f"!llvm.struct<({', '.join([str(element)] * count)})>")
    made = builder.value("llvm.inline_asm", result, [*inputs, *parts], attributes)
    value = builder.value("llvm.mlir.poison", vector, [])
    for index, place in enumerate(places):
        part = pointers.extract(builder, made, index, element)
        value = builder.value("llvm.insertelement", vector, [value, part, place])
    return pointers.bitcast(builder, value, whole)
