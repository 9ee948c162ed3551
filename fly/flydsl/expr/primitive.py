"""`flydsl.expr.primitive`: the language's functions of layouts, memory and atoms, where FlyDSL's
take more than the language's: types of MLIR, values of MLIR, numbers of bits."""

from __future__ import annotations

from typing import Any

import fly_trace.expr as _language
from fly_dialect.types import PtrSpec
from fly_trace.core import tracing
from fly_trace.memory.pointers import Pointer
from fly_trace.memory.tensors import Tensor
from fly_trace.values.dtypes import DType
from fly_trace.values.vector.vectors import VectorType

from fly.flydsl.numbers.raw import escape, lift, lower
from fly.flydsl.numbers.types import dtype_of, vector_parts

__all__ = [
    "UniversalFMA",
    "add_offset",
    "copy",
    "copy_atom_call",
    "get",
    "get_iter",
    "inttoptr",
    "make_fragment_like",
    "make_ptr",
    "make_rmem_tensor",
    "printf",
    "ptr_load",
    "ptr_store",
    "recast_iter",
    "to_llvm_ptr",
]


def element(kind: Any) -> Any:
    """An element type, given as the language's or MLIR's; anything else unchanged."""
    if kind is None or isinstance(kind, (DType, VectorType, PtrSpec)):
        return kind
    if not hasattr(kind, "context") and hasattr(kind, "ir_type"):
        kind = kind.ir_type  # a class of the program's that names a type
    parts = vector_parts(kind) if hasattr(kind, "context") else None
    if parts is not None:
        return VectorType(parts[1], parts[0])
    return dtype_of(kind) or kind


def copy(copy_atom: Any, src: Any, dst: Any, *, pred: Any = None, **state: Any) -> None:
    """Copies a view, atom by atom. Registers of another element type take the bits."""
    _language.copy(copy_atom, *_of_one_type(src, dst), pred=pred, **state)


def copy_atom_call(copy_atom: Any, src: Any, dst: Any, *, pred: Any = None) -> None:
    """Executes a copy instruction once, on bits as `copy`."""
    _language.copy_atom_call(copy_atom, *_of_one_type(src, dst), pred=pred)


def _of_one_type(src: Any, dst: Any) -> tuple[Any, Any]:
    """Two tensors of a copy. If their types differ and one is in registers, that one is seen as
    elements of the other's type."""
    if not (isinstance(src, Tensor) and isinstance(dst, Tensor)) or src.dtype == dst.dtype:
        return src, dst
    if src.spec.space == "register":
        return _seen_as(src, dst.dtype), dst
    return src, _seen_as(dst, src.dtype) if dst.spec.space == "register" else dst


def _seen_as(registers: Tensor, dtype: DType) -> Tensor:
    layout = _language.recast_layout(registers.layout, registers.dtype.bits, dtype.bits)
    return _language.make_view(_language.recast_iter(dtype, _language.get_iter(registers)), layout)


def make_fragment_like(tensor: Any, dtype: Any = None) -> Any:
    """Registers with a tensor's shape."""
    return _language.make_fragment_like(tensor, element(dtype))


def make_rmem_tensor(shape_or_layout: Any, dtype: Any) -> Any:
    """Registers with a static layout, or with a shape."""
    return _language.make_rmem_tensor(shape_or_layout, element(dtype))


def recast_iter(result_type: Any, src: Any) -> Any:
    """The same address as a pointer to another element type."""
    return _language.recast_iter(element(result_type), src)


def ptr_load(ptr: Any, result_type: Any = None) -> Any:
    """The element at a pointer, or a vector of them; of another type, the bits that are there."""
    kind = element(result_type)
    held = getattr(kind, "dtype", kind)
    if isinstance(held, DType) and isinstance(ptr, Pointer) and held.memory != ptr.spec.element:
        ptr = _language.recast_iter(held, ptr)
    return _language.ptr_load(ptr, kind)


def ptr_store(value: Any, ptr: Any) -> None:
    """Stores a number, or a vector to consecutive elements."""
    _language.ptr_store(lift(value), ptr)


def add_offset(ptr: Any, offset: Any) -> Any:
    """The pointer advanced by `offset` elements."""
    return _language.add_offset(ptr, lift(offset))


def inttoptr(result_type: Any, src: Any) -> Any:
    """An address as a pointer."""
    return _language.inttoptr(result_type, lift(src))


def get_iter(memref: Any) -> Any:
    """The iterator of a tensor; a pointer is its own."""
    return memref if isinstance(memref, Pointer) else _language.get_iter(memref)


def get(int_tuple: Any, mode: Any) -> Any:
    """A mode of an int tuple, layout or tensor; a single integer as such."""
    return _language.get_(int_tuple, mode)


def UniversalFMA(ty: Any) -> Any:
    """The fused multiplication and addition of an element type."""
    return _language.UniversalFMA(element(ty))


def to_llvm_ptr(ptr: Any, llvm_address_space: int | None = None) -> Any:
    """The pointer as one of LLVM."""
    builder = tracing.kernel("fx.to_llvm_ptr")
    escape(ptr)
    spaces = {"global": 1, "shared": 3, "register": 5}
    space = spaces.get(ptr.spec.space, 0) if llvm_address_space is None else llvm_address_space
    kind = builder.type(f"!llvm.ptr<{space}>" if space else "!llvm.ptr")
    return lift(builder.op("fly.to_llvm_ptr", [kind], [ptr.value(builder)]).results[0])


def make_ptr(result_type: PtrSpec, args: Any, *, dict_attrs: Any = None) -> Any:
    """A pointer of a type: registers and shared memory are allocated, a buffer descriptor is made
    of its parts."""
    builder = tracing.kernel("fx.make_ptr")
    attributes = {} if dict_attrs is None else {"dictAttrs": dict_attrs}
    kind = builder.fly_type(result_type)
    op = builder.op("fly.make_ptr", [kind], [lower(one) for one in args], attributes)
    made = lift(op.results[0])
    assert isinstance(made, Pointer)
    return made


def printf(*args: Any, format_str: str = "") -> None:
    """Prints a line for each thread: a format with `{}`, then values. Values alone are printed with
    blanks between them."""
    text, values = (args[0], args[1:]) if args and isinstance(args[0], str) else (format_str, args)
    if not text:
        text = " ".join("{}" for _ in values)
    _language.printf(text.rstrip("\n"), *(lift(one) for one in values))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_language, name)
