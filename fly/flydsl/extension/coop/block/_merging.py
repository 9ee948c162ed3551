"""A stable merge sort of a block's tile, which all sorts and selections here are.

Runs of 1, 2, 4, … items are merged. An item of the left run goes behind those of the right one that
are less than it, an item of the right run behind those of the left one that are not greater: their
number is found by a binary search. log2(tile) passes of two barriers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_trace.values.dtypes import I32

from fly.flydsl.expr.gpu import barrier
from fly.flydsl.extension.coop._items import blocked, integer

Less = Callable[[Any, Any], Any]


def merged(
    keys: list[Any], less: Less, slots: Any, order: Any, thread: Any, tile: int, valid: Any
) -> tuple[list[Any], list[Any]]:
    """The thread's keys of the sorted tile, in blocked order, and where each was before.

    `less` is a strict weak order of keys. `slots` and `order` are shared arrays of the tile's size,
    which have the sorted tile and these places afterwards, behind a barrier. Keys from `valid` on
    come last.
    """
    places = blocked(thread, len(keys))
    end = None if valid is None else integer(valid)
    for place, key in zip(places, keys, strict=True):
        slots[place] = key
        order[place] = place
    barrier()
    was = list(places)

    def before(key: Any, at: Any, other: Any, other_at: Any) -> Any:
        found = less(key, other)
        if end is None:
            return found
        return (at < end) & ((other_at >= end) | found)

    run = 1
    while run < tile:
        goals = [
            _goal(place, key, at, run, tile, before, slots, order)
            for place, key, at in zip(places, keys, was, strict=True)
        ]
        barrier()
        for goal, key, at in zip(goals, keys, was, strict=True):
            slots[goal] = key
            order[goal] = at
        barrier()
        keys = [slots[place] for place in places]
        was = [order[place] for place in places]
        run *= 2
    return keys, was


def _goal(
    place: Any, key: Any, at: Any, run: int, tile: int, before: Any, slots: Any, order: Any
) -> Any:
    """Where an item goes in a merge of two runs of `run` items; the last one may be shorter."""
    pair = (place // (2 * run)) * (2 * run)
    is_left = place - pair < run
    start = is_left.select(pair + run, pair)
    rest = I32(tile) - start
    size = (rest < run).select((rest > 0).select(rest, I32(0)), I32(run))
    low, high = I32(0), size
    for _ in range(run.bit_length()):
        middle = (low + high) // 2
        open_ = low < high
        probe = open_.select(start + middle, place)
        other, other_at = slots[probe], order[probe]
        first = before(other, other_at, key, at)
        after = before(key, at, other, other_at)
        goes = open_ & is_left.select(first, ~after)
        low, high = goes.select(middle + 1, low), (open_ & ~goes).select(middle, high)
    return pair + (place - pair) % run + low
