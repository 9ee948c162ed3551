"""Tensors with buffer descriptors: loads out of bounds return zero, stores are dropped."""

from __future__ import annotations

from typing import Any

from fly_dialect.types import SPACES, PtrSpec

from fly_trace.core import tracing
from fly_trace.layouts.layout_algebra import cosize
from fly_trace.layouts.layouts import get_layout
from fly_trace.memory.pointers import Pointer, pointer
from fly_trace.memory.view_construction import get_iter, make_view, tensor_of
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import I64

__all__ = ["get_buffer_rsrc", "make_buffer_ptr", "make_buffer_tensor"]

BUFFER_SPACE = "#fly_rocdl.buffer_desc"
MAX_BYTES = 2**32 - 1


def make_buffer_ptr(ptr: Any, num_records_bytes: Any = None) -> Pointer:
    """A buffer pointer with a descriptor of `num_records_bytes` bytes from `ptr`, a pointer to
    global memory. The default is the maximum of a descriptor."""
    base = pointer(ptr, "fx.rocdl.make_buffer_ptr")
    if base.spec.space != "global":
        tracing.refuse(
            f"fx.rocdl.make_buffer_ptr takes a pointer to global memory, not to {base.spec.space}"
        )
    builder = tracing.kernel("fx.rocdl.make_buffer_ptr")
    size = convert(MAX_BYTES if num_records_bytes is None else num_records_bytes, I64)
    stride = builder.one("arith.constant", "i16", value=builder.integer(0, "i16"))
    # Without flags, the descriptor has the target's: a trace is for any target.
    operands = [base.value(builder), stride, builder.ssa(size)]
    spec = PtrSpec(base.spec.element, BUFFER_SPACE, base.spec.align)
    ssa = builder.fly_op("make_ptr", operands, {}, spec)
    return Pointer(spec, ssa, base.dtype, base.access, base.name)


def make_buffer_tensor(tensor: Any, max_size: bool = True, *, num_records_bytes: Any = None) -> Any:
    """The tensor with a buffer descriptor, for buffer copies. The descriptor covers the maximum of
    a 32-bit size; with `max_size=False` it covers only the tensor."""
    source = tensor_of(tensor, "fx.rocdl.make_buffer_tensor")
    layout = get_layout(source)
    if num_records_bytes is None and not max_size:
        extent = cosize(layout)
        wide = convert(extent, I64) if not isinstance(extent, int) else int(extent)
        num_records_bytes = source.dtype.bytes_of(wide)
    return make_view(make_buffer_ptr(get_iter(source), num_records_bytes), layout)


def get_buffer_rsrc(ptr: Any) -> Any:
    """The descriptor itself, an `!llvm.ptr<8>` in MLIR."""
    base = pointer(ptr, "fx.rocdl.get_buffer_rsrc")
    if base.spec.space in SPACES:
        tracing.refuse("fx.rocdl.get_buffer_rsrc takes a pointer with a buffer descriptor")
    builder = tracing.kernel("fx.rocdl.get_buffer_rsrc")
    return builder.fly_op("fly_rocdl.get_buffer_rsrc", [base.value(builder)], {})
