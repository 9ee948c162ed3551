"""The greatest items of a block."""

from __future__ import annotations

from typing import Any

from fly_trace import expr as fx
from fly_trace.control.carried import trees
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.primitives.blocks import block_reductions, exchange, threads
from fly_trace.primitives.sorting import bitonic, ordering
from fly_trace.values.conversion import scalar

_WHAT = "fx.block.top_k"
_LAST = 0xFFFF_FFFF
_QUEUE = 8  # items of a thread that are sorted together


def top_k(
    keys: Any,
    k: int,
    values: Any = None,
    *,
    largest: bool = True,
    valid: Any = None,
    barrier: bool = True,
) -> tuple[list[Any], list[Any]]:
    """The k greatest keys of the block in descending order, or with `largest=False` the least ones
    in ascending order. All threads get them.

    keys: an integer, float or bool of at most 64 bits, or a list of n of them, in blocked
    arrangement. 0.0 is greater than -0.0; NaN is greater than all numbers. Of equal keys, those of
    the first items win. values: what belongs to each key: a number, a vector, or a tuple,
    dictionary or object of them. valid: how many items there are, at least k. barrier: as of
    `reduce`. Returns the keys and their values, or without values the items' places as i32, lists
    of k. Deterministic. Cost: for k > 1 a network that sorts the thread's items, eight at a time; k
    reductions of 64 bits (96 for keys of 64 bits), each with 2 barriers, and n selects; values take
    shared memory for k, n comparisons for each, and a barrier. For great k, sort.
    """
    size = threads.size(_WHAT)
    several = isinstance(keys, list)
    given = threads.items_of(keys, _WHAT)
    count = len(given)
    if isinstance(k, bool) or not isinstance(k, int) or not 0 < k <= size * count:
        tracing.refuse(f"k of {_WHAT} is a Python int from 1 to {size * count}, not {describe(k)}")
    dtype = scalar(given[0], f"a key of {_WHAT}").dtype
    places = exchange.blocked_places(count)
    items = []
    for key, place in zip(given, places, strict=True):
        item = entry(ordering.encoded(key, not largest, _WHAT), place)
        if valid is not None:
            item = trees.select(place < valid, item, nothing(item))
        items = [*items, item]
    moved = None
    if values is not None:
        moved = exchange.listed(values if several else [values], _WHAT)
        if len(moved) != count:
            tracing.refuse(f"{_WHAT} takes {count} values, as many as keys, not {describe(values)}")
    shared = [] if moved is None else threads.arrays("selected", moved[0], k)
    queues = [greatest(items[i : i + _QUEUE], k) for i in range(0, count, _QUEUE)]
    winners: list[Any] = []
    for turn in fx.range_constexpr(k):
        (best,) = greatest([queue[0] for queue in queues], 1)
        best = block_reductions.reduce(best, "max" if len(best) == 1 else greater)
        winners = [*winners, best]
        if moved is not None:
            for item, value in zip(items, moved, strict=True):
                if is_same(item, best):
                    threads.put(shared, turn, value)
        queues = [without(queue, best) for queue in queues]
    found = [ordering.decoded(word_of(one, dtype), dtype, not largest) for one in winners]
    if moved is None:
        return found, [(_LAST - one[-1].to(fx.Uint32)).to(fx.Int32) for one in winners]
    fx.barrier()
    chosen = [threads.got(shared, turn, moved[0]) for turn in range(k)]
    if barrier:
        fx.barrier()
    return found, chosen


def entry(word: Any, place: Any) -> Any:
    """Integers that order items, greatest first; no two items are equal, and none is nothing."""
    low = fx.Uint32(_LAST) - place.to(fx.Uint32)
    if word.dtype.bits == 64:
        return word, low
    return (word.to(fx.Uint64) << 32 | low.to(fx.Uint64),)


def greatest(items: list[Any], k: int) -> list[Any]:
    """The k greatest of some items in descending order, or all if there are less."""
    if k == 1:
        best = items[0]
        for item in items[1:]:
            best = greater(best, item)
        return [best]
    count = 1 << (len(items) - 1).bit_length()
    padded = [*items, *[nothing(items[0]) for _ in range(len(items), count)]]
    return bitonic.sorted_in_lane(padded, None, True)[::-1][: min(k, len(items))]


def without(queue: list[Any], item: Any) -> list[Any]:
    """A queue behind its first item if that is this one."""
    is_first, later = is_same(queue[0], item), [*queue[1:], nothing(item)]
    return [trees.select(is_first, b, a) for a, b in zip(queue, later, strict=True)]


def nothing(item: Any) -> Any:
    """What is less than any item."""
    return tuple(part.dtype(0) for part in item)


def word_of(item: Any, dtype: Any) -> Any:
    """The bits of an item's key."""
    if len(item) == 2:
        return item[0]
    word = {8: fx.Uint8, 16: fx.Uint16, 32: fx.Uint32}[max(8, dtype.bits)]
    return (item[0] >> 32).to(word)


def greater(a: Any, b: Any) -> Any:
    """The greater one of two items."""
    if len(a) == 1:
        return (fx.maximum(a[0], b[0]),)
    is_less = (a[0] < b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
    return trees.select(is_less, b, a)


def is_same(a: Any, b: Any) -> Any:
    """Whether two items are one."""
    return a[0] == b[0] if len(a) == 1 else (a[0] == b[0]) & (a[1] == b[1])
