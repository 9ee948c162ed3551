"""Builders of the ops of `fly_rocdl`. See `fly_dialect.builders.ops`."""

from __future__ import annotations

from fly_dialect.amd.buffers import BUFFER_SPACE
from fly_dialect.builders.building import Ip, Loc, Value, build
from fly_dialect.dialect import pointer_of
from fly_dialect.types import PtrSpec

__all__ = ["get_buffer_rsrc", "make_buffer_ptr"]


def make_buffer_ptr(
    base: Value,
    stride: Value,
    size: Value,
    flags: Value | None = None,
    *,
    loc: Loc = None,
    ip: Ip = None,
) -> Value:
    """Builds a buffer pointer from a global pointer, an i16 stride, an i64 size in bytes and i32
    flags. The default flags are the target's."""
    pointer = pointer_of(base)
    result = PtrSpec(pointer.element, BUFFER_SPACE, pointer.align)
    operands = [base, stride, size, *([] if flags is None else [flags])]
    return build("make_ptr", operands, [result], loc=loc, ip=ip)


def get_buffer_rsrc(ptr: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    """Builds the descriptor of a buffer pointer, an !llvm.ptr<8>."""
    return build("fly_rocdl.get_buffer_rsrc", [ptr], loc=loc, ip=ip)
