"""`flydsl.expr.struct`: structs, unions and where they are stored. `fx.struct` is also the
decorator."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from types import ModuleType
from typing import Any

from fly_dialect.types import PtrSpec
from fly_trace.core import locations, tracing
from fly_trace.memory.pointers import Access, Pointer, get_dyn_shared
from fly_trace.memory.struct_members import members_of
from fly_trace.memory.structs import AlignType, is_constant, is_record, up
from fly_trace.values.dtypes import U8

from fly.flydsl.expr.primitive import add_offset
from fly.flydsl.structs import layout
from fly.flydsl.structs.arrays import Align, Array
from fly.flydsl.structs.empty import Empty
from fly.flydsl.structs.layout import align_of, layout_of, size_of
from fly.flydsl.structs.values import RESERVED, composite

__all__ = ["Align", "Arena", "Array", "Empty", "SharedAllocator", "Storage", "Struct", "Union"]
__all__ += ["is_composite_type", "is_specializable_struct_type", "is_struct_type"]
__all__ += ["struct", "union"]

_storage_layout = layout_of
ALIGN = 16  # bytes: the widest access
# Where a kernel has made its allocator, by the builder of its trace.
_MADE: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def _checked(name: str, owner: str) -> str:
    if name.startswith("_"):
        raise ValueError(f"{owner}: field name {name!r} must not start with underscore")
    if name in RESERVED:
        raise ValueError(f"{owner}: field name {name!r} is reserved")
    return name


class _Maker(type):
    """Makes `fx.struct` a decorator, and `fx.Struct["a": fx.Int32, …]` a type."""

    overlap = False

    def __call__(cls, plain: type | None = None, /, **ignored: Any) -> Any:
        if plain is None:  # @fx.struct(…): FlyDSL takes options, and ignores them
            return cls
        # Types may be local to the function that contains the class.
        frame = sys._getframe(1)
        while frame.f_back is not None and locations.is_ours(frame.f_code.co_filename):
            frame = frame.f_back
        names = {**frame.f_locals, **vars(plain)}
        fields = inspect.get_annotations(plain, eval_str=True, locals=names)
        for name in fields:
            _checked(name, plain.__name__)
        members = members_of(plain, fields)
        return composite(plain.__name__, fields, cls.overlap, plain.__module__, members)

    def __getitem__(cls, items: Any) -> Any:
        given = items if isinstance(items, tuple) else (items,)
        if not given:
            raise ValueError("an inline type requires at least one field")
        fields: dict[str, Any] = {}
        for index, item in enumerate(given):
            named = isinstance(item, slice)
            if named and (not isinstance(item.start, str) or item.stop is None):
                raise TypeError(f"a named field is written {cls.__name__}['name': Type]")
            name = _checked(item.start, "an inline type") if named else f"_{index}"
            if name in fields:
                raise ValueError(f"duplicate inline field name {name!r}")
            fields[name] = item.stop if named else item
        shown = ", ".join(f"{name}: {layout.name_of(kind)}" for name, kind in fields.items())
        return composite(f"{cls.__name__.title()}[{shown}]", fields, cls.overlap, __name__)


class struct(metaclass=_Maker):
    """Makes a class with annotated fields a struct."""


class union(metaclass=_Maker):
    """Makes a class with annotated fields a union: the fields share their memory."""

    overlap = True


Struct, Union = struct, union


# -- typed addresses -------------------------------------------------------------------------------


class _StorageKind(type):
    def __getitem__(cls, kind: Any) -> Any:
        return _storage_of(kind)


@functools.lru_cache(maxsize=1024)
def _storage_of(kind: Any) -> Any:
    return _StorageKind(f"Storage[{layout.name_of(kind)}]", (Storage,), {"_target_type": kind})


class Storage(metaclass=_StorageKind):
    """`fx.Storage[T](pointer)`: memory for a T at an address. `peek()` reads the value and
    `poke(value)` writes it; the fields of a struct or union are storage too."""

    _target_type: Any = None

    def __init__(self, ptr: Any, prebuilt: dict[str, Any] | None = None):
        self._ptr = ptr
        self._prebuilt = prebuilt

    def __getattr__(self, name: str) -> Any:
        kind = self._target_type
        if name.startswith("__") or not is_record(kind) or name not in kind.__fly_fields__:
            raise AttributeError(f"{layout.name_of(kind)} has no field {name!r}")
        field = kind.__fly_fields__[name]
        if is_constant(field):
            raise AttributeError(f"field {name!r} is compile-time only; it takes no memory")
        if self._prebuilt is not None:
            return self._prebuilt[name]
        if self._ptr is None:  # a struct of no bytes
            return _storage_of(field)(None)
        return _storage_of(field)(_advanced(self._ptr, layout_of(kind)[2][name]))

    def peek(self) -> Any:
        """The value. The elements of an array are read when they are used."""
        kind = self._target_type
        if not is_record(kind) or kind.__fly_overlap__:
            return layout.peek(kind, self._ptr)
        made = {}
        for name, field in kind.__fly_fields__.items():
            constant = is_constant(field)
            made[name] = kind.__fly_constants__[name] if constant else getattr(self, name).peek()
        return kind(**made)

    def poke(self, value: Any) -> None:
        """Stores a value."""
        kind = self._target_type
        if not is_record(kind) or kind.__fly_overlap__:
            layout.poke(kind, self._ptr, value)
            return
        if not isinstance(value, kind):
            tracing.refuse(f"a {kind.__name__} must be stored here, not {tracing.describe(value)}")
        for name, field in kind.__fly_fields__.items():
            if not is_constant(field):
                getattr(self, name).poke(getattr(value, name))


def _advanced(ptr: Any, offset: int) -> Any:
    """A pointer, advanced by a number of bytes."""
    if isinstance(ptr, Pointer):
        size = ptr.dtype.bytes
        if offset % size:
            tracing.refuse(
                f"a field is {offset} bytes behind a pointer to elements of {size} bytes",
                "use a pointer to fx.Uint8",
            )
        offset //= size
    return add_offset(ptr, offset)


# -- allocation ------------------------------------------------------------------------------------


class Arena:
    """Allocates consecutive memory, from a pointer to bytes on that a subclass has."""

    def __init__(self, base_alignment: int = ALIGN):
        self.base_alignment = base_alignment
        self.allocated_bytes = 0

    @property
    def base_ptr(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no base pointer")

    def allocate(self, kind: Any, alignment: int | None = None) -> Any:
        """Allocates a type, or a number of bytes."""
        kind, at = self._reserved(kind, alignment)
        return _storage_of(kind)(_advanced(self.base_ptr, at) if size_of(kind) else None)

    def _reserved(self, kind: Any, alignment: int | None) -> tuple[Any, int]:
        """The type, and the offset of its memory."""
        if isinstance(kind, int):
            if kind < 1:
                raise ValueError(f"the number of bytes must be > 0, not {kind}")
            kind, align = Array[U8, kind], alignment or self.base_alignment
        else:
            align = max(align_of(kind), alignment or 1) if size_of(kind) else 1
        at = up(self.allocated_bytes, align)
        self.allocated_bytes = at + size_of(kind)
        return kind, at


class SharedAllocator(Arena):
    """Allocates the workgroup's shared memory, once in a kernel. If static, each leaf of a struct
    is an allocation of its own. With `static=False` all is consecutive in the shared memory that
    the launch requests with `smem=`, which by default is what is taken."""

    def __init__(self, base_alignment: int = ALIGN, *, static: bool = True):
        builder = tracing.active()
        if builder is None or builder.host:
            raise RuntimeError("a SharedAllocator is made in a @kernel function")
        # A branch or loop may be traced again, and make the same one again.
        here = locations.here(2)
        if _MADE.setdefault(builder, here) != here:
            raise RuntimeError("Only one SharedAllocator can be made in a kernel")
        super().__init__(base_alignment)
        self._base = None
        if not static:
            builder.arenas.append(self)
            self._base = get_dyn_shared()
        self.is_static = static

    @property
    def base_ptr(self) -> Any:
        if self._base is None:
            raise RuntimeError("static allocations have no shared base pointer")
        return self._base

    def allocate(self, kind: Any, alignment: int | None = None) -> Any:
        if not self.is_static:
            return super().allocate(kind, alignment)
        kind, _ = self._reserved(kind, alignment)
        return _allocated(kind, max(align_of(kind), alignment or 1))


def _allocated(kind: Any, align: int) -> Any:
    """Allocates a struct's fields separately, so that alias analysis can tell them apart. The
    fields of a union have one address."""
    if is_record(kind) and not kind.__fly_overlap__:
        parts = {
            name: _allocated(field, align_of(field))
            for name, field in kind.__fly_fields__.items()
            if not is_constant(field)
        }
        return _storage_of(kind)(None, parts)
    if not size_of(kind):
        return _storage_of(kind)(None)
    from fly_dialect.bindings import ir

    builder = tracing.kernel("fx.SharedAllocator")
    spec = PtrSpec("i8", "shared", align)
    count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64, builder.context), size_of(kind))
    attributes = {"dictAttrs": ir.DictAttr.get({"allocBytes": count}, builder.context)}
    made = builder.allocate(
        lambda: builder.op("fly.make_ptr", [builder.fly_type(spec)], [], attributes).results[0]
    )
    return _at(kind, Pointer(spec, made, U8, Access(), "the shared memory"))


def _at(kind: Any, ptr: Pointer) -> Any:
    """The storage at a pointer; the variants of a union have the same one."""
    if not is_record(kind) or not kind.__fly_overlap__:
        return _storage_of(kind)(ptr)
    parts = {name: _at(field, ptr) for name, field in kind.__fly_fields__.items()}
    return _storage_of(kind)(ptr, parts)


# -- questions ------------------------------------------------------------------------------------


def is_composite_type(kind: Any) -> bool:
    """Whether it is a class of structs or unions."""
    return is_record(kind)


def is_struct_type(kind: Any) -> bool:
    """Whether it is a class of structs."""
    return is_record(kind) and not kind.__fly_overlap__


def is_specializable_struct_type(kind: Any) -> bool:
    """Whether it is a class of structs with a field, or a field of a field, that is known while
    tracing: an `fx.Constexpr`."""
    if isinstance(kind, AlignType):
        return is_specializable_struct_type(kind.inner)
    if not is_struct_type(kind):
        return False
    fields = kind.__fly_fields__.values()
    return any(is_constant(one) or is_specializable_struct_type(one) for one in fields)


class _Decorator(ModuleType):
    """The module is also what it is named after: `fx.struct` and `flydsl.expr.struct`."""

    def __call__(self, plain: type | None = None, /, **ignored: Any) -> Any:
        return struct(plain, **ignored)

    def __getitem__(self, items: Any) -> Any:
        return struct[items]


sys.modules[__name__].__class__ = _Decorator
