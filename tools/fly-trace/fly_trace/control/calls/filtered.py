"""`sum`, `any` and `all` of a generator expression whose `if` may be dynamic.

The expression is rewritten to pairs of the condition and a function that computes the item, since
Python cannot leave an item out under a condition that only the kernel knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fly_trace.control.branches import condition, dynamic, truth, value_of
from fly_trace.control.calls import call
from fly_trace.control.calls.builtin_functions import all_, any_
from fly_trace.core import tracing

Thunk = Callable[[], Any]
Pairs = Iterator[tuple[Any, Thunk]]  # whether an item counts, and the item


def filtered(
    function: Any, plain: Thunk, pairs: Callable[[], Pairs], *rest: Any, **named: Any
) -> Any:
    """`function(x for … if …, *rest)`. `plain` makes the generator as it is written."""
    reduce_ = _REDUCTIONS.get(function)
    if reduce_ is None or tracing.active() is None:
        return call.call(function, plain(), *rest, **named)
    return reduce_(pairs(), *rest, **named)


def _sum(pairs: Pairs, /, start: Any = 0) -> Any:
    total = start
    for test, item in pairs:
        if dynamic(test := condition(test)):
            total = _plus(test, total, item)
        elif truth(test):
            total = total + item()
    return total


def _plus(test: Any, total: Any, item: Thunk) -> Any:
    return value_of(test, lambda: total + item(), lambda: total, "the result of `sum`", "`sum`")


def _any(pairs: Pairs, /) -> Any:
    return any_(_truths(pairs, False, "`any`"))


def _all(pairs: Pairs, /) -> Any:
    return all_(_truths(pairs, True, "`all`"))


def _truths(pairs: Pairs, otherwise: bool, what: str) -> Iterator[Any]:
    """The items that count, and `otherwise` instead of each of the others."""
    for test, item in pairs:
        if dynamic(test := condition(test)):
            yield _truth(test, item, otherwise, what)
        elif truth(test):
            yield item()


def _truth(test: Any, item: Thunk, otherwise: bool, what: str) -> Any:
    def own() -> Any:
        value = condition(item())
        return value if dynamic(value) else truth(value)

    return value_of(test, own, lambda: otherwise, f"an item of {what}", what)


_REDUCTIONS: dict[Any, Callable[..., Any]] = {sum: _sum, any: _any, all: _all}
