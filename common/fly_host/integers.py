"""The arithmetic of expressions, on Python's integers, and their text for people."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from fly_host import refusals
from fly_host.program import Expression

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
DIVISIONS = frozenset(("floordiv", "ceildiv", "truncdiv", "mod", "rem"))
SHIFTS = frozenset(("shl", "shr"))
INFIX = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "and": "&", "or": "|",
    "xor": "^", "shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
}  # fmt: skip
MOST_SHOWN = 200  # nodes of an expression that is shown


class Undefined(Exception):
    """An expression has no value. The text says why; it is empty where an operand has none."""


def _ceildiv(a: int, b: int) -> int:
    return -(-a // b)


def truncdiv(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _rem(a: int, b: int) -> int:
    return a - b * truncdiv(a, b)


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "ceildiv": _ceildiv,
    "truncdiv": truncdiv,
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


def binary(op: str, a: int, b: int) -> int:
    """The value of a binary operator. Undefined where it has none."""
    if op in DIVISIONS and b == 0:
        raise Undefined(refusals.DIVISION)
    if op in SHIFTS and not 0 <= b < 64:
        raise Undefined(refusals.shift(b))
    return checked(int(BINARY[op](a, b)))


def checked(value: int) -> int:
    """A value that fits 64 bits. Undefined otherwise."""
    if not LOWEST <= value <= HIGHEST:
        raise Undefined(refusals.WIDTH)
    return value


def show(expressions: Sequence[Expression], index: int) -> str:
    """An expression as a person writes it: `ceildiv(A.shape[0], 256)`."""
    text = _show(expressions, index, [MOST_SHOWN])
    return text[1:-1] if text.startswith("(") else text


def _show(expressions: Sequence[Expression], index: int, room: list[int]) -> str:
    """`room` counts down the nodes that may still be written: a graph with shared parts is short,
    and the tree that it stands for may be endless."""
    room[0] -= 1
    if room[0] < 0:
        return "…"
    kind, *operands = expressions[index]
    if kind in ("const", "scalar"):
        return str(operands[0])
    if kind == "variable":
        return f"v{operands[0]}"
    if kind in ("extent", "stride"):
        return f"{operands[0]}.{'shape' if kind == 'extent' else 'strides'}[{operands[1]}]"
    shown = [_show(expressions, operand, room) for operand in operands]
    if kind in INFIX:
        return f"({shown[0]} {INFIX[kind]} {shown[1]})"
    return f"{kind}({', '.join(shown)})"
