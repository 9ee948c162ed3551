"""Allocation of shared memory by layout types: `SharedAllocator` and `Storage`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from fly_dialect.types import PtrSpec

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.memory.pointers import Access, Pointer, get_dyn_shared
from fly_trace.memory.structs import (
    Array,
    align_of,
    is_record,
    loaded,
    offsets_of,
    size_of,
    stored,
    up,
)
from fly_trace.values.dtypes import U8

__all__ = ["Arena", "SharedAllocator", "Storage"]

ALIGN = 16  # bytes: the widest access


class Storage:
    """Memory for a layout type. `peek()` reads its value, `poke(value)` writes it. The fields of a
    struct or union are also storage. `fx.Storage[T](pointer)` uses the bytes at a pointer."""

    kind: Any = None

    def __class_getitem__(cls, kind: Any) -> Any:
        return _storage_of(kind)

    def __init__(self, ptr: Pointer | None, parts: dict[str, Storage] | None = None):
        self._ptr = ptr
        self._parts = parts

    def peek(self) -> Any:
        """The stored value. For an array, elements are only read when they are used."""
        if self._parts is not None and not self.kind.__fly_overlap__:
            return self.kind(**{name: part.peek() for name, part in self._parts.items()})
        return loaded(self.kind, self._ptr)  # type: ignore[arg-type]

    def poke(self, value: Any) -> None:
        """Stores a value."""
        if self._parts is None or self.kind.__fly_overlap__:
            stored(self.kind, self._ptr, value)  # type: ignore[arg-type]
            return
        if not isinstance(value, self.kind):
            tracing.refuse(f"a {self.kind.__name__} must be stored here, not {describe(value)}")
        for name, part in self._parts.items():
            part.poke(getattr(value, name))

    def __getattr__(self, name: str) -> Storage:
        if name.startswith("_") or not is_record(self.kind):
            raise AttributeError(f"{self.kind!r} has no field {name!r}")
        fields: dict[str, Any] = self.kind.__fly_fields__
        if name not in fields:
            raise AttributeError(
                f"{self.kind.__name__} has no field {name!r}: it has {list(fields)}"
            )
        if self._parts is not None:
            return self._parts[name]
        assert self._ptr is not None
        return _storage_of(fields[name])(self._ptr + offsets_of(self.kind)[name])


@lru_cache(maxsize=256)
def _storage_of(kind: Any) -> type[Storage]:
    size_of(kind)
    return type("Storage", (Storage,), {"kind": kind})


class Arena:
    """Allocates consecutive memory, starting at a pointer to bytes."""

    def __init__(self, base_ptr: Pointer | None = None, base_alignment: int = ALIGN):
        self.base_ptr = base_ptr
        self.base_alignment = base_alignment
        self.allocated_bytes = 0

    def allocate(self, kind: Any, alignment: int | None = None) -> Storage:
        """Allocates a layout type, or a number of bytes."""
        kind, align = self._checked(kind, alignment)
        at = up(self.allocated_bytes, align)
        self.allocated_bytes = at + size_of(kind)
        assert self.base_ptr is not None
        return _storage_of(kind)(self.base_ptr + at)

    def _checked(self, kind: Any, alignment: int | None) -> tuple[Any, int]:
        if isinstance(kind, int):
            if kind < 1:
                tracing.refuse(f"allocate takes a positive number of bytes, not {kind}")
            return Array[U8, kind], alignment or self.base_alignment
        try:
            return kind, max(align_of(kind), alignment or 1)
        except TypeError as error:
            tracing.refuse(str(error), "as in allocate(fx.Array[fx.Float32, 64])")


class SharedAllocator(Arena):
    """Allocates the workgroup's shared memory. If static, each array is a separate allocation. With
    `static=False`, they are consecutive in the shared memory that the launch requests with `smem=`,
    which by default is what they take."""

    def __init__(self, base_alignment: int = ALIGN, *, static: bool = True):
        builder = tracing.kernel("fx.SharedAllocator")
        if not static:
            builder.arenas.append(self)
        super().__init__(None if static else get_dyn_shared(), base_alignment)
        self.is_static = static

    def allocate(self, kind: Any, alignment: int | None = None) -> Storage:
        if not self.is_static:
            return super().allocate(kind, alignment)
        kind, align = self._checked(kind, alignment)
        self.allocated_bytes = up(self.allocated_bytes, align) + size_of(kind)
        return _allocated(kind, align)


def _allocated(kind: Any, align: int) -> Storage:
    """Allocates a struct's fields separately, so that alias analysis can tell them apart."""
    if is_record(kind) and not kind.__fly_overlap__:
        fields: dict[str, Any] = kind.__fly_fields__
        parts = {name: _allocated(field, align_of(field)) for name, field in fields.items()}
        return _storage_of(kind)(None, parts)
    from fly_dialect.builders import ops

    builder = tracing.kernel("fx.SharedAllocator")
    spec = PtrSpec("i8", "shared", align)
    ssa = builder.allocate(lambda: builder.fly(ops.make_ptr, spec, size_of(kind)))
    return _storage_of(kind)(Pointer(spec, ssa, U8, Access(), "the shared memory"))
