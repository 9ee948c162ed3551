"""`flydsl.expr.rocdl.universal`: waits, buffer descriptors and copies, where FlyDSL's take more
than the language's."""

from __future__ import annotations

from typing import Any, NoReturn

from fly_dialect.types import PtrSpec
from fly_trace.backends.amd import rocdl as _language
from fly_trace.backends.amd import scheduling
from fly_trace.backends.amd.scheduling import asyncmark, emit
from fly_trace.core import tracing
from fly_trace.gpu.immediates import number
from fly_trace.layouts.layouts import get_layout
from fly_trace.memory.pointers import Pointer
from fly_trace.memory.view_construction import get_iter, make_view
from fly_trace.values.dtypes import I16, I32, I64, DType

from fly.flydsl._mlir import ir
from fly.flydsl._mlir.dialects import llvm
from fly.flydsl.numbers.operators import typed
from fly.flydsl.numbers.raw import lift
from fly.flydsl.numbers.types import dtype_of

__all__ = [
    "MFMA",
    "BufferAtomic",
    "BufferAtomicAdd",
    "BufferAtomicMax",
    "BufferAtomicMin",
    "BufferAtomicPkAdd",
    "BufferCopyLDS64b",
    "asyncmark",
    "get_buffer_rsrc",
    "make_buffer_ptr",
    "make_buffer_tensor",
    "mask_dsrd",
    "mask_dswr",
    "mask_mfma",
    "mask_vmem_rd",
    "s_buffer_load",
    "s_waitcnt",
    "sched_barrier",
    "sched_group_barrier",
    "wait_asyncmark",
]

BUFFER = "#fly_rocdl.buffer_desc"
mask_mfma, mask_vmem_rd, mask_dsrd, mask_dswr = 0x008, 0x020, 0x100, 0x200


def known(value: Any) -> Any:
    """A number that is known while tracing, given as one of Python, of the language or as an
    attribute of MLIR."""
    if value is None or isinstance(value, int):
        return value
    found = getattr(value, "number", None)
    return found if found is not None else getattr(value, "value", value)


def s_waitcnt(
    bitfield: Any = None, *, vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None
) -> None:
    """Waits until at most so many accesses are under way; `bitfield` is the instruction's word."""
    if bitfield is None:
        _language.s_waitcnt(vmcnt=known(vmcnt), lgkmcnt=known(lgkmcnt), expcnt=known(expcnt))
        return
    if not (vmcnt is lgkmcnt is expcnt is None):
        raise TypeError("s_waitcnt takes a bitfield or counters, not both")
    word = number(known(bitfield), "the bitfield of s_waitcnt", 0xFFFF)
    emit("s.waitcnt", "s_waitcnt", bitfield=f"{word} : i32")


def wait_asyncmark(count: Any = 0) -> None:
    """Waits until at most `count` groups of asynchronous copies are pending; None: for none."""
    _language.wait_asyncmark(0xFFFF if count is None else known(count))


def sched_barrier(mask: Any = 0, **_: Any) -> None:
    """Prevents instructions from moving across, except those of `mask`."""
    scheduling.sched_barrier(known(mask))


def sched_group_barrier(mask: Any, size: Any, group_id: Any, **_: Any) -> None:
    """Makes the next `size` instructions of `mask` a group."""
    scheduling.sched_group_barrier(known(mask), known(size), known(group_id))


def element_of(kind: Any, what: str) -> DType:
    """An element type, given as FlyDSL's or MLIR's."""
    dtype = kind if isinstance(kind, DType) else dtype_of(kind)
    if dtype is None:
        tracing.refuse(f"{what} takes an element type, not {tracing.describe(kind)}")
    return dtype


def MFMA(m: int, n: int, k: int, elem_ty_ab: Any, elem_ty_acc: Any = None) -> Any:
    """The matrix instruction with these extents and element types."""
    ab = element_of(elem_ty_ab, "MFMA")
    if elem_ty_acc is None:
        return _language.MFMA(m, n, k, ab)
    return _language.MFMA(m, n, k, ab, element_of(elem_ty_acc, "MFMA"))


def BufferAtomic(atomic_op: Any, val_type: Any) -> Any:
    """An atomic update of memory with a descriptor."""
    return _language.BufferAtomic(str(atomic_op), element_of(val_type, "BufferAtomic"))


def BufferAtomicAdd(val_type: Any) -> Any:
    return BufferAtomic("add", val_type)


def BufferAtomicMax(val_type: Any) -> Any:
    return BufferAtomic("max", val_type)


def BufferAtomicMin(val_type: Any) -> Any:
    return BufferAtomic("min", val_type)


def BufferAtomicPkAdd(val_type: Any) -> Any:
    """The addition of two 16-bit floats at a time."""
    return _language.BufferAtomicPkAdd(element_of(val_type, "BufferAtomicPkAdd"))


def BufferCopyLDS64b() -> NoReturn:
    raise ValueError("no target copies 8 bytes to LDS at a time: use BufferCopyLDS32b or …128b")


def make_buffer_ptr(ptr: Pointer, num_records_bytes: Any = None) -> Pointer:
    """A pointer with a buffer descriptor, by default of all memory behind the pointer."""
    builder = tracing.kernel("fx.rocdl.make_buffer_ptr")
    size = I64(0xFFFFFFFF if num_records_bytes is None else num_records_bytes)
    spec = PtrSpec(ptr.spec.element, BUFFER, ptr.spec.alignment)
    operands = [ptr.value(builder), *(builder.ssa(one) for one in (I16(0), size, I32(flags())))]
    op = builder.op("fly.make_ptr", [builder.fly_type(spec)], operands)
    return Pointer(spec, op.results[0], ptr.dtype, ptr.access, ptr.name)


def flags() -> int:
    """The last word of a buffer descriptor: raw data; on RDNA, without a check of bounds."""
    from fly.flydsl.runtime.device import is_rdna_arch

    word = 7 << 12 | 4 << 15
    return word | 1 << 24 | 2 << 28 if is_rdna_arch() else word


def make_buffer_tensor(tensor: Any, max_size: bool = True, *, num_records_bytes: Any = None) -> Any:
    """The tensor with a buffer descriptor: loads beyond its bytes give 0, stores are dropped.
    With `max_size`, its bytes are all memory; otherwise those of its layout."""
    if num_records_bytes is None:
        return _language.make_buffer_tensor(tensor, max_size)
    return make_view(make_buffer_ptr(get_iter(tensor), num_records_bytes), get_layout(tensor))


def get_buffer_rsrc(ptr: Any) -> Any:
    """The buffer descriptor of a pointer, as a value of MLIR."""
    builder = tracing.kernel("fx.rocdl.get_buffer_rsrc")
    kind = builder.type("!llvm.ptr<8>")
    return lift(builder.op("fly_rocdl.get_buffer_rsrc", [kind], [ptr.value(builder)]).results[0])


def s_buffer_load(ptr: Any, offset: Any, *, count: int = 1, cache_modifier: int = 0) -> Any:
    """One i32, or a vector of four, from `offset` i32 on behind a buffer pointer, by a scalar load.
    The offset is the same in all lanes of a wave."""
    if type(count) is not int or count not in (1, 4):
        raise ValueError(f"s_buffer_load loads 1 or 4 dwords, not {count!r}")
    if not isinstance(ptr, Pointer):
        raise TypeError(f"s_buffer_load takes a buffer pointer, not {tracing.describe(ptr)}")
    if ptr.spec.space != BUFFER:
        raise ValueError("s_buffer_load takes a pointer of make_buffer_ptr or make_buffer_tensor")
    word = ir.IntegerType.get_signless(32)
    kind = word if count == 1 else ir.VectorType.get([count], word)
    whole = llvm.ptrtoint(ir.IntegerType.get_signless(128), get_buffer_rsrc(ptr))
    resource = llvm.bitcast(ir.VectorType.get([4], word), whole)
    operands = [resource, I32(offset) * 4, I32(cache_modifier)]
    name = "i32" if count == 1 else f"v{count}i32"
    return typed(
        lift(llvm.call_intrinsic(kind, f"llvm.amdgcn.s.buffer.load.{name}", operands, [], []))
    )
