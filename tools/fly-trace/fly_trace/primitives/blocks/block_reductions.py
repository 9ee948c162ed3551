"""Reductions of a block."""

from __future__ import annotations

from typing import Any

from fly_trace import expr as fx
from fly_trace.primitives.blocks import threads
from fly_trace.primitives.waves import lanes, reductions
from fly_trace.primitives.waves.operations import Operation, checked, combined

_WHAT = "fx.block.reduce"
# Blocks with 8 to 32 waves, a power of two: all lanes combine the waves' values in steps.
_BUTTERFLY = (512, 1024)


def reduce(value: Any, op: Operation = "add", *, barrier: bool = True) -> Any:
    """Combines the values of the block's threads; all threads get the result.

    value: a number, a vector, or a tuple, dictionary or object of them; a list is several items of
    a thread. op: "add", "mul", "min", "max" (a NaN is propagated), "and", "or", "xor", each applied
    to every number, or an associative function of two values, which need not be commutative.
    barrier: False leaves out the last barrier; then the next primitive of the block has to be
    behind one. Deterministic: the tree is fixed by the block's size and the wave's, and all threads
    get the same bits. Cost: a wave's reduction, one value in shared memory for each wave, 2
    barriers, and reading the waves' values, each by one operation, or in blocks of 512 and 1024
    threads by log2(waves) operations; no memory and no barrier for a block of one wave. As CUB's
    BlockReduce with BLOCK_REDUCE_WARP_REDUCTIONS.
    """
    size = threads.size(_WHAT)
    items = [checked(op, item, _WHAT) for item in threads.items_of(value, _WHAT)]
    found = items[0]
    for item in items[1:]:
        found = combined(op, found, item)
    width, valid = threads.group_width(size), threads.valid_lanes(size)
    if valid is None and isinstance(op, str):
        found = reductions.butterfly(found, op, width)
    else:
        found = reductions.tree(found, op, width, valid)
        if threads.most_groups(size) == 1:
            return lanes.broadcast(found, 0, width)
        if size == threads.MOST_WAVE:
            found = lanes.broadcast(found, 0, width)
    if threads.most_groups(size) == 1:
        return found
    if threads.group_count(size) > 1:
        found = across(found, op, size, barrier)
    return found


def across(value: Any, op: Operation, size: int, barrier: bool) -> Any:
    """Combines the values of the groups' first lanes. All threads get the result."""
    most, count = threads.most_groups(size), threads.group_count(size)
    shared = threads.partials(value, size)
    if threads.lane() == 0:
        threads.put(shared, threads.group(), value)
    fx.barrier()
    if isinstance(op, str) and size in _BUTTERFLY:
        found = threads.got(shared, fx.lane_id() & (count - 1), value)
        for step in reductions.STEPS:
            if step < most and step < count:
                found = combined(op, found, reductions.other_group(found, step))
    else:
        found = threads.got(shared, 0, value)
        for other in fx.range_constexpr(1, most):
            if other < count:
                found = combined(op, found, threads.got(shared, other, value))
    if barrier:
        fx.barrier()
    return found
