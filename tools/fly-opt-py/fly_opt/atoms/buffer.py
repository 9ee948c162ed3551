"""Copies and atomic updates through a buffer descriptor."""

from __future__ import annotations

from typing import Any

from fly_dialect.atoms.buffer import BufferAtomic, BufferCopy
from fly_dialect.dialect import type_of

from fly_opt import buffers, memory
from fly_opt.atoms.emitters import Copy, Memory, copies
from fly_opt.passes import intrinsics

Value = Any  # an ir.Value

# Atomic update → the end of the intrinsic's name for integers and for floats.
_UPDATES: dict[str, tuple[str | None, str | None]] = {
    "add": ("add", "fadd"),
    "max": ("smax", "fmax"),
    "min": ("smin", "fmin"),
    "and": ("and", None),
    "or": ("or", None),
    "inc": ("inc", None),
    "dec": ("dec", None),
}
_ATOMIC = "llvm.amdgcn.raw.ptr.buffer.atomic"


@copies(BufferCopy)
def copy(call: Copy) -> Value | None:
    """buffer_load to registers or buffer_store from them."""
    builder, op = call.builder, call.op
    if _is_buffer(call.source) and call.result is not None:
        soffset = scaled_soffset(call, call.source)
        at = buffers.place(builder, call.source.spec, call.source.pointer)
        return buffers.load(builder, call.result, at, soffset, op.cache)
    if _is_buffer(call.destination) and not isinstance(call.source, Memory):
        soffset = scaled_soffset(call, call.destination)
        at = buffers.place(builder, call.destination.spec, call.destination.pointer)
        buffers.store(builder, call.source, at, soffset, op.cache)
        return None
    raise ValueError(f"{op} copies between registers and memory behind a buffer descriptor")


@copies(BufferAtomic)
def atomic(call: Copy) -> Value:
    """buffer_atomic of one element or a pair of half words. Gives the source's value."""
    builder, op, destination = call.builder, call.op, call.destination
    if not _is_buffer(destination) or isinstance(call.source, Memory):
        raise ValueError(f"{op} updates memory behind a buffer descriptor with a value")
    scalar = op.element.rpartition("x")[2].rstrip(">")
    integers, floats = _UPDATES[op.op]
    update = floats if scalar.startswith(("f", "bf")) else integers
    if update is None:
        raise ValueError(f"there is no buffer atomic {op.op} of {op.element}")
    soffset = scaled_soffset(call, destination)
    at = buffers.place(builder, destination.spec, destination.pointer)
    value = memory.bitcast(builder, call.source, type_of(op.element))
    policy = builder.constant(0, 32)
    operands = [value, at.descriptor, at.offset, soffset, policy]
    with builder.ip, builder.loc:
        intrinsics.call(f"{_ATOMIC}.{update}", value.type, operands)
    return value


def _is_buffer(side: Any) -> bool:
    return isinstance(side, Memory) and buffers.is_buffer(side.spec)


def scaled_soffset(call: Copy, side: Memory) -> Value:
    """The state's `soffset`, which counts in elements, in bytes."""
    return buffers.scaled(call.builder, call.field("soffset"), side.spec.element)
