"""`sorted` and `list.sort` of dynamic values: a network of comparisons and exchanges.

Python's sort is stable, and so is a network that exchanges neighbours only. That takes a square
number of comparisons, so longer lists have Batcher's odd-even merge sort, which compares equal keys
by their positions at first.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fly_trace.control import objects
from fly_trace.control.branches import branch, dynamic, truth
from fly_trace.control.calls import call
from fly_trace.control.calls.sequences import both, either, less, neither
from fly_trace.control.carried import carried_values
from fly_trace.control.carried.leaf_kinds import unify
from fly_trace.control.carried.mismatches import refuse_mismatch
from fly_trace.values.conversion import convert
from fly_trace.values.functions.math_functions import where
from fly_trace.values.scalars import Scalar

SHORT = 8  # so many items are sorted by exchanges of neighbours


def sorted_(
    iterable: Iterable[Any], *, key: Callable[[Any], Any] | None = None, reverse: Any = False
) -> list[Any]:
    """`sorted(…)`."""
    items = list(iterable)
    keys = [call.call(key, item) for item in items] if key is not None else items
    if not any(isinstance(leaf, Scalar) for one in keys for leaf in carried_values.leaves(one)):
        order = builtins.sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
        return [items[at] for at in order]
    plain = key is None and all(_is_integer(one) for one in items)
    short = len(items) <= SHORT
    # Rows of what moves together: the key, the item, and the position if it decides.
    pairs = zip(keys, items, strict=True)
    rows = [[one] for one in items] if key is None else [list(pair) for pair in pairs]
    by_place = not (plain or short)
    if by_place:
        rows = [[*row, at] for at, row in enumerate(rows)]
    for low, high in (neighbours if short else merges)(len(rows)):
        first, second = (high, low) if not truth(reverse) else (low, high)
        test = less(rows[first][0], rows[second][0])
        if by_place:
            same = neither(test, less(rows[second][0], rows[first][0]))
            test = either(test, both(same, rows[high][-1] < rows[low][-1]))
        rows[low], rows[high] = (
            [_choice(test, x, y) for x, y in zip(rows[high], rows[low], strict=True)],
            [_choice(test, x, y) for x, y in zip(rows[low], rows[high], strict=True)],
        )
    return [row[0 if key is None else 1] for row in rows]


def sort(items: list[Any], **options: Any) -> None:
    """`items.sort(…)`."""
    objects.target(items)
    items[:] = sorted_(items, **options)


def _is_integer(value: Any) -> bool:
    if isinstance(value, Scalar):
        return value.dtype.is_integer
    return type(value) is int


def neighbours(count: int) -> Iterator[tuple[int, int]]:
    """Insertion sort."""
    for end in range(1, count):
        for at in range(end, 0, -1):
            yield at - 1, at


def merges(count: int) -> Iterator[tuple[int, int]]:
    """Batcher's odd-even merge sort (Knuth, The Art of Computer Programming 3, 5.2.2M)."""
    top = 1 << max((count - 1).bit_length() - 1, 0)
    part = top
    while part:
        step, at, gap = top, 0, part
        while True:
            for low in range(count - gap):
                if low & part == at:
                    yield low, low + gap
            if step == part:
                break
            gap, step, at = step - part, step // 2, part
        part //= 2


def _choice(test: Any, a: Any, b: Any) -> Any:
    """`a if test else b`, both of which are computed: numbers are selected, for other values there
    is a branch."""
    if not dynamic(test):
        return a if truth(test) else b
    name = "the result of `sorted`"
    if not all(map(carried_values.is_number, carried_values.leaves((a, b)))):
        return branch(
            test, lambda: a, lambda: b, lambda x, y, merging: merging.merge(name, x, y), "`sorted`"
        )

    def select(x: Any, y: Any) -> Any:
        dtype = unify(x, y).dtype
        assert dtype is not None
        return where(test, convert(x, dtype), convert(y, dtype))

    try:
        return carried_values.merge(a, b, select)
    except carried_values.Mismatch as mismatch:
        refuse_mismatch(name, mismatch, "for one item", "for another")


call.TRACED[builtins.sorted] = sorted_
call.TRACED_METHODS["sort"] = sort
