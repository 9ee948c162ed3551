"""Python ints that a dynamic loop carries. Such a variable becomes an integer of 32 or 64 bits,
which wraps around where Python's would grow.

Where that is certain, it is an error: if the iterations only add or multiply constants, and the
value leaves the type within the loop's iterations, or within two if their number is dynamic.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fly_trace.core import tracing

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.control.loop_variables import Carried

SIMULATED = 16  # iterations that are computed; of a sum, all of them are
_OPS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
}
_DEPTH = 16


def check(held: Carried, arguments: Any, outcome: list[ir.Value], runs: int | None) -> None:
    """Refuses a variable whose value leaves its type. `arguments` and `outcome` are the carried
    values at the start and the end of an iteration; `runs` is the number of iterations, or None."""
    places = [at for at, leaf in enumerate(held.leaves) if type(leaf) is int]
    if not places:
        return
    given = list(arguments)
    state = {given[at]: held.leaves[at] for at in places}
    iterations = 2 if runs is None else min(runs, SIMULATED)
    for done in range(1, iterations + 1):
        after = {given[at]: _value(outcome[at], state, _DEPTH) for at in places}
        for at in places:
            _check(held, at, after[given[at]], done)
        state = {key: value for key, value in after.items() if value is not None}
    if runs is not None and runs > iterations:
        for at in places:
            step = _value(outcome[at], {given[at]: 0}, _DEPTH, sums=True)
            if step is not None:
                _check(held, at, held.leaves[at] + runs * step, runs)


def _check(held: Carried, at: int, value: int | None, done: int) -> None:
    dtype = held.kinds[at].dtype
    assert dtype is not None, "it is a number"
    low, high = dtype.range
    if value is None or low <= value <= high:
        return
    before = held.leaves[at]
    tracing.refuse(
        f"`{held.name_of(before)}` is the Python int {before} before the loop, and so an"
        f" {dtype.name}, but {value} after {done} iteration{'s' if done > 1 else ''}",
        f"begin with fx.Int64({before}), or with fx.Int32({before}) if it may wrap around",
    )


def _value(
    value: ir.Value, state: dict[ir.Value, int], depth: int, sums: bool = False
) -> int | None:
    """The number that is computed from the numbers of `state`, or None if it depends on others."""
    from fly_dialect.bindings import ir

    if (known := state.get(value)) is not None:
        return known
    if depth == 0 or isinstance(value.owner, ir.Block):
        return None
    op = value.owner.operation
    if op.name == "arith.constant":
        number = getattr(op.attributes["value"], "value", None)
        return number if type(number) is int else None
    compute = _OPS.get(op.name)
    if compute is None or (sums and op.name == "arith.muli"):
        return None
    parts = [_value(one, state, depth - 1, sums) for one in op.operands]
    return None if None in parts else compute(*parts)  # type: ignore[arg-type]
