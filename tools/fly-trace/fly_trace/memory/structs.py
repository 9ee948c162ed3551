"""Structs and unions: their memory layout, and their values.

    @fx.struct
    class Tile:
        a: fx.Array[fx.Float16, 1024, 16]     # 1024 elements, aligned to 16 bytes
        count: fx.Align[fx.Int32, 64]

A **layout type** is an element type, `fx.Array[…]`, `fx.Align[…]`, a struct or a union. Fields are
in declaration order, each aligned as in C. The fields of a union overlap. A field annotated
`fx.Constexpr` is known while tracing, and takes no memory.
"""

from __future__ import annotations

import inspect
import sys
from types import FrameType
from typing import Any, ClassVar

from fly_common.quoting import quoted
from fly_common.record import record

from fly_trace.core import locations, tracing
from fly_trace.core.dialect_value import apply
from fly_trace.core.tracing import describe
from fly_trace.memory.pointers import Pointer, recast_iter
from fly_trace.memory.struct_members import members_of
from fly_trace.signatures.annotations import Constexpr
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import DType

__all__ = ["Align", "Array", "Struct", "Union", "struct", "union"]

_RESERVED = frozenset(("replace", "peek", "poke"))


@record
class ArrayType:
    """`size` consecutive elements."""

    dtype: DType
    size: int
    align: int


class Array:
    """`fx.Array[dtype, size]` and `fx.Array[dtype, size, align]` are layout types. In memory,
    `a[i]` and `a[i] = v` access the elements, and `a.view(layout)` is a tensor of them."""

    def __init__(self, ptr: Pointer):
        self.ptr = ptr

    def __class_getitem__(cls, items: Any) -> ArrayType:
        given: tuple[Any, ...] = items if isinstance(items, tuple) else (items,)
        if len(given) not in (2, 3) or not isinstance(given[0], DType):
            raise TypeError("fx.Array takes an element type, a size and optionally an alignment")
        dtype, size = given[0], given[1]
        found = given[2] if len(given) == 3 else dtype.bytes
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise TypeError(f"the size of fx.Array must be a positive number, not {quoted(size)}")
        _check_alignment(found, dtype.bytes)
        return ArrayType(dtype, size, found)

    def __getitem__(self, index: Any) -> Any:
        return self.ptr[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.ptr[index] = value

    def view(self, layout: Any) -> Any:
        return apply("make_view", self.ptr, layout)


@record
class AlignType:
    """A layout type with an increased alignment."""

    inner: Any
    align: int


class Align:
    """`fx.Align[type, n]`: the layout type aligned to `n` bytes, a power of two."""

    def __class_getitem__(cls, items: Any) -> AlignType:
        if not isinstance(items, tuple) or len(items) != 2:
            raise TypeError("fx.Align takes a layout type and an alignment in bytes")
        inner, align = items
        _check_alignment(align, align_of(inner))
        return AlignType(inner, align)


def _check_alignment(align: Any, natural: int) -> None:
    power = isinstance(align, int) and not isinstance(align, bool) and align > 0
    if not power or align & (align - 1):
        raise ValueError(f"an alignment must be a power of two, not {quoted(align)}")
    if align < natural:
        raise ValueError(f"the alignment {align} is less than the type's own, {natural}")


# -- structs and unions ----------------------------------------------------------------------------


class Record:
    """The value of a struct, with its fields as attributes. Branches and loops carry it field by
    field."""

    __fly_fields__: ClassVar[dict[str, Any]] = {}
    __fly_overlap__: ClassVar[bool] = False

    def __init__(self, *values: Any, **named: Any):
        kind = type(self)
        if kind.__fly_overlap__:
            raise TypeError(f"the union {kind.__name__} has no value; it only describes memory")
        names = list(kind.__fly_fields__)
        given = dict(zip(names, values, strict=False)) | named
        wrong = set(given) ^ set(names)
        if wrong or len(values) + len(named) != len(names):
            raise TypeError(f"{kind.__name__} takes {', '.join(names)}")
        for name, field in kind.__fly_fields__.items():
            object.__setattr__(self, name, _as(field, given[name]))

    def __setattr__(self, name: str, value: Any) -> None:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"{name} of a struct can't be assigned; use replace")

    def replace(self, **changes: Any) -> Any:
        """The same value with some fields changed."""
        kind = type(self)
        for name in changes:
            if name not in kind.__fly_fields__:
                raise TypeError(f"{kind.__name__} has no field {name!r}")
        return kind(**{name: getattr(self, name) for name in kind.__fly_fields__} | changes)

    def with_fields(self, values: dict[str, Any]) -> Any:
        """The same struct with new values for some fields, which have their types."""
        made = object.__new__(type(self))
        for name in type(self).__fly_fields__:
            object.__setattr__(made, name, values.get(name, getattr(self, name)))
        return made

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, Record):
            return NotImplemented
        tracing.refuse("structs can't be compared as a whole", "compare their fields")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        kind = type(self)
        body = ", ".join(f"{name}={getattr(self, name)!r}" for name in kind.__fly_fields__)
        return f"{kind.__name__}({body})"


def _as(field: Any, value: Any) -> Any:
    if isinstance(field, AlignType):
        return _as(field.inner, value)
    if isinstance(field, DType):
        return convert(value, field)
    return value


def _make(
    name: str,
    fields: dict[str, Any],
    overlap: bool,
    module: str,
    members: dict[str, Any] | None = None,
) -> type[Record]:
    if not fields:
        raise TypeError(f"{name} has no fields")
    for field in fields:
        if field.startswith("_") or field in _RESERVED:
            raise TypeError(f"a field of {name} can't be called {field!r}")
    for kind in stored_fields(fields).values():
        size_of(kind)
    body = {"__fly_fields__": fields, "__fly_overlap__": overlap, "__module__": module}
    return type(name, (Record,), {**(members or {}), **body})


def _caller() -> FrameType:
    """The frame of the user that a function of the language is called from."""
    frame = sys._getframe(1)
    while frame.f_back is not None and locations.is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


class _Maker(type):
    """Makes `fx.struct` a decorator, and `fx.struct["a": fx.Int32, …]` a type."""

    overlap = False

    def __call__(cls, plain: type) -> Any:
        # Types may be local to the function that contains the class.
        names = {**_caller().f_locals, **vars(plain)}
        fields = inspect.get_annotations(plain, eval_str=True, locals=names)
        members = members_of(plain, fields)
        return _make(plain.__name__, fields, cls.overlap, plain.__module__, members)

    def __getitem__(cls, items: Any) -> Any:
        given = items if isinstance(items, tuple) else (items,)
        fields = {}
        for index, item in enumerate(given):
            named = isinstance(item, slice)
            fields[item.start if named else f"f{index}"] = item.stop if named else item
        return _make(cls.__name__.title(), fields, cls.overlap, __name__)


class struct(metaclass=_Maker):
    """Converts a class with annotated fields to a struct."""


class union(metaclass=_Maker):
    """Converts a class with annotated fields to a union: the fields share their memory."""

    overlap = True


Struct, Union = struct, union


# -- in memory -------------------------------------------------------------------------------------


def is_constant(kind: Any) -> bool:
    """Whether a field is known while tracing."""
    return kind is Constexpr or isinstance(kind, Constexpr)


def stored_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that take memory."""
    return {name: kind for name, kind in fields.items() if not is_constant(kind)}


def is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Record)


def align_of(kind: Any) -> int:
    """The alignment of a layout type, in bytes."""
    if isinstance(kind, DType):
        return kind.bytes
    if isinstance(kind, (ArrayType, AlignType)):
        return kind.align
    if is_record(kind):
        return max(map(align_of, stored_fields(kind.__fly_fields__).values()), default=1)
    raise TypeError(f"{kind!r} is not a type that can be stored in memory")


def size_of(kind: Any) -> int:
    """The size of a layout type, in bytes."""
    if isinstance(kind, DType):
        return kind.bytes
    if isinstance(kind, ArrayType):
        return kind.dtype.bytes_of(kind.size)
    if isinstance(kind, AlignType):
        return size_of(kind.inner)
    if not is_record(kind):
        raise TypeError(f"{kind!r} is not a type that can be stored in memory")
    fields = stored_fields(kind.__fly_fields__)
    if not fields:
        return 0
    if kind.__fly_overlap__:
        end = max(map(size_of, fields.values()))
    else:
        last = list(fields)[-1]
        end = offsets_of(kind)[last] + size_of(fields[last])
    return up(end, align_of(kind))


def offsets_of(kind: type[Record]) -> dict[str, int]:
    """The fields' offsets, in bytes."""
    found, at = {}, 0
    for name, field in stored_fields(kind.__fly_fields__).items():
        at = 0 if kind.__fly_overlap__ else up(at, align_of(field))
        found[name] = at
        at += size_of(field)
    return found


def up(number: int, align: int) -> int:
    """Rounds up to a multiple of `align`."""
    return -(-number // align) * align


def loaded(kind: Any, ptr: Pointer) -> Any:
    """Loads the value of a layout type from a pointer to bytes."""
    if isinstance(kind, AlignType):
        return loaded(kind.inner, ptr)
    if isinstance(kind, DType):
        return recast_iter(kind, ptr).load()
    if isinstance(kind, ArrayType):
        return Array(recast_iter(kind.dtype, ptr))
    if kind.__fly_overlap__:
        tracing.refuse("a union has no value", "read one of its fields")
    fields = kind.__fly_fields__
    return kind(**{name: loaded(fields[name], ptr + at) for name, at in offsets_of(kind).items()})


def stored(kind: Any, ptr: Pointer, value: Any) -> None:
    """Stores a value of a layout type to a pointer to bytes."""
    if isinstance(kind, AlignType):
        stored(kind.inner, ptr, value)
    elif isinstance(kind, DType):
        recast_iter(kind, ptr).store(value)
    elif isinstance(kind, ArrayType):
        tracing.refuse("an array is written element by element, or through a view")
    elif kind.__fly_overlap__ or not isinstance(value, kind):
        tracing.refuse(f"a {kind.__name__} must be stored here, not {describe(value)}")
    else:
        for name, at in offsets_of(kind).items():
            stored(kind.__fly_fields__[name], ptr + at, getattr(value, name))
