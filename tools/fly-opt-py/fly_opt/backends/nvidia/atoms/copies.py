"""cp.async, ldmatrix and stmatrix.

Source: PTX ISA 8.8, "cp.async", "ldmatrix", "stmatrix".
"""

from __future__ import annotations

from fly_dialect.atoms.nvidia.async_copy import AsyncCopy
from fly_dialect.atoms.nvidia.matrix_copy import LoadMatrix, MatrixCopy, StoreMatrix
from fly_dialect.bindings import ir

from fly_opt.atoms.emitters import Copy, Memory, copies
from fly_opt.ir import pointers
from fly_opt.ir.builder import Builder

ROW_BITS = 128  # of a matrix, which a swizzle has to keep together


def intrinsic(
    builder: Builder, name: str, result: ir.Type | None, operands: list[ir.Value]
) -> ir.Operation:
    """Calls `llvm.nvvm.NAME`."""
    attributes = {
        "intrin": ir.StringAttr.get(f"llvm.nvvm.{name}"),
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
    }
    return builder.op("llvm.call_intrinsic", result, operands, attributes)


@copies(AsyncCopy)
def cp_async(call: Copy[AsyncCopy]) -> None:
    builder, op = call.builder, call.op
    source, target = call.source, call.destination
    if (
        not isinstance(source, Memory)
        or source.spec.space != "global"
        or not isinstance(target, Memory)
        or target.spec.space != "shared"
    ):
        raise ValueError(f"{op} copies global memory to shared memory")
    size = op.bit_size
    operands = [pointers.swizzled(builder, one.pointer, one.spec, size) for one in (target, source)]
    cached = "cg" if size == 128 else "ca"  # cg, past the L1 cache, has 16 bytes only
    intrinsic(builder, f"cp.async.{cached}.shared.global.{size // 8}", None, operands)


@copies(LoadMatrix)
def ldmatrix(call: Copy[LoadMatrix]) -> ir.Value:
    builder, op, source = call.builder, call.op, call.source
    if not isinstance(source, Memory) or source.spec.space != "shared" or call.result is None:
        raise ValueError(f"{op} copies shared memory to registers")
    words = ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * op.count)})>")
    i32 = pointers.integer(32)
    result = i32 if op.count == 1 else words
    address = pointers.swizzled(builder, source.pointer, source.spec, ROW_BITS)
    made = intrinsic(builder, _name("ldmatrix", op), result, [address]).results[0]
    if op.count > 1:
        vector = builder.value("llvm.mlir.poison", pointers.words(op.count), [])
        for index in range(op.count):
            part = pointers.extract(builder, made, index, i32)
            place = builder.constant(index, 32)
            vector = builder.value("llvm.insertelement", vector.type, [vector, part, place])
        made = vector
    return pointers.bitcast(builder, made, call.result)


@copies(StoreMatrix)
def stmatrix(call: Copy[StoreMatrix]) -> None:
    builder, op, target = call.builder, call.op, call.destination
    if isinstance(call.source, Memory) or not isinstance(target, Memory):
        raise ValueError(f"{op} copies registers to shared memory")
    if target.spec.space != "shared" or pointers.width(call.source.type) != 32 * op.count:
        raise ValueError(f"{op} copies {op.count} registers to shared memory")
    words = pointers.bitcast(builder, call.source, pointers.words(op.count))
    parts = [words]
    if op.count > 1:
        places = [builder.constant(index, 32) for index in range(op.count)]
        i32 = pointers.integer(32)
        parts = [builder.value("llvm.extractelement", i32, [words, place]) for place in places]
    address = pointers.swizzled(builder, target.pointer, target.spec, ROW_BITS)
    intrinsic(builder, _name("stmatrix", op), None, [address, *parts])


def _name(name: str, op: MatrixCopy) -> str:
    trans = ".trans" if op.trans else ""
    return f"{name}.sync.aligned.m8n8.x{op.count}{trans}.b16.p3"
