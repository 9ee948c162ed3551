"""Comparisons of tuples, lists and data classes that may hold dynamic values: item by item or field
by field, as Python does."""

from __future__ import annotations

import builtins
import dataclasses
import inspect
import operator
from types import FunctionType
from typing import Any

from fly_common.quoting import quoted

from fly_trace.control.branches import dynamic, truth
from fly_trace.core import rules, tracing
from fly_trace.values.dtypes import DType
from fly_trace.values.scalars import Scalar


def compared(word: str, a: Any, b: Any) -> Any:
    """A comparison of two values, which may be tuples, lists or data classes. `word` is the name of
    its class in `ast`."""
    if isinstance(a, Scalar):
        return _PLAIN[word](a, b)
    if isinstance(a, DType) is not isinstance(b, DType) and word in ("Eq", "NotEq"):
        _check_types(a, b)
    a, b = _opened(word, a, b)
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


def _check_types(a: Any, b: Any) -> None:
    """Refuses the comparison of an element type with one of NumPy, torch or Python: they are never
    equal, whatever they are called, and a branch would be the wrong one."""
    kind, other = (a, b) if isinstance(a, DType) else (b, a)
    if isinstance(other, type):
        foreign = other in (bool, int, float) or other.__module__ == "numpy"
    else:
        foreign = any(base.__name__ == "dtype" for base in type(other).__mro__)
    if foreign and rules.current() is None:
        tracing.refuse(
            f"fx.{kind.title} is a type of the language, and never equal to {quoted(other)}",
            f"compare it with the language's types, such as fx.{kind.title}",
        )


_PLAIN = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}


def equal(a: Any, b: Any) -> Any:
    """`a == b`, of tuples, lists and data classes too."""
    a, b = _opened("Eq", a, b)
    if not _are_sequences(a, b):
        return a is b or a == b
    result: Any = len(a) == len(b)
    for x, y in zip(a, b, strict=False):
        result = both(result, equal(x, y))
    return result


def less(a: Any, b: Any) -> Any:
    """`a < b`, of tuples, lists and data classes too."""
    a, b = _opened("Lt", a, b)
    if not _are_sequences(a, b):
        return a < b
    result: Any = len(a) < len(b)
    for x, y in zip(builtins.reversed(a[: len(b)]), builtins.reversed(b[: len(a)]), strict=True):
        ahead, behind = less(x, y), less(y, x)
        result = either(ahead, both(neither(ahead, behind), result))
    return result


def greater(a: Any, b: Any) -> Any:
    """`a > b`, of tuples, lists and data classes too."""
    a, b = _opened("Gt", a, b)
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


def _opened(word: str, a: Any, b: Any) -> tuple[Any, Any]:
    """The compared fields of two objects of a class for which `dataclasses` has made the method
    that compares them, and otherwise the two values."""
    kind = type(a)
    if kind is not type(b) or not hasattr(kind, "__dataclass_params__"):
        return a, b
    if word == "NotEq" and kind.__ne__ is not object.__ne__:
        return a, b
    name = {"NotEq": "__eq__", "LtE": "__le__", "GtE": "__ge__"}.get(word, f"__{word.lower()}__")
    owner: Any = next((base for base in kind.__mro__ if name in vars(base)), object)
    method = vars(owner)[name] if "__dataclass_fields__" in vars(owner) else None
    made = inspect.unwrap(method) if isinstance(method, FunctionType) else None
    if not isinstance(made, FunctionType) or made.__code__.co_filename != "<string>":
        return a, b
    names = [one.name for one in dataclasses.fields(owner) if one.compare]
    return tuple(getattr(a, one) for one in names), tuple(getattr(b, one) for one in names)


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
