"""The patterns of `match`, as PEP 634 defines them, on subjects that may hold dynamic values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values.dtypes import Numeric
from fly_trace.values.scalars import Scalar

Found = dict[str, Any]
# Classes whose one positional pattern matches the whole subject.
_WHOLE = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


def match(subject: Any, pattern: tuple[Any, ...], names: tuple[str, ...]) -> tuple[Any, ...]:
    """Whether a subject matches a pattern, which may be a dynamic bool, and the values of the names
    that the pattern binds."""
    found: Found = {}
    holds = _matches(subject, pattern, found)
    return (holds, *(found.get(name) for name in names))


def _matches(subject: Any, pattern: tuple[Any, ...], found: Found) -> Any:
    kind, *parts = pattern
    return _KINDS[kind](subject, found, *parts)


def _value(subject: Any, found: Found, value: Any) -> Any:
    return subject == value


def _is(subject: Any, found: Found, value: Any) -> Any:
    """`case True`, `case False` and `case None`: there is one object of each."""
    if isinstance(subject, Scalar) and subject.dtype.is_bool and value is not None:
        return subject if value else subject ^ True
    return subject is value


def _sequence(subject: Any, found: Found, *patterns: tuple[Any, ...]) -> Any:
    if not isinstance(subject, Sequence) or isinstance(subject, (str, bytes, bytearray)):
        return False
    stars = [index for index, one in enumerate(patterns) if one[0] == "star"]
    if not stars:
        return len(subject) == len(patterns) and _all(subject, patterns, found)
    before = stars[0]
    behind = len(patterns) - before - 1
    if len(subject) < before + behind:
        return False
    end = len(subject) - behind
    if (name := patterns[before][1]) is not None:
        found[name] = list(subject[before:end])
    given = [*subject[:before], *subject[end:]]
    return _all(given, [*patterns[:before], *patterns[before + 1 :]], found)


def _all(subjects: Sequence[Any], patterns: Sequence[tuple[Any, ...]], found: Found) -> Any:
    holds: Any = True
    for subject, pattern in zip(subjects, patterns, strict=True):
        holds = _both(holds, _matches(subject, pattern, found))
        if holds is False:
            return False
    return holds


def _both(a: Any, b: Any) -> Any:
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return a & b
    if isinstance(a, Scalar):
        return a if b else False
    return b if a else False


def _mapping(subject: Any, found: Found, rest: str | None, *pairs: tuple[Any, Any]) -> Any:
    if not isinstance(subject, Mapping) or any(key not in subject for key, _ in pairs):
        return False
    keys = [key for key, _ in pairs]
    if rest is not None:
        found[rest] = {key: value for key, value in subject.items() if key not in keys}
    return _all([subject[key] for key in keys], [one for _, one in pairs], found)


def _class(
    subject: Any,
    found: Found,
    kind: Any,
    patterns: tuple[Any, ...],
    named: tuple[tuple[str, Any], ...],
) -> Any:
    if isinstance(subject, Scalar) and not (isinstance(kind, type) and issubclass(kind, Numeric)):
        tracing.refuse(f"a class pattern of {describe(subject)}", "use a value, or an `if`")
    if not isinstance(subject, kind):
        return False
    if patterns and kind in _WHOLE:
        return _all([subject], patterns, found)
    names = getattr(kind, "__match_args__", ())
    if len(patterns) > len(names):
        raise TypeError(
            f"{kind.__name__}() accepts {len(names)} positional sub-patterns"
            f" ({len(patterns)} given)"
        )
    pairs = [*zip(names, patterns, strict=False), *named]
    if any(not hasattr(subject, name) for name, _ in pairs):
        return False
    values = [getattr(subject, name) for name, _ in pairs]
    return _all(values, [pattern for _, pattern in pairs], found)


def _as(subject: Any, found: Found, pattern: Any, name: str | None) -> Any:
    holds = True if pattern is None else _matches(subject, pattern, found)
    if name is not None:
        found[name] = subject
    return holds


def _or(subject: Any, found: Found, *patterns: tuple[Any, ...]) -> Any:
    holds: Any = False
    for pattern in patterns:
        own: Found = {}
        one = _matches(subject, pattern, own)
        if not isinstance(one, Scalar):
            if one:
                if isinstance(holds, Scalar) and own:
                    _refuse_or()
                found.update(own)
                return True
            continue
        if own:
            _refuse_or()
        holds = one | holds if isinstance(holds, Scalar) else one
    return holds


def _refuse_or() -> None:
    tracing.refuse(
        "alternatives of a pattern that bind a name, under a dynamic condition",
        "write a `case` for each",
    )


_KINDS = {
    "value": _value,
    "is": _is,
    "sequence": _sequence,
    "mapping": _mapping,
    "class": _class,
    "as": _as,
    "or": _or,
}
