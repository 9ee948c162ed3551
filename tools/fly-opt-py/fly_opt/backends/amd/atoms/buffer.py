"""Copies and atomic updates through a buffer descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from fly_dialect.atoms.amd.buffer import BufferAtomic, BufferCopy
from fly_dialect.atoms.universal import ThreadCopy
from fly_dialect.dialect import type_of

from fly_opt.atoms.emitters import Copy, Memory, copies
from fly_opt.backends.amd import buffers
from fly_opt.backends.amd.intrinsics import BUFFER_ATOMIC
from fly_opt.ir import intrinsics, pointers

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

# Atomic update → suffix of the intrinsic's name for integers and for floats.
_UPDATES: dict[str, tuple[str | None, str | None]] = {
    "add": ("add", "fadd"),
    "max": ("smax", "fmax"),
    "min": ("smin", "fmin"),
    "and": ("and", None),
    "or": ("or", None),
    "inc": ("inc", None),
    "dec": ("dec", None),
}


@copies(BufferCopy)
def copy(call: Copy[BufferCopy]) -> ir.Value | None:
    """Emits a buffer_load to registers or a buffer_store from them."""
    builder, op = call.builder, call.op
    source, destination = call.source, call.destination
    if _is_buffer(source) and call.result is not None:
        at, soffset = _place(call, source)
        return buffers.load(builder, call.result, at, soffset, op.cache)
    if _is_buffer(destination) and not isinstance(source, Memory):
        at, soffset = _place(call, destination)
        buffers.store(builder, source, at, soffset, op.cache)
        return None
    raise ValueError(f"{op} copies between registers and memory with a buffer descriptor")


@copies(BufferAtomic)
def atomic(call: Copy[BufferAtomic]) -> ir.Value:
    """Emits a buffer_atomic of one element or a pair of half words. Returns the source's value."""
    builder, op, destination = call.builder, call.op, call.destination
    if not _is_buffer(destination) or isinstance(call.source, Memory):
        raise ValueError(f"{op} updates memory with a buffer descriptor with a value")
    scalar = op.element.rpartition("x")[2].rstrip(">")
    integers, floats = _UPDATES[op.op]
    update = floats if scalar.startswith(("f", "bf")) else integers
    if update is None:
        raise ValueError(f"there is no buffer atomic {op.op} of {op.element}")
    at, soffset = _place(call, destination)
    value = pointers.bitcast(builder, call.source, type_of(op.element))
    policy = builder.constant(0, 32)
    operands = [value, at.descriptor, at.offset, soffset, policy]
    ip, loc = builder.ip, builder.loc
    assert ip is not None, "a call is being written"
    assert loc is not None, "a call is being written"
    with ip, loc:
        intrinsics.call(f"{BUFFER_ATOMIC}.{update}", value.type, operands)
    return value


def _is_buffer(side: Memory | ir.Value | None) -> TypeGuard[Memory]:
    return isinstance(side, Memory) and buffers.holds(side.spec)


def _place(call: Copy[ThreadCopy], side: Memory) -> tuple[buffers.Place, ir.Value]:
    """Returns the location of the access, and the state's `soffset` in bytes instead of
    elements."""
    builder = call.builder
    soffset = buffers.scaled(builder, call.field("soffset"), side.spec.element)
    return buffers.place(builder, side.spec, side.pointer, call.op.copied_bits), soffset
