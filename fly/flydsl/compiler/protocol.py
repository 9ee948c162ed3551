"""`flydsl.compiler.protocol`: values of MLIR, and types that can be stored."""

from __future__ import annotations

import ctypes
from typing import Any, Protocol, runtime_checkable

from fly_trace.core.tracing import describe
from fly_trace.memory.pointers import Pointer
from fly_trace.memory.structs import Array
from fly_trace.values.scalars import Scalar

from fly.flydsl.expr.typing import as_dsl_value, as_ir_value
from fly.flydsl.numbers.raw import is_value, lower
from fly.flydsl.structs import layout


@runtime_checkable
class DslType(Protocol):
    """A class whose objects are made of values of MLIR."""

    @classmethod
    def __construct_from_ir_values__(cls, values: list[Any], exemplar: Any = None) -> Any: ...
    def __extract_to_ir_values__(self) -> list[Any]: ...


@runtime_checkable
class JitArgument(Protocol):
    """A class whose objects are arguments of host functions."""

    def __get_ir_types__(self) -> list[Any]: ...
    def __cache_signature__(self) -> object: ...


@runtime_checkable
class Storable(Protocol):
    """A type of the program's own that can be stored in memory: a size and an alignment in bytes,
    and how its value is read and written. Numbers, structs and arrays can be too."""

    @classmethod
    def __dsl_size_of__(cls) -> int: ...
    @classmethod
    def __dsl_align_of__(cls) -> int: ...
    @classmethod
    def __peek_from_ptr__(cls, ptr: Any) -> Any: ...
    @classmethod
    def __poke_into_ptr__(cls, ptr: Any, value: Any) -> None: ...


def extract_to_ir_values(value: Any) -> list[Any]:
    """The values of MLIR in a tree of values of the language."""
    own = getattr(value, "__extract_to_ir_values__", None)
    if own is not None:
        return list(own())
    if isinstance(value, Array):
        return [value.ptr]
    if is_value(value) or isinstance(value, Scalar):
        return [as_ir_value(value)]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [one for item in value for one in extract_to_ir_values(item)]
    if hasattr(value, "__dict__") and type(value).__name__ == "SimpleNamespace":
        return extract_to_ir_values(list(vars(value).values()))
    raise TypeError(f"a {type(value).__name__} has no values of MLIR")


def construct_from_ir_values(kind: Any, like: Any, values: list[Any]) -> Any:
    """The reverse of `extract_to_ir_values`, for values like those of `like`."""
    own = getattr(kind, "__construct_from_ir_values__", None)
    if own is not None:
        return own(values, None if isinstance(like, type) else like)
    if isinstance(like, (tuple, list)):
        made, at = [], 0
        for one in like:
            count = len(extract_to_ir_values(one))
            made.append(construct_from_ir_values(type(one), one, values[at : at + count]))
            at += count
        return type(like)(made)
    if len(values) != 1:
        raise TypeError(f"a {type(like).__name__} is made of one value, not of {len(values)}")
    return as_dsl_value(values[0], like)


def get_ir_types(value: Any) -> list[Any]:
    """The types in MLIR of the values in a tree."""
    own = getattr(value, "__get_ir_types__", None)
    return (
        list(own()) if own is not None else [lower(one).type for one in extract_to_ir_values(value)]
    )


def dsl_size_of(kind: Any) -> int:
    """The bytes that a value of a type takes in memory."""
    return layout.size_of(kind)


def dsl_align_of(kind: Any) -> int:
    """The alignment in memory of a type, in bytes."""
    return layout.align_of(kind)


def peek_from_ptr(kind: Any, ptr: Pointer) -> Any:
    """The value of a type at a pointer."""
    return layout.peek(kind, ptr)


def poke_into_ptr(kind: Any, ptr: Pointer, value: Any) -> None:
    """Stores a value of a type at a pointer."""
    layout.poke(kind, ptr, value)


def cache_signature(value: Any) -> Any:
    """What of an argument code is compiled for: of a number its type. TypeError for a value that is
    no argument of a host function."""
    own = getattr(value, "__cache_signature__", None)
    if own is not None:
        return own()
    if isinstance(value, Scalar):
        return value.dtype
    raise TypeError(f"{describe(value)} has no cache signature: host functions don't take it")


def c_abi_spec(value: Any) -> list[tuple[Any, Any]]:
    """The slots of an argument in a call of C: pairs of a type of ctypes, and a function of the
    value and an object of that type, which fills it. TypeError for a value that is no argument."""
    own = getattr(value, "__c_abi_spec__", None)
    if own is not None:
        return own()
    if isinstance(value, Scalar) and (kind := _CTYPES.get(value.dtype.name)) is not None:
        return [(kind, _fill)]
    raise TypeError(f"{describe(value)} has no C-ABI form: host functions don't take it")


def _fill(value: Any, slot: Any) -> None:
    slot.value = value.number


_CTYPES = {
    "bool": ctypes.c_bool,
    **{f"i{bits}": getattr(ctypes, f"c_int{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": getattr(ctypes, f"c_uint{bits}") for bits in (8, 16, 32, 64)},
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}
