"""Scans of a wave's lanes, for any target: Hillis and Steele's, with shuffles."""

from __future__ import annotations

from typing import Any

from fly.flydsl.expr.gpu import lane_id, shuffle_idx, shuffle_up
from fly.flydsl.extension.coop._common import combine, identity, number, resolve_warp_width, seed

__all__ = [
    "warp_exclusive_scan",
    "warp_inclusive_scan",
    "warp_scan",
    "warp_scan_with_aggregate",
]


def inclusive_of(value: Any, op: str, width: int) -> Any:
    found = number(value)
    offset = 1
    while offset < width:
        lower = shuffle_up(found, offset, width)
        found = (lane_id() % width >= offset).select(combine(op, lower, found), found)
        offset *= 2
    return found


def exclusive_of(inclusive: Any, op: str, width: int) -> Any:
    """The values of the lanes below; the first lane of a group has the identity."""
    below = shuffle_up(inclusive, 1, width)
    return (lane_id() % width > 0).select(below, identity(op, inclusive.dtype))


def last_of(inclusive: Any, width: int) -> Any:
    """The value of the last lane of each group."""
    return shuffle_idx(inclusive, (lane_id() // width) * width + (width - 1), width)


def warp_inclusive_scan(value: Any, op: str, *, width: int | None = None, init: Any = None) -> Any:
    """Combines the values of a group's lanes up to this one, with `init` before them."""
    width = resolve_warp_width(width, "warp_inclusive_scan width")
    return seed(inclusive_of(value, op, width), op, init)


def warp_exclusive_scan(value: Any, op: str, *, width: int | None = None, init: Any = None) -> Any:
    """Combines the values of a group's lanes before this one, with `init` before them. The first
    lane gets `init`, or the identity of the operation."""
    width = resolve_warp_width(width, "warp_exclusive_scan width")
    return seed(exclusive_of(inclusive_of(value, op, width), op, width), op, init)


def warp_scan(
    value: Any, op: str, *, width: int | None = None, init: Any = None
) -> tuple[Any, Any]:
    """The inclusive and the exclusive scan, by one scan."""
    width = resolve_warp_width(width, "warp_scan width")
    inclusive = inclusive_of(value, op, width)
    return seed(inclusive, op, init), seed(exclusive_of(inclusive, op, width), op, init)


def warp_scan_with_aggregate(
    value: Any, op: str, *, width: int | None = None, init: Any = None
) -> tuple[Any, Any, Any]:
    """The inclusive and the exclusive scan, and the group's total without `init`."""
    width = resolve_warp_width(width, "warp_scan_with_aggregate width")
    inclusive = inclusive_of(value, op, width)
    exclusive = seed(exclusive_of(inclusive, op, width), op, init)
    return seed(inclusive, op, init), exclusive, last_of(inclusive, width)
