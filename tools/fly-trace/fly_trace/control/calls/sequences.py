"""Comparisons of tuples and lists that may hold dynamic values: item by item, as Python does."""

from __future__ import annotations

import builtins
import dataclasses
import inspect
import operator
from types import FunctionType
from typing import Any

from fly_trace.control.branches import dynamic, truth
from fly_trace.values.scalars import Scalar


def compared(word: str, a: Any, b: Any) -> Any:
    """A comparison of two values, which may be tuples, lists or data classes. `word` is the name of
    its class in `ast`."""
    if isinstance(a, Scalar):
        return _PLAIN[word](a, b)
    if type(a) is type(b) and _is_field_by_field(type(a), word):
        a, b = _fields(a), _fields(b)
    if not _are_sequences(a, b):
        return _PLAIN[word](a, b)
    match word:
        case "Eq":
            return equal(a, b)
        case "NotEq":
            return opposite(equal(a, b))
        case "Lt":
            return less(a, b)
        case "Gt":
            return less(b, a)
        case "LtE":
            return opposite(less(b, a))
    return opposite(less(a, b))


_PLAIN = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}


def equal(a: Any, b: Any) -> Any:
    """`a == b`, of tuples and lists too."""
    if not _are_sequences(a, b):
        return a is b or a == b
    result: Any = len(a) == len(b)
    for x, y in zip(a, b, strict=False):
        result = both(result, equal(x, y))
    return result


def less(a: Any, b: Any) -> Any:
    """`a < b`, of tuples and lists too."""
    if not _are_sequences(a, b):
        return a < b
    result: Any = len(a) < len(b)
    for x, y in zip(builtins.reversed(a[: len(b)]), builtins.reversed(b[: len(a)]), strict=True):
        ahead, behind = less(x, y), less(y, x)
        result = either(ahead, both(neither(ahead, behind), result))
    return result


def greater(a: Any, b: Any) -> Any:
    """`a > b`, of tuples and lists too."""
    return less(b, a) if _are_sequences(a, b) else a > b


def _are_sequences(a: Any, b: Any) -> bool:
    """Whether two values are tuples or two lists, which Python compares item by item."""
    return any(
        isinstance(a, kind)
        and isinstance(b, kind)
        and _compares_as(type(a), kind)
        and _compares_as(type(b), kind)
        for kind in (tuple, list)
    )


def _compares_as(kind: type, base: type) -> bool:
    """Whether a class has the comparisons of `base`, which is tuple or list."""
    names = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
    return all(getattr(kind, name) is getattr(base, name) for name in names)


def _is_field_by_field(kind: type, word: str) -> bool:
    """Whether a comparison of objects is the method that `dataclasses` makes for their class."""
    if not hasattr(kind, "__dataclass_params__"):
        return False
    methods = {"NotEq": "__eq__", "LtE": "__le__", "GtE": "__ge__"}
    method = getattr(kind, methods.get(word, f"__{word.lower()}__"), None)
    made = inspect.unwrap(method) if isinstance(method, FunctionType) else None
    own = word != "NotEq" or kind.__ne__ is object.__ne__
    return own and isinstance(made, FunctionType) and made.__code__.co_filename == "<string>"


def _fields(value: Any) -> tuple[Any, ...]:
    return tuple(getattr(value, one.name) for one in dataclasses.fields(value) if one.compare)


def both(a: Any, b: Any) -> Any:
    if not dynamic(a):
        return b if truth(a) else False
    if not dynamic(b):
        return a if truth(b) else False
    return a & b


def either(a: Any, b: Any) -> Any:
    if not dynamic(a):
        return True if truth(a) else b
    if not dynamic(b):
        return True if truth(b) else a
    return a | b


def neither(a: Any, b: Any) -> Any:
    return opposite(either(a, b))


def opposite(a: Any) -> Any:
    return a ^ True if dynamic(a) else not truth(a)
