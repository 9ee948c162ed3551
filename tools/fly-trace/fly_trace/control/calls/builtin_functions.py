"""Python's builtin functions of dynamic values: any, all, min, max, and `in`."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fly_trace.control.branches import branch, condition, dynamic, truth
from fly_trace.control.calls import call, sequences
from fly_trace.control.carried import carried_values, object_fields
from fly_trace.control.carried.leaf_kinds import unify
from fly_trace.control.carried.merging import Merging
from fly_trace.control.carried.mismatches import refuse_mismatch
from fly_trace.core import rules, tracing
from fly_trace.effects import user_code
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import BOOL, I32
from fly_trace.values.functions.math_functions import where
from fly_trace.values.scalars import Scalar

_EMPTY: Any = object()


def any_(iterable: Iterable[Any]) -> Any:
    """`any(iterable)`: an item is only computed if those before it are false."""
    return _first(iter(iterable), True, isinstance(iterable, (list, tuple, dict)))


def all_(iterable: Iterable[Any]) -> Any:
    """`all(iterable)`: an item is only computed if those before it are true."""
    return _first(iter(iterable), False, isinstance(iterable, (list, tuple, dict)))


def _first(items: Iterator[Any], wanted: bool, is_computed: bool) -> Any:
    """Whether any item has the truth `wanted`: `wanted` if so, else its opposite."""
    for item in items:
        test = condition(item)
        if not dynamic(test):
            if truth(test) is wanted:
                return wanted
            continue
        value = convert(test, BOOL)
        if is_computed:
            rest = _first(items, wanted, True)
            if rest is (not wanted):
                return value
            if not dynamic(rest):
                return rest
            return value | rest if wanted else value & rest

        def rest_of() -> Any:
            return _first(items, wanted, False)

        def known() -> bool:
            return wanted

        sides = (known, rest_of) if wanted else (rest_of, known)
        what = "`any`" if wanted else "`all`"

        def join(a: Any, b: Any, merging: Merging, what: str = what) -> Any:
            return merging.merge(f"the result of {what}", a, b)

        return branch(value, *sides, join, what)
    return not wanted


def min_(*given: Any, key: Callable[[Any], Any] | None = None, default: Any = _EMPTY) -> Any:
    """`min(…)`: the first of the least, as Python compares."""
    return _best(builtins.min, sequences.less, given, key, default)


def max_(*given: Any, key: Callable[[Any], Any] | None = None, default: Any = _EMPTY) -> Any:
    """`max(…)`: the first of the greatest, as Python compares."""
    return _best(builtins.max, sequences.greater, given, key, default)


def _best(
    python: Any,
    better: Callable[[Any, Any], Any],
    given: tuple[Any, ...],
    key: Callable[[Any], Any] | None,
    default: Any,
) -> Any:
    items = list(given[0]) if len(given) == 1 else list(given)
    keys = [call.call(key, item) for item in items] if key is not None else items
    if not any(map(_may_be_dynamic, keys)):
        options = {} if default is _EMPTY else {"default": default}
        found = python(range(len(items)), key=keys.__getitem__, default=None)
        return python([], **options) if found is None else items[found]
    best, best_key = items[0], keys[0]
    for item, of_item in zip(items[1:], keys[1:], strict=True):
        test = better(of_item, best_key)
        best_key, before = choice(test, of_item, best_key), best_key
        is_key = item is of_item and best is before
        best = best_key if is_key else choice(test, item, best)
    return best


def _may_be_dynamic(value: Any) -> bool:
    """Whether comparisons of a value may be dynamic: of one that holds dynamic values, or of an
    object, whose fields a branch or loop may carry."""
    if object_fields.is_object(value):
        return True
    return any(isinstance(leaf, Scalar) for leaf in carried_values.leaves(value))


def choice(test: Any, a: Any, b: Any) -> Any:
    """`a if test else b`, both of which are computed."""
    if not dynamic(test):
        return a if truth(test) else b
    if carried_values.is_number(a) and carried_values.is_number(b):
        try:
            dtype = unify(a, b).dtype
        except carried_values.Mismatch as mismatch:
            refuse_mismatch("the result of `min` or `max`", mismatch, "for one item", "for another")
        assert dtype is not None
        return where(test, convert(a, dtype), convert(b, dtype))
    return branch(
        test,
        lambda: a,
        lambda: b,
        lambda x, y, merging: merging.merge("the result of `min` or `max`", x, y),
        "`min` or `max`",
    )


def contains(container: Any, item: Any) -> Any:
    """`item in container`."""
    kind = type(container)
    if kind is _VALUES:
        container, kind = list(container), list
    elif kind in _HASHED and isinstance(item, Scalar):
        container = [one for one in container if carried_values.is_number(one)]
        kind = list  # no other item or key can be equal to a number
    if kind is range and isinstance(item, Scalar):
        return _in_range(container, item)
    if kind not in (list, tuple):
        method = user_code.method_of(kind, "__contains__")
        if method is None:
            return item in container
        found = condition(method(container, item))
        return convert(found, BOOL) if dynamic(found) else truth(found)
    if all(type(one) in _KNOWN for one in (item, *container)):
        return item in container
    return any_([one is item or sequences.equal(one, item) for one in container])


def index(items: list[Any], value: Any, *bounds: int) -> int:
    """`items.index(value)`, which is known while tracing."""
    if not bounds and any(map(_may_be_dynamic, (value, *items))):
        for at, one in enumerate(items):
            test = condition(one is value or sequences.equal(one, value))
            if dynamic(test):
                tracing.refuse(
                    "index() compares dynamic values, and there may be no such item",
                    "compare them in a loop: for i, one in enumerate(…):"
                    " if one == x: at = i; break",
                )
            if truth(test):
                return at
    return items.index(value, *bounds)


def count(items: list[Any], value: Any) -> Any:
    """`items.count(value)`, of dynamic values too."""
    if not any(map(_may_be_dynamic, (value, *items))):
        return items.count(value)
    total: Any = 0
    for one in items:
        test = condition(one is value or sequences.equal(one, value))
        total = total + (convert(test, I32) if dynamic(test) else int(truth(test)))
    return total


def _in_range(numbers: range, item: Scalar) -> Any:
    if not numbers:
        return False
    low, high = builtins.sorted((numbers[0], numbers[-1]))
    inside = (item >= low) & (item <= high)
    if abs(numbers.step) == 1:
        return inside if item.dtype.is_integer or item.dtype.is_bool else inside & (item % 1 == 0)
    return inside & (item % abs(numbers.step) == low % abs(numbers.step))


def bool_(*given: Any) -> Any:
    """`bool(…)` of a dynamic value, or of an object whose `__bool__` returns one. Other rules of
    numbers have no such bools."""
    if len(given) != 1 or rules.current() is not None:
        return bool(*given)
    found = condition(given[0])
    return convert(found, BOOL) if dynamic(found) else bool(found)


def int_(*given: Any, **named: Any) -> Any:
    """`int(…)`: a dynamic integer is one, and a bool becomes one."""
    if len(given) == 1 and not named and rules.current() is None and dynamic(given[0]):
        (value,) = given
        if value.dtype.is_bool:
            return convert(value, I32)
        if value.dtype.is_integer:
            return value
    return int(*given, **named)


def pow_(base: Any, exponent: Any, modulus: Any = None) -> Any:
    """`pow(…)`, of dynamic values without a modulus."""
    if modulus is not None and any(map(dynamic, (base, exponent, modulus))):
        tracing.refuse(
            "pow() of a dynamic value takes no modulus",
            "multiply in a loop, and take the remainder of each product",
        )
    return pow(base, exponent, modulus)


_VALUES = type({}.values())
_HASHED = (dict, set, frozenset, type({}.keys()))
# Types whose values Python compares while tracing.
_KNOWN = frozenset((bool, int, float, str, bytes, type(None)))

call.TRACED_METHODS.update(index=index, count=count)
call.TRACED.update({any: any_, all: all_, bool: bool_, int: int_, min: min_, max: max_, pow: pow_})
