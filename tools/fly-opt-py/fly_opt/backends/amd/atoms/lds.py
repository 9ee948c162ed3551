"""Copies to LDS that bypass registers, and LDS reads that transpose (CDNA).

A copy to LDS writes the threads' data consecutively from the wave's first address, so a swizzle of
the destination's type has no effect; a kernel permutes the source instead.
"""

from __future__ import annotations

from fly_dialect.amd.buffers import BUFFER_SPACE
from fly_dialect.atoms.amd.buffer import BufferCopyLds, BufferLoadAsyncLDS, GlobalLoadAsyncLDS
from fly_dialect.atoms.amd.lds_transpose import LdsReadTranspose
from fly_dialect.atoms.interface import CopyOp
from fly_dialect.bindings import ir

from fly_opt.atoms.emitters import Copy, Memory, copies
from fly_opt.backends.amd import buffers
from fly_opt.ir import pointers

_BUFFER_TO_LDS = {
    BufferCopyLds: "rocdl.raw.ptr.buffer.load.lds",
    BufferLoadAsyncLDS: "rocdl.raw.ptr.buffer.load.async.lds",
}


@copies(*_BUFFER_TO_LDS)
def buffer_to_lds(call: Copy[BufferCopyLds | BufferLoadAsyncLDS]) -> None:
    """Emits buffer_load … lds. `imm_offset` is encoded in the instruction, so it must be
    constant."""
    builder, op = call.builder, call.op
    source, target = _sides(call, BUFFER_SPACE, "with a buffer descriptor")
    elements, immediate = call.field("soffset"), call.field("imm_offset")
    soffset = buffers.scaled(builder, elements, source.spec.element)
    at = buffers.place(builder, source.spec, source.pointer, op.bit_size)
    size = builder.constant(op.bit_size // 8, 32)
    operands = [at.descriptor, target.pointer, size, at.offset, soffset, immediate]
    builder.op(_BUFFER_TO_LDS[type(op)], None, operands, buffers.policy(0))


@copies(GlobalLoadAsyncLDS)
def global_to_lds(call: Copy[GlobalLoadAsyncLDS]) -> None:
    """Emits global_load_lds; its size and offset are attributes."""
    builder, op = call.builder, call.op
    source, target = _sides(call, "global", "global")
    i32 = pointers.integer(32)
    attributes = {
        "size": ir.IntegerAttr.get(i32, op.bit_size // 8),
        "offset": ir.IntegerAttr.get(i32, 0),
        **buffers.policy(0),
    }
    address = pointers.swizzled(builder, source.pointer, source.spec, op.bit_size)
    builder.op("rocdl.global.load.async.lds", None, [address, target.pointer], attributes)


def _sides(call: Copy[CopyOp], space: str, described: str) -> tuple[Memory, Memory]:
    source, target = call.source, call.destination
    if (
        not isinstance(source, Memory)
        or source.spec.space != space
        or not isinstance(target, Memory)
        or target.spec.space != "shared"
    ):
        raise ValueError(f"{call.op} copies memory {described} to shared memory")
    return source, target


@copies(LdsReadTranspose)
def read_transposed(call: Copy[LdsReadTranspose]) -> ir.Value:
    """Emits ds_read_b64_tr_b16 or one of its variants."""
    builder, op, source = call.builder, call.op, call.source
    if not isinstance(source, Memory) or source.spec.space != "shared" or call.result is None:
        raise ValueError(f"{op} copies shared memory to registers")
    half_words = op.granularity == 16
    element = pointers.integer(16 if half_words else 32)
    type_ = ir.VectorType.get([op.bit_size // element.width], element)
    address = pointers.swizzled(builder, source.pointer, source.spec, op.bit_size)
    name = f"rocdl.ds.read.tr{op.granularity}.b{op.bit_size}"
    return builder.value(name, type_, [address])
