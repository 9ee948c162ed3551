"""Calls of LLVM's intrinsics by name.

The LLVM dialect has an operation for each mathematical intrinsic too, but MLIR's passes that lower
to a vendor's dialect refuse modules that hold them: to upstream they are a lowering gone wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

PREFIX = "llvm."
# What formulas call besides the functions of fly-select-math.
FLOAT_PARTS = {"llvm.fptosi.sat.i32.f64", "llvm.ldexp.f64.i32"}


def call(
    name: str, result: ir.Type, operands: list[ir.Value], fast: ir.Attribute | None = None
) -> ir.Value:
    """The result of calling intrinsic `name` at the current insertion point; `fast` are the LLVM
    dialect's fast-math flags."""
    from fly_dialect.bindings import ir

    attributes: dict[str, ir.Attribute] = {
        "intrin": ir.StringAttr.get(name),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
    }
    if fast is not None:
        attributes["fastmathFlags"] = fast
    return ir.Operation.create("llvm.call_intrinsic", [result], operands, attributes).results[0]
