"""Comparisons of tuples and lists that may hold dynamic values: item by item, as Python does."""

from __future__ import annotations

import builtins
import operator
from typing import Any

from fly_trace.control.branches import dynamic, truth
from fly_trace.values.scalars import Scalar


def compared(word: str, a: Any, b: Any) -> Any:
    """A comparison of two values, which may be tuples or lists. `word` is the name of its class in
    `ast`."""
    if isinstance(a, Scalar) or not _are_sequences(a, b):
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
        and type(a).__lt__ is kind.__lt__
        and type(b).__lt__ is kind.__lt__
        for kind in (tuple, list)
    )


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
