"""`flydsl.compiler.protocol`: values of MLIR, and types that can be stored."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from fly_trace.memory.pointers import Pointer
from fly_trace.memory.structs import align_of, loaded, size_of, stored
from fly_trace.values.scalars import Scalar

from fly.flydsl.expr.typing import as_dsl_value, as_ir_value
from fly.flydsl.numbers.raw import is_value, lower


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


def extract_to_ir_values(value: Any) -> list[Any]:
    """The values of MLIR in a tree of values of the language."""
    own = getattr(value, "__extract_to_ir_values__", None)
    if own is not None:
        return list(own())
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
    own = getattr(kind, "__dsl_size_of__", None)
    return own() if own is not None else size_of(kind)


def dsl_align_of(kind: Any) -> int:
    """The alignment in memory of a type, in bytes."""
    own = getattr(kind, "__dsl_align_of__", None)
    return own() if own is not None else align_of(kind)


def peek_from_ptr(kind: Any, ptr: Pointer) -> Any:
    """The value of a type at a pointer."""
    own = getattr(kind, "__peek_from_ptr__", None)
    return own(ptr) if own is not None else loaded(kind, ptr)


def poke_into_ptr(kind: Any, ptr: Pointer, value: Any) -> None:
    """Stores a value of a type at a pointer."""
    own = getattr(kind, "__poke_into_ptr__", None)
    if own is not None:
        own(ptr, value)
    else:
        stored(kind, ptr, value)
