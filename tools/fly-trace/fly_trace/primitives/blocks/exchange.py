"""Rearrangement of a block's items: blocked (thread t has the items from t · n on) and striped
(thread t has the items t, t + threads, …)."""

from __future__ import annotations

from typing import Any

from fly_trace import expr as fx
from fly_trace.control.carried import trees
from fly_trace.core import tracing
from fly_trace.primitives.blocks import threads


def striped_to_blocked(items: list[Any], *, barrier: bool = True) -> list[Any]:
    """The items of a striped arrangement in blocked arrangement.

    items: a list of n values of each thread: numbers, vectors, or tuples, dictionaries and objects
    of them. barrier: as of `reduce`. Cost: threads · n values in shared memory, 2 barriers, n
    stores and loads of each number in a value; loads of different threads are n apart and may be in
    the same bank. Nothing is moved if n is 1. As CUB's BlockExchange::StripedToBlocked.
    """
    what = "fx.block.striped_to_blocked"
    size, found = threads.size(what), listed(items, what)
    places = [threads.index() + i * size for i in range(len(found))]
    return moved(found, places, blocked_places(len(found)), barrier)


def blocked_to_striped(items: list[Any], *, barrier: bool = True) -> list[Any]:
    """The items of a blocked arrangement in striped arrangement.

    Arguments and cost: as of `striped_to_blocked`. As CUB's BlockExchange::BlockedToStriped.
    """
    what = "fx.block.blocked_to_striped"
    size, found = threads.size(what), listed(items, what)
    places = [threads.index() + i * size for i in range(len(found))]
    return moved(found, blocked_places(len(found)), places, barrier)


def scatter_to_blocked(items: list[Any], ranks: list[Any], *, barrier: bool = True) -> list[Any]:
    """The items in blocked arrangement, each at its rank.

    items: as of `striped_to_blocked`. ranks: an integer for each: all numbers below threads · n,
    once in the block. Cost: as of `striped_to_blocked`. As CUB's BlockExchange::ScatterToBlocked.
    """
    what = "fx.block.scatter_to_blocked"
    found = listed(items, what)
    return moved(found, ranked(ranks, found, what), blocked_places(len(found)), barrier, True)


def scatter_to_striped(items: list[Any], ranks: list[Any], *, barrier: bool = True) -> list[Any]:
    """The items in striped arrangement, each at its rank.

    Arguments and cost: as of `scatter_to_blocked`. As CUB's BlockExchange::ScatterToStriped.
    """
    what = "fx.block.scatter_to_striped"
    size, found = threads.size(what), listed(items, what)
    places = [threads.index() + i * size for i in range(len(found))]
    return moved(found, ranked(ranks, found, what), places, barrier, True)


def listed(items: Any, what: str) -> list[Any]:
    """The items of a thread, as a list with leaves of certain types."""
    if not isinstance(items, (list, tuple)) or not items:
        tracing.refuse(f"{what} takes a list of items, not {tracing.describe(items)}")
    return [trees.joined(one, trees.leaves(one, f"an item of {what}")) for one in items]


def ranked(ranks: Any, items: list[Any], what: str) -> list[Any]:
    """The ranks of items."""
    found = listed(ranks, what)
    if len(found) != len(items):
        tracing.refuse(f"{what} takes {len(items)} ranks, as many as items, not {len(found)}")
    return found


def blocked_places(count: int) -> list[Any]:
    """The places of a thread's items in blocked arrangement."""
    return [threads.index() * count + i for i in range(count)]


def moved(
    items: list[Any], source: list[Any], target: list[Any], barrier: bool, always: bool = False
) -> list[Any]:
    """The items at the places `target`, after each has been put at its place in `source`."""
    size, count = threads.size("an exchange"), len(items)
    if count == 1 and not always:
        return items
    shared = threads.arrays("exchange", items[0], size * count)
    for item, place in zip(items, source, strict=True):
        threads.put(shared, place, item)
    fx.barrier()
    found = [threads.got(shared, place, items[0]) for place in target]
    if barrier:
        fx.barrier()
    return found
