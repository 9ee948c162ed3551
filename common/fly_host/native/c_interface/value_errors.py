"""Says which expression has no value, and why: `fly_host.readers.values.Values` in code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fly_common.quoting import quoted

from fly_host import refusals
from fly_host.integers import DIVISIONS, SHIFTS, show
from fly_host.native.emission import marks
from fly_host.native.emission.frame import MISS
from fly_host.program import LEAVES

if TYPE_CHECKING:
    from fly_host.native.c_interface.frame import CFrame


def write(frame: CFrame, index: int, label: str) -> None:
    """Begins the block `label` for an expression that has no value; ends in the miss. Each
    expression below has one block, so the code is as long as the graph."""
    code = frame.code
    labels, waiting = {index: label}, [index]

    def block(operand: int) -> str:
        if operand not in labels:
            labels[operand] = code.name("no_value")
            waiting.append(operand)
        return labels[operand]

    while waiting:
        current = waiting.pop()
        code.begin(labels[current])
        kind, *operands = frame.program.expressions[current]
        if kind not in LEAVES:
            for operand in operands[: 1 if kind == "select" else None]:
                _unless(frame, operand, block)
        if kind == "select":
            condition, then, otherwise = operands
            value = frame.number(condition).value
            first, second = code.name("then"), code.name("else")
            code.branch(code.value(f"icmp ne i64 {value}, 0"), first, second)
            for side, operand in ((first, then), (second, otherwise)):
                code.begin(side)
                _unless(frame, operand, block)
                code.jump(MISS)  # one of them has no value
            continue
        _reason(frame, current)


def _unless(frame: CFrame, operand: int, block: Callable[[int], str]) -> None:
    """Goes on with an operand that has no value."""
    ok = frame.number(operand).ok
    if ok is not None:
        following = frame.code.name("next")
        frame.code.branch(ok, following, block(operand))
        frame.code.begin(following)


def _reason(frame: CFrame, index: int) -> None:
    code, expressions = frame.code, frame.program.expressions
    kind, *operands = expressions[index]
    shown = show(expressions, index)
    if kind in DIVISIONS or kind in SHIFTS:
        by = frame.number(operands[1]).value
        test = f"icmp eq i64 {by}, 0" if kind in DIVISIONS else f"icmp uge i64 {by}, 64"
        why = refusals.DIVISION if kind in DIVISIONS else refusals.shift(marks.integer(by))
        operation, width = code.name("operation"), code.name("width")
        code.branch(code.value(test), operation, width)
        code.begin(operation)
        frame.say(refusals.value(shown, why))
        code.jump(MISS)
        code.begin(width)
        frame.say(refusals.value(shown, refusals.WIDTH))
    elif kind == "scalar" and frame.number(index).ok == "false":
        frame.say(refusals.value(shown, f"{quoted(operands[0])} is not an integer scalar"))
    else:
        frame.say(refusals.value(shown, refusals.WIDTH))
    code.jump(MISS)
