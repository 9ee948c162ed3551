"""Sorting of a wave's items by a bitonic network (Batcher, "Sorting networks and their
applications", AFIPS 1968)."""

from __future__ import annotations

from typing import Any

from fly_trace import expr as fx
from fly_trace.control.carried import trees
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.primitives.blocks import exchange, threads
from fly_trace.primitives.sorting import ordering
from fly_trace.primitives.waves import lanes
from fly_trace.values.conversion import scalar

_WHAT = "fx.warp.sort"
_STEPS = (1, 2, 4, 8, 16, 32, 64)  # lanes, or items of a lane


def sort(
    keys: Any, values: Any = None, *, descending: bool = False, width: int | None = None
) -> Any:
    """Sorts the keys of each group of lanes.

    keys: an integer, float or bool of at most 64 bits; or a list of them, whose length is a power
    of two up to 64. Items are in blocked arrangement: lane i has the items from i · n on. -0.0 is
    before 0.0; NaN is after all numbers. values: a tree for each key, which moves with it. width:
    as of `reduce`. Returns the keys, or a pair of keys and values, as they were given. With values
    it is stable; of keys alone, equal ones are the same bits. Deterministic. Cost: for N items of a
    group log2(N) · (log2(N) + 1) / 2 steps, each with a comparison, selects, and, for all but
    log2(n) · (log2(n) + 1) / 2 + log2(n) · log2(width) of them, a move of every item. As CUB's
    WarpMergeSort.
    """
    lanes.check_width(width, _WHAT)
    given = list(keys) if isinstance(keys, (list, tuple)) else [keys]
    if len(given) not in _STEPS:
        tracing.refuse(f"{_WHAT} takes a power of two of keys, up to 64, not {len(given)}")
    dtype = scalar(given[0], f"a key of {_WHAT}").dtype
    words = [ordering.encoded(key, descending, _WHAT) for key in given]
    if values is None:
        items = [(word,) for word in words]
    else:
        moved = _values(values, isinstance(keys, (list, tuple)), len(given))
        first = lanes.lane_of_group(width) * len(given)
        items = [
            (word, (first + i).to(fx.Uint32), value)
            for i, (word, value) in enumerate(zip(words, moved, strict=True))
        ]
    items = sorted_items(items, width)
    found = [ordering.decoded(item[0], dtype, descending) for item in items]
    if not isinstance(keys, (list, tuple)):
        return found[0] if values is None else (found[0], items[0][2])
    return found if values is None else (found, [item[2] for item in items])


def _values(values: Any, several: bool, count: int) -> list[Any]:
    found = list(values) if several and isinstance(values, (list, tuple)) else [values]
    if len(found) != count:
        tracing.refuse(f"{_WHAT} takes {count} values, as many as keys, not {describe(values)}")
    return [trees.joined(one, trees.leaves(one, f"a value of {_WHAT}")) for one in found]


def sorted_items(items: list[Any], width: int | None) -> list[Any]:
    """Sorts a wave's items, tuples whose first one or two integers are their order."""
    most = 32 if width is None else width
    lane = fx.lane_id()
    items = sorted_in_lane(items, lane, most == 1)
    for group in _STEPS:
        if 1 < group <= most:
            items = merged_across(items, group, lane, width is not None and group == most)
    if width is None and fx.num_warp_threads() > 32:
        items = merged_across(items, 64, lane, True)
    return items


def sorted_block(items: list[Any], size: int) -> list[Any]:
    """Sorts the items of a block of `size` threads; both numbers are powers of two. Behind the
    last access of shared memory is a barrier."""
    if size <= threads.LEAST_WAVE:
        return sorted_items(items, size)
    tid = threads.index()
    items = sorted_in_lane(items, tid, False)
    group = 2
    while group <= size:
        items = merged_across(items, group, tid, group == size)
        group = group * 2
    return items


def merged_across(items: list[Any], group: int, thread: Any, is_last: bool) -> list[Any]:
    """Merges runs of half a group of threads into runs of a group, of which every other one is in
    reverse, unless it is the last step. thread: the number in the wave, or in the block if a group
    is longer than a wave may be."""
    rising = True if is_last else (thread & group) == 0
    step = group // 2
    while step > 0:
        lower = (thread & step) == 0
        keeps_lower = lower if isinstance(rising, bool) else lower == rising
        items = exchanged(items, step, thread, keeps_lower)
        step = step // 2
    return merged_in_lane(items, len(items), rising)


def exchanged(items: list[Any], step: int, thread: Any, keeps_lower: Any) -> list[Any]:
    """The lower or the higher ones of a thread's items and its partner's."""
    if step < threads.LEAST_WAVE:
        return [kept(item, lanes.partner(item, step), keeps_lower) for item in items]
    if step < threads.MOST_WAVE and fx.num_warp_threads() > step:
        return [kept(item, lanes.shuffle_xor(item, step), keeps_lower) for item in items]
    count = len(items)
    others = [(thread ^ step) * count + i for i in range(count)]
    places = exchange.blocked_places(count)
    found = exchange.moved(items, places, others, barrier=True, always=True)
    return [kept(a, b, keeps_lower) for a, b in zip(items, found, strict=True)]


def kept(item: Any, other: Any, keeps_lower: Any) -> Any:
    """The lower or the higher one of two items."""
    if len(item) == 1:
        low, high = fx.minimum(item[0], other[0]), fx.maximum(item[0], other[0])
        return (fx.where(keeps_lower, low, high),)
    return trees.select(is_before(other, item) == keeps_lower, other, item)


def sorted_in_lane(items: list[Any], lane: Any, is_last: bool) -> list[Any]:
    """Sorts the items of each lane, those of every other one in reverse, unless it is the last
    step."""
    count = len(items)
    for size in _STEPS:
        if 1 < size <= count:
            items = merged_within(items, size, lane, size == count and is_last)
    return items


def merged_within(items: list[Any], size: int, lane: Any, is_last: bool) -> list[Any]:
    """Merges runs of half a size of a lane's items into runs of the size."""
    if size == len(items):
        rising = True if is_last else (lane & 1) == 0
        return merged_in_lane(items, size, rising)
    made: list[Any] = []
    for first in fx.range_constexpr(0, len(items), size):
        made = made + merged_in_lane(items[first : first + size], size, first & size == 0)
    return made


def merged_in_lane(items: list[Any], size: int, rising: Any) -> list[Any]:
    """Sorts a bitonic sequence of a lane's items."""
    found = list(items)
    for step in reversed(_STEPS):
        if step < size:
            for low in fx.range_constexpr(size):
                if low & step == 0:
                    a, b = found[low], found[low + step]
                    if isinstance(rising, bool):
                        swap = is_before(b, a) if rising else is_before(a, b)
                    else:
                        swap = is_before(b, a) == rising
                    found[low] = trees.select(swap, b, a)
                    found[low + step] = trees.select(swap, a, b)
    return found


def is_before(a: Any, b: Any) -> Any:
    """Whether an item comes before another one. Two items are never equal, unless keys are all."""
    if len(a) == 1:
        return a[0] < b[0]
    return (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
