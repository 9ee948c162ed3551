"""Reductions of a wave's lanes, for any target: of groups of lanes and of segments."""

from __future__ import annotations

from typing import Any

from fly_trace.values.dtypes import I32

from fly.flydsl.expr.gpu import lane_id, shuffle_down, shuffle_idx, shuffle_xor
from fly.flydsl.extension.coop._common import combine, number, resolve_warp_width, thread_partial
from fly.flydsl.extension.coop.warp.scan import checked_valid

__all__ = [
    "warp_broadcast",
    "warp_head_segmented_reduce",
    "warp_reduce",
    "warp_tail_segmented_reduce",
]


def warp_reduce(value: Any, op: Any, *, width: int | None = None, valid_items: Any = None) -> Any:
    """Combines the values of groups of `width` lanes, by default of the wave; all lanes of a group
    get the result. `op` is a `ReductionOp`, or an associative function, which gets values in the
    order of lanes. With `valid_items`, of the first lanes of a group. log2(width) shuffles."""
    width = resolve_warp_width(width, "warp_reduce width")
    valid = checked_valid(valid_items, value, width)
    found = number(thread_partial(value, op))
    if valid is not None:
        return _of_lane(_upto(found, op, valid - 1, width), I32(0), width)
    offset = 1
    while offset < width:
        other = shuffle_xor(found, offset, width)
        if callable(op):
            is_lower = (lane_id() & offset) == 0
            first, second = is_lower.select(found, other), is_lower.select(other, found)
            found = combine(op, first, second)
        else:
            found = combine(op, found, other)
        offset *= 2
    return found


def _of_lane(value: Any, lane: Any, width: int) -> Any:
    return shuffle_idx(value, (lane_id() // width) * width + lane, width)


def _upto(value: Any, op: Any, last: Any, width: int) -> Any:
    """The values of the lanes from this one to the lane `last` of the group, combined."""
    lane, offset = lane_id() % width, 1
    while offset < width:
        above = shuffle_down(value, offset, width)
        value = (lane + offset <= last).select(combine(op, value, above), value)
        offset *= 2
    return value


def _segments(value: Any, is_tail: Any, op: Any, width: int) -> Any:
    """The values of a segment, combined, in its first lane. A segment ends at a tail."""
    lane, offset = lane_id() % width, 1
    last = (is_tail | (lane == width - 1)).select(lane, I32(width))
    while offset < width:
        above = shuffle_down(last, offset, width)
        last = ((lane + offset < width) & (above < last)).select(above, last)
        offset *= 2
    return _upto(number(thread_partial(value, op)), op, last, width)


def warp_head_segmented_reduce(
    value: Any, head_flag: Any, op: Any, *, width: int | None = None
) -> Any:
    """Combines the values of segments, which begin at lanes whose flag is not 0. The first lane of
    a segment gets the result, the others nothing of use."""
    width = resolve_warp_width(width, "warp_head_segmented_reduce width")
    head = (number(head_flag) != 0).select(I32(1), I32(0))
    return _segments(value, shuffle_down(head, 1, width) != 0, op, width)


def warp_tail_segmented_reduce(
    value: Any, tail_flag: Any, op: Any, *, width: int | None = None
) -> Any:
    """As `warp_head_segmented_reduce`, for segments that end at lanes whose flag is not 0."""
    width = resolve_warp_width(width, "warp_tail_segmented_reduce width")
    return _segments(value, number(tail_flag) != 0, op, width)


def warp_broadcast(value: Any, source_lane: Any, *, width: int | None = None) -> Any:
    """The value of a lane of the group; lanes may choose different ones."""
    width = resolve_warp_width(width, "warp_broadcast width")
    if isinstance(source_lane, int) and not 0 <= source_lane < width:
        raise ValueError(f"source_lane must be between 0 and {width - 1}, got {source_lane}")
    return _of_lane(number(value), I32(source_lane), width)
