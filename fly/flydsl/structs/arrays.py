"""`fx.Array` and `fx.Align`: storable types with a number of elements, or an alignment."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from fly_trace.memory import structs as _language
from fly_trace.memory.pointers import add_offset, recast_iter
from fly_trace.memory.structs import AlignType, ArrayType
from fly_trace.values.dtypes import I32, U8, DType
from fly_trace.values.scalars import Scalar

from fly.flydsl.structs import layout


class StoredArray(ArrayType):
    """`fx.Array[dtype, size, align]`."""

    @property
    def display_name(self) -> str:
        return f"Array[{self.dtype.title}, {self.size}]"

    def __dsl_size_of__(self) -> int:
        return self.dtype.bytes_of(self.size)

    def __dsl_align_of__(self) -> int:
        return self.align

    def __peek_from_ptr__(self, ptr: Any) -> _language.Array:
        """The array at a pointer: its elements are read when they are used."""
        return _language.Array(recast_iter(self.dtype, ptr))

    def __poke_into_ptr__(self, ptr: Any, value: Any) -> None:
        raise NotImplementedError(
            "an array is written element by element, or through a view, not as a whole"
        )


class Elements(_language.Array):
    """`a[i]` is the value of a type at its place, as a view of it where the type has one, and
    `a[i] = v` stores one. `ptr` points to bytes."""

    def __init__(self, ptr: Any, dtype: Any):
        self.ptr = None if ptr is None else recast_iter(U8, ptr)  # None: values of no bytes
        self.dtype = dtype

    def _storage(self, index: Any) -> Any:
        kinds = importlib.import_module("fly.flydsl.expr.struct")  # it imports this module
        if self.ptr is None:
            return kinds.Storage[self.dtype](None)
        at = I32(index) if isinstance(index, Scalar) else index
        return kinds.Storage[self.dtype](add_offset(self.ptr, at * layout.size_of(self.dtype)))

    def __getitem__(self, index: Any) -> Any:
        return self._storage(index).peek()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._storage(index).poke(value)

    def view(self, layout: Any) -> Any:
        raise TypeError("an array of structs has no view; its elements are a[i]")


class StoredElements:
    """`fx.Array[type, size, align]` of a storable type that is no number."""

    def __init__(self, dtype: Any, size: int, align: int):
        self.dtype, self.size, self.align = dtype, size, align

    @property
    def display_name(self) -> str:
        return f"Array[{layout.name_of(self.dtype)}, {self.size}]"

    def __dsl_size_of__(self) -> int:
        return layout.size_of(self.dtype) * self.size

    def __dsl_align_of__(self) -> int:
        return self.align

    def __peek_from_ptr__(self, ptr: Any) -> Elements:
        return Elements(ptr, self.dtype)

    def __poke_into_ptr__(self, ptr: Any, value: Any) -> None:
        raise NotImplementedError("an array is written element by element, not as a whole")


def _alignment(dtype: Any) -> int:
    try:
        return dtype.bytes if isinstance(dtype, DType) else layout.align_of(dtype)
    except TypeError:
        raise TypeError(
            f"the element type of an Array is a Numeric subclass, or Storable, not {dtype!r}"
        ) from None


class _ArrayKind(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, _language.Array)

    def __getitem__(cls, items: Any) -> StoredArray | StoredElements:
        given: tuple[Any, ...] = items if isinstance(items, tuple) else (items,)
        if len(given) not in (2, 3):
            raise TypeError(
                "an array is declared as Array[dtype, size] or Array[dtype, size, align]"
            )
        dtype, size = given[0], given[1]
        natural = _alignment(dtype)
        align = given[2] if len(given) == 3 else natural
        for what, number in (("size", size), ("alignment", align)):
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise TypeError(f"the {what} of an Array is a positive integer, not {number!r}")
        if isinstance(dtype, DType):
            return _array(dtype, size, align)
        if align % natural or align & (align - 1):
            raise ValueError(f"the alignment {align} of an Array is no multiple of {natural}")
        return _elements(dtype, size, align)


@functools.cache
def _array(dtype: DType, size: int, align: int) -> StoredArray:
    return StoredArray(dtype, size, align)


@functools.cache
def _elements(dtype: Any, size: int, align: int) -> StoredElements:
    return StoredElements(dtype, size, align)


class Array(metaclass=_ArrayKind):
    """`fx.Array[fx.Float32, 64]`: 64 consecutive elements, numbers or values of a storable type."""


class StoredAlign(AlignType):
    """`fx.Align[type, n]`."""

    @property
    def dtype(self) -> Any:
        return self.inner

    @property
    def display_name(self) -> str:
        return f"Align[{layout.name_of(self.inner)}, {self.align}]"

    def __dsl_size_of__(self) -> int:
        return layout.size_of(self.inner)

    def __dsl_align_of__(self) -> int:
        return self.align

    def __peek_from_ptr__(self, ptr: Any) -> Any:
        return layout.peek(self.inner, ptr)

    def __poke_into_ptr__(self, ptr: Any, value: Any) -> None:
        layout.poke(self.inner, ptr, value)


class Align:
    """`fx.Align[fx.Int32, 16]`: the type, aligned to 16 bytes, a power of two."""

    def __class_getitem__(cls, items: Any) -> StoredAlign:
        if not isinstance(items, tuple) or len(items) != 2:
            raise TypeError("an alignment is declared as Align[Type, N]")
        inner, align = items
        if type(align) is not int:
            raise TypeError(f"the alignment of Align must be an int, not {align!r}")
        if align < 1:
            raise ValueError(f"an alignment is positive, not {align}")
        if align & (align - 1):
            raise ValueError(f"an alignment is a power of two, not {align}")
        natural = layout.align_of(inner)
        if align < natural:
            raise ValueError(
                f"{align} is smaller than natural alignment of {layout.name_of(inner)}, {natural}"
            )
        return StoredAlign(inner, align)
