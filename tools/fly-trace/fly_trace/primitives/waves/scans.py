"""Prefix sums, and other scans, of a wave's lanes."""

from __future__ import annotations

from typing import Any

from fly_trace import expr as fx
from fly_trace.control.carried import trees
from fly_trace.primitives.waves import lanes
from fly_trace.primitives.waves.operations import Operation, checked, combined, identity

_ROW = 16


def inclusive_scan(
    value: Any, op: Operation = "add", *, width: int | None = None, total: bool = False
) -> Any:
    """Combines the values of a group's lanes up to and including this one.

    op, width: as of `reduce`; a function need not be commutative. total: returns a pair, of the
    result and the group's total. Deterministic: the tree is fixed. Cost: log2(width) moves,
    operations and selects; the total is one more move. As CUB's WarpScan::InclusiveScan.
    """
    lanes.check_width(width, "fx.warp.inclusive_scan")
    value = upto(checked(op, value, "fx.warp.inclusive_scan"), op, width)
    if not total:
        return value
    return value, lanes.broadcast(value, lanes.lanes_of_group(width) - 1, width)


def exclusive_scan(
    value: Any,
    op: Operation = "add",
    *,
    initial: Any = None,
    width: int | None = None,
    total: bool = False,
) -> Any:
    """Combines the values of a group's lanes before this one.

    op, width: as of `reduce`. initial: what the first lane gets, and what the others' results start
    with; by default the identity of a named operation; a function needs one. total: returns a pair,
    of the result and the group's total, without `initial`. Deterministic. Cost: that of
    `inclusive_scan`, a move and a select. As CUB's WarpScan::ExclusiveScan.
    """
    lanes.check_width(width, "fx.warp.exclusive_scan")
    value = checked(op, value, "fx.warp.exclusive_scan")
    first = identity(op, value, "fx.warp.exclusive_scan") if initial is None else initial
    if initial is not None:
        first = trees.converted(initial, value, "initial of fx.warp.exclusive_scan")
    inner = upto(value, op, width)
    if initial is None and width is None:
        before = lanes.shifted(inner, first)
    else:
        before = before_lane(inner, width)
        if initial is not None:
            before = combined(op, first, before)
        before = trees.select(lanes.lane_of_group(width) > 0, before, first)
    if not total:
        return before
    return before, lanes.broadcast(inner, lanes.lanes_of_group(width) - 1, width)


def before_lane(inner: Any, width: int | None) -> Any:
    """The value of the lane below; the first lane of a group has no certain value."""
    return lanes.shifted(inner, inner) if width is None else lanes.shuffle_up(inner, 1, width)


def upto(value: Any, op: Operation, width: int | None) -> Any:
    """The inclusive scan of groups: in rows of 16 lanes, then over the rows."""
    row = _ROW if width is None else min(width, _ROW)
    neutral = identity(op, value, "a scan") if isinstance(op, str) else None
    for step in (1, 2, 4, 8):
        if step < row:
            if neutral is not None and row == _ROW:
                value = combined(op, lanes.row_shifted(value, step, neutral), value)
            else:
                lower = lanes.row_shifted(value, step, value)
                value = after(fx.lane_id() % row >= step, lower, value, op)
    if width is None or width == 32:
        if neutral is not None:
            value = combined(op, lanes.row_below(value, neutral), value)
        else:
            value = after(fx.lane_id() % 32 >= 16, lanes.row_below(value, value), value, op)
    if width is None and fx.num_warp_threads() > 32:
        if neutral is not None:
            value = combined(op, lanes.half_below(value, neutral), value)
        else:
            value = after(fx.lane_id() >= 32, lanes.half_below(value, value), value, op)
    return value


def after(condition: Any, lower: Any, value: Any, op: Operation) -> Any:
    """The value combined with that of lower lanes, where the condition holds."""
    return trees.select(condition, combined(op, lower, value), value)
