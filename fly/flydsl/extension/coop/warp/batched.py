"""Reductions of several values of each lane at once, whose results are spread over the lanes.

At each step a lane keeps one of two values and gives the other one to its partner, which keeps that
one: each of them combines what it keeps with what it gets. The number of values halves with each
step, so that `width` values need `width - 1` shuffles altogether.
"""

from __future__ import annotations

from typing import Any

from fly.flydsl.expr.gpu import lane_id, shuffle_xor
from fly.flydsl.expr.typing import Vector as Vectors
from fly.flydsl.extension.coop._common import combine, resolve_warp_width
from fly.flydsl.extension.coop._items import is_sequence, items_of

__all__ = [
    "warp_reduce_batched",
    "warp_reduce_batched_to_blocked",
    "warp_reduce_batched_to_striped",
]


def _values(value: Any, what: str) -> list[Any]:
    if not is_sequence(value):
        raise TypeError(f"{what} takes a sequence of values; write [value] for one")
    return items_of(value, None, None, what) if len(value) else []


def _total(values: list[Any], op: Any, width: int) -> Any:
    """Combines `values[i]` of all lanes of a group, in their order; lane `i` gets the result."""
    columns, step = dict(enumerate(values)), 1
    while step < width:
        is_low = (lane_id() & step) == 0
        kept: dict[int, Any] = {}
        for place, low in columns.items():
            if place & step:
                continue
            high = columns.get(place | step)
            own = low if high is None else is_low.select(low, high)
            other = shuffle_xor(low if high is None else is_low.select(high, low), step, width)
            # The lower lane's value first: the operation need not be commutative.
            kept[place] = combine(op, is_low.select(own, other), is_low.select(other, own))
        columns, step = kept, step * 2
    return columns[0]


def warp_reduce_batched(
    value: Any, op: Any, *, width: int | None = None, sync_physical_warp: bool = False
) -> Any:
    """Combines each of the values of a lane with those of the other lanes, in the order of lanes.
    The lane `i` of a group gets the result of the values `i`; lanes beyond have nothing of use.
    `op` is a `ReductionOp` or an associative function."""
    width = resolve_warp_width(width, "warp_reduce_batched width")
    values = _values(value, "warp_reduce_batched")
    if not 1 <= len(values) <= width:
        raise ValueError(f"warp_reduce_batched takes 1 to {width} values, got {len(values)}")
    return _total(values, op, width)


def warp_reduce_batched_to_blocked(
    value: Any, op: Any, *, width: int | None = None, sync_physical_warp: bool = False
) -> Any:
    """As `warp_reduce_batched`, for any number of values: a lane gets consecutive results."""
    width = resolve_warp_width(width, "warp_reduce_batched_to_blocked width")
    values = _values(value, "warp_reduce_batched_to_blocked")
    each = -(-len(values) // width)
    return _rows([values[slot::each] for slot in range(each)], values, op, width)


def warp_reduce_batched_to_striped(
    value: Any, op: Any, *, width: int | None = None, sync_physical_warp: bool = False
) -> Any:
    """As `warp_reduce_batched_to_blocked`; a lane gets the results from its own number on, `width`
    apart."""
    width = resolve_warp_width(width, "warp_reduce_batched_to_striped width")
    values = _values(value, "warp_reduce_batched_to_striped")
    rows = [values[first : first + width] for first in range(0, len(values), width)]
    return _rows(rows, values, op, width)


def _rows(rows: list[list[Any]], values: list[Any], op: Any, width: int) -> Any:
    if not values:
        return ()
    return Vectors.from_elements([_total(row or values[-1:], op, width) for row in rows])
