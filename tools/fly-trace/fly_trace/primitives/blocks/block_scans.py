"""Prefix sums, and other scans, of a block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_trace import expr as fx
from fly_trace.control.carried import trees
from fly_trace.core import tracing
from fly_trace.primitives.blocks import threads
from fly_trace.primitives.waves import lanes, scans
from fly_trace.primitives.waves.operations import Operation, checked, combined, identity

Prefix = Callable[[Any], Any]


def inclusive_scan(
    value: Any,
    op: Operation = "add",
    *,
    initial: Any = None,
    prefix: Prefix | None = None,
    total: bool = False,
    barrier: bool = True,
) -> Any:
    """Combines the items of the block up to and including each one.

    value: as of `reduce`; a list is several items of a thread, in blocked arrangement: thread t has
    the items from t · n on; the result is a list too. op, barrier: as of `reduce`. initial: what
    the results start with. prefix: instead, a function of the block's total that gives it; thread 0
    alone calls it. total: returns a pair, of the result and the block's total, without them.
    Deterministic: the tree is fixed by the block's size and the wave's. Cost: 2 (n - 1) operations
    in a thread, a wave's scan, one value in shared memory for each wave, 2 barriers, and reading
    the waves' values, each by an operation and a select; `prefix` is one value and barrier more; no
    memory and no barrier for a block of one wave. As CUB's BlockScan with BLOCK_SCAN_WARP_SCANS.
    """
    what = "fx.block.inclusive_scan"
    items = [checked(op, item, what) for item in threads.items_of(value, what)]
    inner = running(items, op)
    first = _first(initial, prefix, items[0], what)
    before, whole = before_thread(inner[-1], op, first, prefix, what, total, barrier)
    has_first = first is not None or prefix is not None
    found = []
    for item in inner:
        both = combined(op, before, item)
        found = [*found, both if has_first else trees.select(threads.index() > 0, both, item)]
    result = found if isinstance(value, list) else found[0]
    return (result, whole) if total else result


def exclusive_scan(
    value: Any,
    op: Operation = "add",
    *,
    initial: Any = None,
    prefix: Prefix | None = None,
    total: bool = False,
    barrier: bool = True,
) -> Any:
    """Combines the items of the block before each one.

    Arguments and cost: as of `inclusive_scan`. The first item gets `initial`, or what `prefix`
    gives; by default the identity of a named operation; a function needs one of them. As CUB's
    BlockScan::ExclusiveScan.
    """
    what = "fx.block.exclusive_scan"
    items = [checked(op, item, what) for item in threads.items_of(value, what)]
    inner = running(items, op)
    first = _first(initial, prefix, items[0], what)
    is_neutral = first is None and prefix is None
    if is_neutral:
        first = identity(op, items[0], what)
    before, whole = before_thread(inner[-1], op, first, prefix, what, total, barrier, is_neutral)
    found = [before, *[combined(op, before, item) for item in inner[:-1]]]
    result = found if isinstance(value, list) else found[0]
    return (result, whole) if total else result


def _first(initial: Any, prefix: Prefix | None, like: Any, what: str) -> Any:
    if initial is None:
        return None
    if prefix is not None:
        tracing.refuse(f"{what} takes initial or prefix, not both")
    return trees.converted(initial, like, f"initial of {what}")


def running(items: list[Any], op: Operation) -> list[Any]:
    """The items of a thread, each combined with all before it."""
    found = [items[0]]
    for item in items[1:]:
        found = [*found, combined(op, found[-1], item)]
    return found


def before_thread(
    value: Any,
    op: Operation,
    first: Any,
    prefix: Prefix | None,
    what: str,
    total: bool,
    barrier: bool,
    is_neutral: bool = False,
) -> tuple[Any, Any]:
    """The values of the threads before this one, combined, and those of all. `first` is before the
    first thread; without it, that has no certain value. With `is_neutral` it is an identity."""
    size = threads.size(what)
    width = threads.group_width(size)
    inner = scans.upto(value, op, width)
    before = scans.before_lane(inner, width)
    whole: Any = value
    needs_total = total or prefix is not None
    if threads.most_groups(size) == 1:
        if needs_total:
            whole = lanes.broadcast(inner, threads.last_lane(size), width)
    elif size == threads.MOST_WAVE and needs_total:
        whole = lanes.broadcast(inner, threads.last_lane(size), width)
    if threads.most_groups(size) > 1 and threads.group_count(size) > 1:
        before, whole = across(inner, before, op, size, needs_total, barrier)
    if prefix is not None:
        first = _given(prefix, whole, value, barrier)
    if first is not None:
        later = before if is_neutral else combined(op, first, before)
        before = trees.select(threads.index() > 0, later, first)
    return before, whole


def across(
    inner: Any, before: Any, op: Operation, size: int, total: bool, barrier: bool
) -> tuple[Any, Any]:
    """What is before a thread in its group becomes what is before it in the block."""
    most, count = threads.most_groups(size), threads.group_count(size)
    shared = threads.partials(inner, size)
    group, lane = threads.group(), threads.lane()
    if lane == threads.last_lane(size):
        threads.put(shared, group, inner)
    fx.barrier()
    whole = threads.got(shared, 0, inner)
    lower = whole
    for other in fx.range_constexpr(1, most):
        if other < count:
            lower = trees.select(group == other, whole, lower)
            if total or other < most - 1:
                whole = combined(op, whole, threads.got(shared, other, inner))
    if barrier:
        fx.barrier()
    both = trees.select(lane > 0, combined(op, lower, before), lower)
    return trees.select(group > 0, both, before), whole


def _given(prefix: Prefix, whole: Any, like: Any, barrier: bool) -> Any:
    """What `prefix` gives for the total, called by thread 0 and told to all."""
    shared = threads.arrays("prefix", like, 1)
    if threads.index() == 0:
        made = prefix(whole)
        threads.put(shared, 0, trees.converted(made, like, "the result of prefix"))
    fx.barrier()
    found = threads.got(shared, 0, like)
    if barrier:
        fx.barrier()
    return found
