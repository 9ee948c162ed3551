"""Scans of a wave's lanes, for any target: Hillis and Steele's, with shuffles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_trace.values.dtypes import I32

from fly.flydsl.expr.gpu import lane_id, shuffle_idx, shuffle_up
from fly.flydsl.expr.typing import Vector as Vectors
from fly.flydsl.extension.coop._common import (
    combine,
    identity,
    number,
    resolve_warp_width,
    seed,
)
from fly.flydsl.extension.coop._items import converted, is_sequence, items_of

__all__ = [
    "warp_exclusive_scan",
    "warp_inclusive_scan",
    "warp_scan",
    "warp_scan_with_aggregate",
]

Scan = Callable[[Any, Any, int], Any]


def inclusive_of(value: Any, op: Any, width: int, valid: Any = None) -> Any:
    """The values of a group's lanes up to this one, combined. With `valid`, the lanes from that
    number on keep theirs."""
    found = number(value)
    lane, offset = lane_id() % width, 1
    while offset < width:
        lower = shuffle_up(found, offset, width)
        takes = lane >= offset
        if valid is not None:
            takes = takes & (lane < valid)
        found = takes.select(combine(op, lower, found), found)
        offset *= 2
    return found


def exclusive_of(inclusive: Any, op: Any, width: int, init: Any = None) -> Any:
    """The values of the lanes below, combined, and `init` before them. The first lane of a group
    has `init`, or the identity; of a function without one, nothing of use."""
    dtype = inclusive.dtype
    below, is_first = shuffle_up(inclusive, 1, width), lane_id() % width == 0
    if init is not None:
        first = converted(init, dtype)
        return is_first.select(first, combine(op, first, below))
    if callable(op) and getattr(op, "identity", None) is None:
        return below
    return is_first.select(identity(op, dtype), below)


def last_of(inclusive: Any, width: int) -> Any:
    """The value of the last lane of each group."""
    return shuffle_idx(inclusive, (lane_id() // width) * width + (width - 1), width)


def checked_valid(valid_items: Any, value: Any, width: int) -> Any:
    """The number of lanes that count, or None for all."""
    if valid_items is None:
        return None
    if is_sequence(value):
        raise TypeError("valid_items is for one item of each lane, not for several")
    if isinstance(valid_items, int) and not 0 <= valid_items <= width:
        raise ValueError(f"valid_items must be between 0 and {width}, got {valid_items}")
    return None if isinstance(valid_items, int) and valid_items == width else I32(valid_items)


def scanned(
    value: Any, op: Any, width: int, init: Any, valid_items: Any, scan: Scan = inclusive_of
) -> tuple[Any, Any, Any]:
    """The inclusive and the exclusive scan with `init` before them, and the group's total without.
    A sequence is several items of a lane, one after the other, which `scan` gets the total of."""
    if is_sequence(init):
        raise TypeError("init is one item, not several")
    valid = checked_valid(valid_items, value, width)
    if is_sequence(value):
        return _of_items(value, op, width, init, scan)
    own = number(value)
    if init is not None:
        init = converted(init, own.dtype)
    if valid is None:
        inclusive = scan(own, op, width)
        before = exclusive_of(inclusive, op, width, init)
        return seed(inclusive, op, init), before, last_of(inclusive, width)
    counts = lane_id() % width < valid
    inclusive = inclusive_of(own, op, width, valid)
    before = counts.select(exclusive_of(inclusive, op, width, init), own)
    last = (lane_id() // width) * width + (valid > 0).select(valid - 1, I32(0))
    total = shuffle_idx(inclusive, last, width)
    return counts.select(seed(inclusive, op, init), own), before, total


def _of_items(value: Any, op: Any, width: int, init: Any, scan: Scan) -> tuple[Any, Any, Any]:
    items = items_of(value, None, None, "a scan")
    running = [items[0]]
    for item in items[1:]:
        running.append(combine(op, running[-1], item))
    inclusive = scan(running[-1], op, width)
    prefix, is_first = shuffle_up(inclusive, 1, width), lane_id() % width == 0
    if init is not None:
        init = converted(init, running[0].dtype)
    ends = [seed(is_first.select(one, combine(op, prefix, one)), op, init) for one in running]
    before = [exclusive_of(inclusive, op, width, init), *ends[:-1]]
    shaped = Vectors.from_elements
    return shaped(ends), shaped(before), last_of(inclusive, width)


def warp_inclusive_scan(
    value: Any, op: Any, *, width: int | None = None, init: Any = None, valid_items: Any = None
) -> Any:
    """Combines the values of a group's lanes up to this one, with `init` before them. `op` is a
    `ReductionOp`, or an associative function. A sequence is several items of a lane, one after the
    other. With `valid_items`, lanes from that number on keep their value."""
    width = resolve_warp_width(width, "warp_inclusive_scan width")
    return scanned(value, op, width, init, valid_items)[0]


def warp_exclusive_scan(
    value: Any, op: Any, *, width: int | None = None, init: Any = None, valid_items: Any = None
) -> Any:
    """Combines the values of a group's lanes before this one, with `init` before them. The first
    lane gets `init`, or the identity of the operation."""
    width = resolve_warp_width(width, "warp_exclusive_scan width")
    return scanned(value, op, width, init, valid_items)[1]


def warp_scan(
    value: Any, op: Any, *, width: int | None = None, init: Any = None, valid_items: Any = None
) -> tuple[Any, Any]:
    """The inclusive and the exclusive scan, by one scan."""
    width = resolve_warp_width(width, "warp_scan width")
    return scanned(value, op, width, init, valid_items)[:2]


def warp_scan_with_aggregate(
    value: Any, op: Any, *, width: int | None = None, init: Any = None, valid_items: Any = None
) -> tuple[Any, Any, Any]:
    """The inclusive and the exclusive scan, and the group's total without `init`."""
    width = resolve_warp_width(width, "warp_scan_with_aggregate width")
    return scanned(value, op, width, init, valid_items)
