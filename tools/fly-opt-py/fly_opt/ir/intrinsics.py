"""Calls of LLVM's intrinsics by name.

The LLVM dialect has an operation for each mathematical intrinsic too, but convert-math-to-rocdl and
convert-gpu-to-rocdl refuse modules that hold them: to upstream they are a lowering gone wrong.
"""

from __future__ import annotations

from typing import Any

PREFIX = "llvm."
# What formulas call besides the functions of fly-select-math.
FLOAT_PARTS = {
    *("llvm.amdgcn.frexp.mant.f64", "llvm.amdgcn.frexp.exp.i32.f64"),
    *("llvm.fptosi.sat.i32.f64", "llvm.ldexp.f64.i32"),
}
# Atomic updates through a buffer descriptor; rocdl has ops for some of them only.
BUFFER_ATOMIC = "llvm.amdgcn.raw.ptr.buffer.atomic"
BUFFER_ATOMICS = {
    f"{BUFFER_ATOMIC}.{update}"
    for update in ("add", "smax", "smin", "and", "or", "inc", "dec", "fadd", "fmax", "fmin")
}


def call(name: str, result: Any, operands: list[Any], fast: Any = None) -> Any:
    """The result of calling intrinsic `name` at the current insertion point; `fast` are the LLVM
    dialect's fast-math flags."""
    from fly_dialect.bindings import ir

    attributes = {
        "intrin": ir.StringAttr.get(name),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
    }
    if fast is not None:
        attributes["fastmathFlags"] = fast
    return ir.Operation.create("llvm.call_intrinsic", [result], operands, attributes).results[0]
