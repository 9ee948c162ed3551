"""Python ints that a dynamic loop carries. Such a variable becomes an integer of 32 or 64 bits,
which wraps around where Python's would grow.

It is an error if the iterations compute the value from constants only, and it leaves its type
within the loop's iterations, or within two if their number is dynamic. Of a dynamic branch, both
sides count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fly_trace.core import tracing
from fly_trace.values.value_ranges import Interval

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.control.loops.variables import Carried

SIMULATED = 64  # iterations that are computed; of a sum, all of them are
_DEPTH = 16
Values = dict["ir.Value", "Interval | None"]


def check(held: Carried, arguments: Any, outcome: list[ir.Value], runs: int | None) -> None:
    """Refuses a variable whose value leaves its type. `arguments` and `outcome` are the carried
    values at the start and the end of an iteration; `runs` is the number of iterations, or None."""
    types = [kind.dtype for kind in held.kinds]
    places = [
        at
        for at, (leaf, dtype) in enumerate(zip(held.leaves, types, strict=True))
        if type(leaf) is int and dtype is not None and dtype.is_integer
    ]
    if not places:
        return
    given = [list(arguments)[at] for at in places]
    ends = [outcome[at] for at in places]
    state: list[Interval | None] = [(held.leaves[at], held.leaves[at]) for at in places]
    for done in range(1, (2 if runs is None else min(runs, SIMULATED)) + 1):
        state = _iteration(given, ends, state)
        for at, value in zip(places, state, strict=True):
            _check(held, at, value, done)
    if runs is not None and runs > SIMULATED:
        for at, argument, end in zip(places, given, ends, strict=True):
            start = held.leaves[at]
            _check(held, at, _sum(argument, end, (start, start), runs), runs)


def _check(held: Carried, at: int, value: Interval | None, done: int) -> None:
    dtype = held.kinds[at].dtype
    assert dtype is not None, "it is a number"
    low, high = dtype.range
    if value is None or (low <= value[0] and value[1] <= high):
        return
    before = held.leaves[at]
    known = "" if value[0] == value[1] else "may be "
    wrong = value[1] if value[1] > high else value[0]
    tracing.refuse(
        f"`{held.name_of(before)}` is the Python int {before} before the loop, and so an"
        f" {dtype.name}, but {known}{wrong} after {done} iteration{'s' if done > 1 else ''}",
        f"begin with fx.Int64({before}), or with fx.Int32({before}) if it may wrap around",
    )


def _iteration(
    arguments: Iterable[ir.Value], ends: Iterable[ir.Value], state: Iterable[Interval | None]
) -> list[Interval | None]:
    """The values of variables after an iteration that begins with the values `state`."""
    known: Values = dict(zip(arguments, state, strict=True))
    return [_value(end, known, _DEPTH) for end in ends]


def _sum(argument: ir.Value, end: ir.Value, start: Interval, runs: int) -> Interval | None:
    """The value after so many iterations, each of which adds to it."""
    step = _value(end, {argument: (0, 0)}, _DEPTH, sums=True)
    if step is None:
        return None
    return start[0] + runs * step[0], start[1] + runs * step[1]


def _value(value: ir.Value, known: Values, depth: int, sums: bool = False) -> Interval | None:
    """The range of what is computed from the values of `known`, where it is found too; None if it
    depends on others. With `sums`, only sums are computed."""
    from fly_dialect.bindings import ir

    if value in known:
        return known[value]
    if depth == 0 or isinstance(value.owner, ir.Block):
        return None
    found = known[value] = _of_op(value, known, depth - 1, sums)
    return found


def _of_op(value: ir.Value, known: Values, depth: int, sums: bool) -> Interval | None:
    from fly_dialect.bindings import ir

    assert not isinstance(value.owner, ir.Block)
    op = value.owner.operation
    if op.name == "arith.constant":
        number = getattr(op.attributes["value"], "value", None)
        return (number, number) if type(number) is int else None
    if op.name == "scf.if" or op.name == "arith.select":
        return _either(value, op, known, depth, sums)
    if op.name == "scf.for":
        return _loop(value, op, known, depth, sums)
    if op.name not in ("arith.addi", "arith.subi", "arith.muli", "arith.shli"):
        return None
    a, b = (_value(one, known, depth, sums) for one in op.operands)
    if a is None or b is None:
        return None
    if op.name == "arith.addi":
        return a[0] + b[0], a[1] + b[1]
    if op.name == "arith.subi":
        return a[0] - b[1], a[1] - b[0]
    if sums:
        return None
    if op.name == "arith.shli":
        if not 0 <= b[0] == b[1] <= 64:
            return None
        b = (1 << b[0], 1 << b[0])
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _either(
    value: ir.Value, op: ir.Operation, known: Values, depth: int, sums: bool
) -> Interval | None:
    """The range of a result that is one of two values."""
    if op.name == "scf.if":
        at = _place(value, op)
        sides = [list(region.blocks[0].operations)[-1].operands[at] for region in op.regions]
    else:
        sides = list(op.operands)[1:]
    ranges = [_value(one, known, depth, sums) for one in sides]
    low = [one[0] for one in ranges if one is not None]
    high = [one[1] for one in ranges if one is not None]
    return (min(low), max(high)) if len(low) == len(ranges) else None


def _loop(
    value: ir.Value, op: ir.Operation, known: Values, depth: int, sums: bool
) -> Interval | None:
    """The range of a result of a loop within the iteration, whose bounds are constants."""
    bounds = [_value(one, known, depth) for one in list(op.operands)[:3]]
    if any(one is None or one[0] != one[1] for one in bounds):
        return None
    first, end, step = (one[0] for one in bounds if one is not None)
    runs = len(range(first, end, step)) if step else 0
    at = _place(value, op)
    start = _value(op.operands[3 + at], known, depth, sums)
    if start is None:
        return None
    block = op.regions[0].blocks[0]
    argument = list(block.arguments)[1 + at]
    return _sum(argument, list(block.operations)[-1].operands[at], start, runs)


def _place(value: ir.Value, op: ir.Operation) -> int:
    """The number of a result."""
    return next(at for at, one in enumerate(op.results) if one == value)
