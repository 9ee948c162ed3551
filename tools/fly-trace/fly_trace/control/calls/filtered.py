"""`sum`, `any`, `all`, `min` and `max` of a generator expression whose `if` may be dynamic.

The expression is rewritten to pairs of the condition and a function that computes the item, since
Python cannot leave an item out under a condition that only the kernel knows.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from fly_trace.control.branches import condition, dynamic, truth, value_of
from fly_trace.control.calls import call, sequences
from fly_trace.control.calls.builtin_functions import all_, any_, choice
from fly_trace.core import tracing
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import BOOL

Thunk = Callable[[], Any]
Pairs = Iterator[tuple[Any, Thunk]]  # whether an item counts, and the item

_NONE: Any = object()


def filtered(
    function: Any, plain: Thunk, pairs: Callable[[], Pairs], *rest: Any, **named: Any
) -> Any:
    """`function(x for … if …, *rest)`. `plain` makes the generator as it is written."""
    reduce_ = _REDUCTIONS.get(function)
    if function in (min, max) and rest:
        reduce_ = None
    if reduce_ is None or tracing.active() is None:
        return call.call(function, plain(), *rest, **named)
    return reduce_(pairs(), *rest, **named)


def kept(test: Any) -> bool:
    """The condition of another comprehension, of which the kernel can't leave items out."""
    if dynamic(test := condition(test)):
        tracing.refuse(
            "the `if` of a comprehension is dynamic, so that the number of its items is not known",
            "use sum, any, all, min or max(x for … if …), or a loop with an `if`",
        )
    return truth(test)


def _next(pairs: Pairs, /, *default: Any) -> Any:
    for test, item in pairs:
        if dynamic(test := condition(test)):
            tracing.refuse(
                "next() of items under a dynamic condition",
                "use a loop with `break` and `else`",
            )
        if truth(test):
            return item()
    return next(iter(()), *default)


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


def _best(
    function: Any,
    pairs: Pairs,
    /,
    *,
    key: Callable[[Any], Any] | None = None,
    default: Any = _NONE,
) -> Any:
    """`min` or `max`. `found` says whether `best` is an item, and not the default, which counts
    only if there is none."""
    name = function.__name__
    better = sequences.less if function is min else sequences.greater
    items: list[Any] = []
    for test, item in pairs:
        if dynamic(test := condition(test)):
            break
        if truth(test):
            items.append(item())
    else:
        given = {} if default is _NONE else {"default": default}
        return call.call(function, items, key=key, **given)
    if not items and default is _NONE:
        tracing.refuse(
            f"{name}() of items under a dynamic condition: there may be none",
            f"say what it is then: {name}(…, default=…)",
        )
    found: Any = bool(items)
    best = call.call(function, items, key=key) if items else default

    def key_of(value: Any) -> Any:
        return value if key is None else call.call(key, value)

    best_key = key_of(best)  # that of a default only has the type

    def offered(item: Thunk) -> Any:
        value = item()
        of_value = key_of(value)
        if found is False:
            return value, of_value
        test = sequences.either(sequences.opposite(found), better(of_value, best_key))
        chosen = choice(test, value, best)
        return chosen, chosen if key is None else choice(test, of_value, best_key)

    what = f"`{name}`"
    for one, of_one in itertools.chain(((test, item),), pairs):
        if dynamic(counts := condition(one)):
            counts = convert(counts, BOOL)
            best, best_key = value_of(
                counts,
                functools.partial(offered, of_one),
                lambda now=(best, best_key): now,
                f"the result of {what}",
                what,
            )
        elif truth(counts):
            best, best_key = offered(of_one)
        found = sequences.either(found, counts)
    return best


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


_REDUCTIONS: dict[Any, Callable[..., Any]] = {
    sum: _sum,
    any: _any,
    all: _all,
    next: _next,
    min: functools.partial(_best, min),
    max: functools.partial(_best, max),
}
