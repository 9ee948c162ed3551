"""Pointers to elements in memory, shared memory or registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_dialect.types import PtrSpec

from fly_trace.core import locations, rules, tracing
from fly_trace.core.dialect_value import DialectValue, apply, values_of
from fly_trace.core.tracing import describe
from fly_trace.layouts.int_tuples import int_tuple
from fly_trace.memory.written_stores import converted_store
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import (
    BOOL,
    EVERY,
    I8,
    I32,
    I64,
    U8,
    DType,
    PromotionError,
)
from fly_trace.values.promotion import promote, weak
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vectors import Vector
from fly_trace.values.vector_shapes import vector_ir

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder

__all__ = [
    "AddressSpace",
    "Pointer",
    "add_offset",
    "apply_swizzle",
    "get_dyn_shared",
    "inttoptr",
    "ptr_load",
    "ptr_store",
    "ptrtoint",
    "recast_iter",
]


class AddressSpace:
    """The kinds of memory."""

    Generic, Global, Shared, Register = "generic", "global", "shared", "register"


class Access:
    """How kernels access a tensor. `text` is "r", "w" or "rw"; "r" if there is no access yet."""

    __slots__ = ("_reads", "_same", "_writes")

    def __init__(self, reads: bool = False, writes: bool = False):
        self._reads, self._writes = reads, writes
        self._same: Access | None = None

    def join(self, other: Access) -> None:
        """From now on both are one: a variable may hold either tensor."""
        one, two = self._root(), other._root()
        if one is not two:
            one.reads |= two.reads
            one.writes |= two.writes
            two._same = one

    def _root(self) -> Access:
        root = self
        while root._same is not None:
            root = root._same
        return root

    @property
    def reads(self) -> bool:
        return self._root()._reads

    @reads.setter
    def reads(self, value: bool) -> None:
        self._root()._reads = value

    @property
    def writes(self) -> bool:
        return self._root()._writes

    @writes.setter
    def writes(self, value: bool) -> None:
        self._root()._writes = value

    @property
    def text(self) -> str:
        return "rw" if self.reads and self.writes else "w" if self.writes else "r"


def dtype_of(element: str, like: DType | None = None) -> DType:
    """The element type of memory with the MLIR type `element`; `like` if it is that type."""
    if like is not None and element in (like.ir, like.memory):
        return like
    found = BOOL if element == "i1" else EVERY.get(element)
    if found is None:
        tracing.refuse(f"the language has no element type {element}")
    return found


def converted(value: Any, dtype: DType, name: str) -> Any:
    """Converts a number or vector to the element type of `name`. Only value-preserving conversions
    are implicit: beyond 2**31 elements an index wraps around in an i32, which nothing would say."""
    if isinstance(value, (Scalar, Vector)) and value.dtype is dtype:
        return value
    if (own := rules.current()) is not None:
        made = own.stored(value, dtype)
        if made is not NotImplemented:
            return made
    if not isinstance(value, (Scalar, Vector, bool, int, float)):
        tracing.refuse(f"an element of {name} must be a number, not {describe(value)}")
    try:
        if isinstance(value, (Scalar, Vector)):
            fits = promote(value.dtype, dtype) is dtype
        else:
            fits = isinstance(value, bool) or weak(value, dtype) is dtype
    except PromotionError as error:
        if not isinstance(value, (Scalar, Vector)):
            tracing.refuse(f"{name} contains {dtype.name}: {error}")
        fits = False
    if not fits:
        is_vector = isinstance(value, Vector)
        written = converted_store(locations.here(), dtype.title, is_vector)
        how = f"v.to(fx.{dtype.title})" if is_vector else f"fx.{dtype.title}(…)"
        tracing.refuse(
            f"{name} contains {dtype.name}, but the value is {describe(value)}",
            f"convert it: {written or how}",
        )
    return value.to(dtype) if isinstance(value, Vector) else convert(value, dtype)


@values_of(PtrSpec)
class Pointer(DialectValue):
    """A pointer to elements of `dtype`. `p + n` counts elements; `p[n]` loads and `p[n] = v`
    stores."""

    __slots__ = ("access", "dtype", "name")
    noun = "a pointer"

    def __init__(
        self, spec: PtrSpec, ssa: ir.Value | None, dtype: DType, access: Access, name: str
    ):
        super().__init__(spec, ssa)
        self.dtype = dtype
        self.access = access
        self.name = name

    @classmethod
    def wrapped(cls, spec: PtrSpec, ssa: ir.Value | None, origin: Any) -> Pointer:
        own = getattr(origin, "access", None) or Access()
        dtype = dtype_of(spec.element, getattr(origin, "dtype", None))
        return cls(spec, ssa, dtype, own, getattr(origin, "name", "a pointer"))

    @property
    def element_type(self) -> DType:
        return self.dtype

    @property
    def address_space(self) -> str:
        return self.spec.space

    memspace = address_space

    @property
    def alignment(self) -> int:
        """The alignment in bytes."""
        return self.spec.alignment

    def __add__(self, offset: Any) -> Pointer:
        return add_offset(self, offset)

    __radd__ = __add__

    def __sub__(self, offset: Any) -> Pointer:
        return add_offset(self, -offset)

    def __getitem__(self, offset: Any) -> Any:
        return (self + offset).load()

    def __setitem__(self, offset: Any, value: Any) -> None:
        (self + offset).store(value)

    def load(self, dtype: Any = None) -> Any:
        return ptr_load(self, dtype)

    def store(self, value: Any) -> None:
        ptr_store(value, self)

    def view(self, layout: Any) -> Any:
        """The tensor with `layout` that starts here."""
        return apply("make_view", self, layout)


class Address(DialectValue):
    """A pointer in the host function: an integer, which a kernel takes as a pointer."""

    __slots__ = ("dtype", "name")
    noun = "an address"

    def __init__(self, spec: PtrSpec, ssa: ir.Value | None, dtype: DType, name: str):
        super().__init__(spec, ssa)
        self.dtype = dtype
        self.name = name

    def with_ssa(self, ssa: ir.Value) -> Address:
        return Address(self.spec, ssa, self.dtype, self.name)

    @property
    def described(self) -> str:
        return f"the address {self.name}, which the host function can only pass to a kernel"

    def in_kernel(self, builder: Builder, ssa: ir.Value) -> Pointer:
        from fly_dialect.builders import ops

        made = builder.fly(ops.inttoptr, ssa, self.spec)
        return Pointer(self.spec, made, self.dtype, Access(True, True), self.name)


def pointer(value: Any, what: str) -> Pointer:
    if not isinstance(value, Pointer):
        tracing.refuse(f"{what} takes a pointer, not {describe(value)}", "fx.get_iter(tensor)")
    return value


def add_offset(ptr: Any, offset: Any) -> Any:
    """The pointer advanced by `offset` elements. The iterator of a coordinate tensor is a
    coordinate."""
    if not isinstance(ptr, Pointer):
        ptr = int_tuple(ptr, "fx.add_offset")
    return apply("add_offset", ptr, int_tuple(offset, "fx.add_offset"))


def apply_swizzle(ptr: Any, swizzle: Any) -> Any:
    """The pointer with its offsets swizzled."""
    return apply("apply_swizzle", pointer(ptr, "fx.apply_swizzle"), swizzle)


def get_dyn_shared(dtype: DType | None = None) -> Pointer:
    """The start of the shared memory that the launch requests with `smem=`. The default element
    type is a byte."""
    from fly_dialect.builders import ops

    builder = tracing.kernel("fx.get_dyn_shared")
    ssa = builder.fly(ops.get_dyn_shared)
    spec = builder.spec(ssa)
    raw = Pointer(spec, ssa, U8 if dtype is None else I8, Access(), "the dynamic shared memory")
    return raw if dtype is None else recast_iter(dtype, raw)


def recast_iter(result_type: Any, src: Any) -> Pointer:
    """The same address as a pointer to another element type, or with another pointer type."""
    from fly_dialect.builders import ops

    src = pointer(src, "fx.recast_iter")
    builder = tracing.current("fx.recast_iter")
    if isinstance(result_type, DType):
        align = max(src.spec.alignment, result_type.bytes)
        spec = PtrSpec(result_type.memory, src.spec.space, align, src.spec.swizzle)
        dtype = result_type
    elif isinstance(result_type, PtrSpec):
        spec, dtype = result_type, dtype_of(result_type.element, src.dtype)
    else:
        tracing.refuse(
            f"fx.recast_iter takes an element type first, not {describe(result_type)}",
            "as in fx.recast_iter(fx.Float32, pointer)",
        )
    try:
        ssa = builder.fly(ops.recast_iter, src.value(builder), spec)
    except ValueError as error:
        tracing.refuse(str(error))
    return Pointer(spec, ssa, dtype, src.access, src.name)


def inttoptr(result_type: PtrSpec, src: Any) -> Pointer:
    """Converts an address to a pointer type: i64 for global memory, i32 for shared memory."""
    from fly_dialect.builders import ops

    builder = tracing.kernel("fx.inttoptr")
    wide = I64 if result_type.space in ("global", "generic") else I32
    address = builder.ssa(convert(src, wide))
    try:
        ssa = builder.fly(ops.inttoptr, address, result_type)
    except ValueError as error:
        tracing.refuse(str(error))
    return Pointer(result_type, ssa, dtype_of(result_type.element), Access(True, True), "a pointer")


def ptrtoint(ptr: Any) -> Scalar:
    """The address: i64 for global memory, i32 for shared memory."""
    from fly_dialect.builders import ops

    if isinstance(ptr, Address):
        return Scalar(I64, ptr.ssa)
    ptr = pointer(ptr, "fx.ptrtoint")
    builder = tracing.kernel("fx.ptrtoint")
    ptr.access.reads = ptr.access.writes = True  # the address may be used for any access
    wide = I64 if ptr.spec.space in ("global", "generic") else I32
    return Scalar(wide, builder.fly(ops.ptrtoint, ptr.value(builder)))


def ptr_load(ptr: Any, result_type: Any = None) -> Any:
    """Loads the element at a pointer; with a vector type (`fx.Float32x4`), as many elements."""
    from fly_dialect.builders import ops

    ptr = pointer(ptr, "fx.ptr_load")
    builder = tracing.kernel("fx.ptr_load")
    ptr.access.reads = True
    lanes = getattr(result_type, "lanes", None)
    dtype = getattr(result_type, "dtype", None) or result_type or ptr.dtype
    if lanes is not None:
        value = builder.fly(ops.ptr_load, ptr.value(builder), vector_ir(dtype, lanes))
        return Vector(value, (lanes,), dtype)
    value = builder.fly(ops.ptr_load, ptr.value(builder), dtype.memory)
    return Scalar(I8, value).to(BOOL) if dtype is BOOL else Scalar(dtype, value)


def ptr_store(value: Any, ptr: Any) -> None:
    """Stores a number, or a vector to consecutive elements."""
    from fly_dialect.builders import ops

    ptr = pointer(ptr, "fx.ptr_store")
    builder = tracing.kernel("fx.ptr_store")
    ptr.access.writes = True
    value = converted(value, ptr.dtype, ptr.name)
    if isinstance(value, Vector):
        builder.fly(ops.ptr_store, value.value, ptr.value(builder))
        return
    stored = builder.ssa(value)
    if ptr.dtype is BOOL:
        stored = builder.one("arith.extui", "i8", stored)
    builder.fly(ops.ptr_store, stored, ptr.value(builder))
