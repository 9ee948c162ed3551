"""Reductions of a wave's lanes."""

from __future__ import annotations

from typing import Any

from fly_trace import expr as fx
from fly_trace.control.carried import trees
from fly_trace.primitives.waves import lanes
from fly_trace.primitives.waves.operations import Operation, checked, combined

STEPS = (1, 2, 4, 8, 16)
# Where groups of `step` lanes already have one value each, any lane of the other group will do.
# Reversals of 8 and 16 lanes are moves within a row of lanes, unlike xor with 4 and 8.
_PARTNERS = {1: 1, 2: 2, 4: 7, 8: 15, 16: 16}


def reduce(
    value: Any, op: Operation = "add", *, width: int | None = None, valid: Any = None
) -> Any:
    """Combines the values of the lanes of each group; all its lanes get the result.

    op: "add", "mul", "min", "max" (a NaN is propagated), "and", "or", "xor", each applied to every
    number, or an associative function of two values, which need not be commutative. width: groups
    of so many lanes, 1 to 32; None is the whole wave. valid: only the group's first lanes have a
    value, so many, at least 1. Deterministic: the tree is fixed, and sums of floats are the same
    bits in all lanes. Cost: log2(width) moves and operations for a name; two selects with `valid`
    and one more move for it or a function. As CUB's WarpReduce.
    """
    lanes.check_width(width, "fx.warp.reduce")
    value = checked(op, value, "fx.warp.reduce")
    if valid is None and isinstance(op, str):
        return butterfly(value, op, width)
    value = tree(value, op, width, valid)
    return lanes.broadcast(value, 0, width)


def butterfly(value: Any, op: Operation, width: int | None) -> Any:
    """Combines groups by a commutative operation. All lanes get the result."""
    for step in STEPS[:4]:
        if width is None or step < width:
            value = combined(op, value, other_group(value, step))
    if width is None and fx.num_warp_threads() > 32:
        # The sum gathers in the last lane. The values of the others are not used.
        value = combined(op, value, lanes.last_of_rows(value))
        value = combined(op, value, lanes.last_of_halves(value))
        value = lanes.of_lane(value, 63)
    elif width is None or width == 32:
        value = combined(op, value, other_group(value, 16))
    return value


def other_group(value: Any, step: int) -> Any:
    """The value of the other one of two groups of `step` lanes, each of which has one value."""
    return lanes.partner(value, _PARTNERS[step])


def tree(value: Any, op: Operation, width: int | None, valid: Any) -> Any:
    """Combines groups in the order of the lanes. Only their first lanes have the result."""
    for step in STEPS:
        if width is None or step < width:
            value = merged(value, op, step, width, valid)
    if width is None and fx.num_warp_threads() > 32:
        value = merged(value, op, 32, width, valid)
    return value


def merged(value: Any, op: Operation, step: int, width: int | None, valid: Any) -> Any:
    """Each lane's value combined with that of the lane `step` above, if that has one."""
    both = combined(op, value, lanes.shuffle_down(value, step, width))
    if valid is None:
        return both
    return trees.select(lanes.lane_of_group(width) + step < valid, both, value)
