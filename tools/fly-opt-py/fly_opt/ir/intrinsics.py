"""Calls of LLVM's intrinsics by name.

The LLVM dialect also has an op for each math intrinsic, but MLIR's passes that lower to a vendor's
dialect treat those as illegal and reject the module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

PREFIX = "llvm."
# Intrinsics that formulas call, besides the functions of fly-select-math.
FLOAT_PARTS = {"llvm.fptosi.sat.i32.f64", "llvm.ldexp.f64.i32"}


def call(
    name: str, result: ir.Type, operands: list[ir.Value], fast: ir.Attribute | None = None
) -> ir.Value:
    """Calls intrinsic `name` at the current insertion point and returns the result; `fast` are the
    LLVM dialect's fast-math flags."""
    from fly_dialect.bindings import ir

    attributes: dict[str, ir.Attribute] = {
        "intrin": ir.StringAttr.get(name),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
    }
    if fast is not None:
        attributes["fastmathFlags"] = fast
    return ir.Operation.create("llvm.call_intrinsic", [result], operands, attributes).results[0]
