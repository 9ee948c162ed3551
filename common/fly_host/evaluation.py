"""The interpreter of a launch plan's integer expressions.

    values = evaluate(plan, {"A": Extents((1000,), (1,))}, {"n": 1000})

`values[i]` is the value of `plan.expressions[i]`. Arithmetic is on 64-bit signed integers.
Overflow, division by zero and an invalid shift amount raise InputError, which spells out the
expression; values never wrap. The branch of a `select` that is not chosen may be undefined.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fly_common.errors import InputError
from fly_common.quoting import quoted

from fly_host.plan import Expression, Plan

if TYPE_CHECKING:
    from fly_host.graph import Graph

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class Extents:
    """The properties of a tensor that a plan may query: extents and strides, in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _floordiv(a: int, b: int) -> int:
    return a // b


def _ceildiv(a: int, b: int) -> int:
    return -(-a // b)


def _truncdiv(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _rem(a: int, b: int) -> int:
    return a - b * _truncdiv(a, b)


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": _floordiv,
    "ceildiv": _ceildiv,
    "truncdiv": _truncdiv,
    "mod": operator.mod,
    "rem": _rem,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
}
DIVISIONS = frozenset(("floordiv", "ceildiv", "truncdiv", "mod", "rem"))
SHIFTS = frozenset(("shl", "shr"))
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "and": "&", "or": "|",
    "xor": "^", "shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
}  # fmt: skip


class _Undefined(Exception):
    """An expression has no value. This is an error only if the value is needed."""


def evaluate(
    plan: Plan,
    tensors: Mapping[str, Extents],
    scalars: Mapping[str, int],
    needed: tuple[int, ...] | None = None,
) -> list[int | None]:
    """Returns the values of a plan's expressions; None for undefined ones that are not needed.

    `needed` holds the indices that must have a value; the default is what launches use. A plan
    lists operands before their users, so one pass suffices.
    """
    values: list[int | None] = []
    reasons: dict[int, str] = {}
    for index, expression in enumerate(plan.expressions):
        try:
            value = _value(expression, values, tensors, scalars)
        except _Undefined as why:
            values.append(None)
            reasons[index] = str(why)
            continue
        values.append(value)
    for index in uses(plan) if needed is None else needed:
        if values[index] is None:
            raise InputError(
                f"the launch plan can't be evaluated: {_blame(plan, index, values, reasons)}",
                hint=f"it is needed for {show(plan, index)}",
            )
    return values


def uses(plan: Plan) -> tuple[int, ...]:
    """Returns the indices of the expressions that launches use directly."""
    used: list[int] = []
    for launch in plan.launches:
        used += [*launch.grid, *launch.block, launch.lds]
        words = (word for argument in launch.arguments for word in argument)
        used += [word.expression for word in words if word.expression is not None]
    return tuple(used)


def _value(
    expression: Expression,
    values: list[int | None],
    tensors: Mapping[str, Extents],
    scalars: Mapping[str, int],
) -> int:
    kind, *operands = expression
    if kind == "const":
        return _checked(operands[0])
    if kind in ("extent", "stride"):
        name, dimension = operands
        found = tensors.get(name)
        if found is None or not 0 <= dimension < len(found.shape):
            raise _Undefined(f"there is no {kind} {dimension} of {quoted(name)}")
        return _checked((found.shape if kind == "extent" else found.strides)[dimension])
    if kind == "scalar":
        value = scalars.get(operands[0])
        if value is None or not isinstance(value, int):
            raise _Undefined(f"{quoted(operands[0])} is not an integer scalar")
        return _checked(int(value))
    if kind == "select":
        condition = _needed(values, operands[0])
        return _needed(values, operands[1] if condition else operands[2])
    a, b = (_needed(values, operand) for operand in operands)
    if kind in DIVISIONS and b == 0:
        raise _Undefined("division by zero")
    if kind in SHIFTS and not 0 <= b < 64:
        raise _Undefined(f"a shift by {b}")
    return _checked(int(BINARY[kind](a, b)))


def _needed(values: list[int | None], index: int) -> int:
    value = values[index]
    if value is None:
        raise _Undefined("")
    return value


def _checked(value: int) -> int:
    if not LOWEST <= value <= HIGHEST:
        raise _Undefined("the value does not fit in 64 bits")
    return value


def _blame(plan: Plan, index: int, values: list[int | None], reasons: dict[int, str]) -> str:
    """Describes the innermost undefined expression that `index` depends on."""
    while not reasons[index]:
        kind, *operands = plan.expressions[index]
        if kind == "select" and values[operands[0]] is not None:
            operands = operands[1:2] if values[operands[0]] else operands[2:3]
        index = next(operand for operand in operands if values[operand] is None)
    return f"{show(plan, index)}: {reasons[index]}"


def show(plan: Plan | Graph, index: int) -> str:
    """Returns an expression as source text: `ceildiv(A.shape[0], 256)`."""
    text = _show(plan, index, [200])
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _show(plan: Plan | Graph, index: int, room: list[int]) -> str:
    """`room[0]` is the number of nodes that may still be written: the graph shares nodes, and the
    tree that it expands to may be exponentially large."""
    room[0] -= 1
    if room[0] < 0:
        return "…"
    kind, *operands = plan.expressions[index]
    if kind in ("const", "scalar"):
        return str(operands[0])
    if kind in ("extent", "stride"):
        return f"{operands[0]}.{'shape' if kind == 'extent' else 'strides'}[{operands[1]}]"
    if kind == "variable":
        return f"i{operands[0]}"
    shown = [_show(plan, operand, room) for operand in operands]
    if kind in _INFIX:
        return f"({shown[0]} {_INFIX[kind]} {shown[1]})"
    return f"{kind}({', '.join(shown)})"
