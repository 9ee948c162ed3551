"""Installs Python's operators and conversions on the language's values. Importing this module does
so for scalars; `vectors` installs those of vectors.

The operators are defined by `arithmetic` and `math_functions`, which import the classes of values,
so the classes cannot refer to them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fly_trace.core import rules
from fly_trace.values import arithmetic, conversion
from fly_trace.values.dtypes import DType
from fly_trace.values.functions import math_functions
from fly_trace.values.scalars import Scalar

# Python's method → our operation's name. Those of the first line also have an `__r…__` form.
BINARY = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod"),
    *("lshift", "rshift", "and", "or", "xor"),
)
COMPARISON = ("eq", "ne", "lt", "le", "gt", "ge")
UNARY = ("neg", "pos", "invert", "abs")


def install(
    kind: type, binary: Callable[[str, Any, Any], Any], unary: Callable[[str, Any], Any]
) -> None:
    """Adds operators to a class: `a + b` is `binary("add", a, b)`, `-a` is `unary("neg", a)`."""

    def method(name: str, function: Any) -> None:
        function.__name__ = function.__qualname__ = name
        setattr(kind, name, function)

    for word in (*BINARY, *COMPARISON):
        method(f"__{word}__", lambda self, other, word=word: binary(word, self, other))
    for word in BINARY:
        method(f"__r{word}__", lambda self, other, word=word: binary(word, other, self))
    for word in UNARY:
        method(f"__{word}__", lambda self, word=word: unary(word, self))


def ruled(binary: Callable[[str, Any, Any], Any]) -> Callable[[str, Any, Any], Any]:
    """A binary operation by the rules of the trace, if it has its own."""

    def chosen(operation: str, a: Any, b: Any) -> Any:
        own = rules.current()
        return binary(operation, a, b) if own is None else own.binary(operation, a, b)

    return chosen


def ruled_unary(unary: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """The same for an operation on one operand."""

    def chosen(operation: str, a: Any) -> Any:
        own = rules.current()
        return unary(operation, a) if own is None else own.unary(operation, a)

    return chosen


def ruled_to(to: Callable[..., Any]) -> Callable[..., Any]:
    """The same for `x.to(…)`."""

    @functools.wraps(to)
    def chosen(self: Any, dtype: Any, **how: Any) -> Any:
        own = rules.current()
        return to(self, dtype, **how) if own is None else own.to(self, dtype, **how)

    return chosen


def _binary(operation: str, a: Any, b: Any) -> Any:
    if operation == "pow":
        return math_functions.power(a, b)
    return arithmetic.binary(operation, a, b)


install(Scalar, ruled(_binary), ruled_unary(arithmetic.unary))
setattr(Scalar, "to", ruled_to(conversion.to))  # noqa: B010
setattr(Scalar, "bitcast", conversion.bitcast)  # noqa: B010


def _converted(self: DType, value: Any) -> Any:
    own = rules.current()
    return conversion.convert(value, self) if own is None else own.convert(value, self)


setattr(DType, "__call__", _converted)  # noqa: B010
