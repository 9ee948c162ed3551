"""Sizes, alignments and offsets of what can be stored: the protocol `Storable`.

A type of the program's own is storable if it has the class methods `__dsl_size_of__`,
`__dsl_align_of__`, `__peek_from_ptr__` and `__poke_into_ptr__`.
"""

from __future__ import annotations

from typing import Any

from fly_trace.memory.pointers import recast_iter
from fly_trace.memory.structs import is_constant, is_record, up
from fly_trace.values.dtypes import DType


def name_of(kind: Any) -> str:
    """A type's name in messages."""
    if isinstance(kind, DType):
        return kind.title
    named = getattr(kind, "display_name", None)
    return named if isinstance(named, str) else getattr(kind, "__name__", repr(kind))


def refused(kind: Any) -> TypeError:
    return TypeError(f"{name_of(kind)} can't be stored in memory: it is not Storable")


def size_of(kind: Any) -> int:
    """The bytes that a value of a type takes. TypeError for what is not Storable."""
    if isinstance(kind, DType):
        if kind.is_bool or kind.bits % 8:
            raise TypeError(f"{name_of(kind)} is sub-byte, and not Storable")
        return kind.bytes
    if is_record(kind):
        return layout_of(kind)[0]
    own = getattr(kind, "__dsl_size_of__", None)
    if own is None:
        raise refused(kind)
    return own()


def align_of(kind: Any) -> int:
    """The alignment of a type, in bytes. TypeError for what is not Storable."""
    if isinstance(kind, DType):
        return size_of(kind)
    if is_record(kind):
        return layout_of(kind)[1]
    own = getattr(kind, "__dsl_align_of__", None)
    if own is None:
        raise refused(kind)
    return own()


def layout_of(kind: Any) -> tuple[int, int, dict[str, int]]:
    """The size and the alignment of a struct or union, and the offsets of its fields, in bytes."""
    offsets: dict[str, int] = {}
    at, end, most = 0, 0, 1
    for name, field in kind.__fly_fields__.items():
        if is_constant(field):
            continue
        size = size_of(field)
        align = align_of(field) if size else 1  # of fx.Empty, whatever it is aligned to
        offsets[name] = at = 0 if kind.__fly_overlap__ else up(at, align)
        at += size
        end, most = max(end, at), max(most, align)
    return up(end, most), most, offsets


def peek(kind: Any, ptr: Any) -> Any:
    """The value of a type at a pointer."""
    own = getattr(kind, "__peek_from_ptr__", None)
    if own is not None:
        return own(ptr)
    if not isinstance(kind, DType):
        raise refused(kind)
    return recast_iter(kind, ptr).load()


def poke(kind: Any, ptr: Any, value: Any) -> None:
    """Stores a value of a type at a pointer."""
    own = getattr(kind, "__poke_into_ptr__", None)
    if own is not None:
        own(ptr, value)
        return
    if not isinstance(kind, DType):
        raise refused(kind)
    recast_iter(kind, ptr).store(value)
