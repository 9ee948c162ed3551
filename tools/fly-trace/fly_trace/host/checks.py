"""Checks that a program makes when it runs: `assert n > 0, f"n is {n}"` in the host function."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fly_trace.core import tracing
from fly_trace.host import made_tensors
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import BOOL
from fly_trace.values.scalars import Scalar, refuse_static, shown_as

if TYPE_CHECKING:
    from fly_trace.session.builder import Builder

# How an integer stands in a message until the message is taken apart.
_MARK = re.compile("\x00([0-9]+)\x00")


def check(builder: Builder, condition: Scalar, message: Callable[[], Any]) -> None:
    """Ends the program with the message unless the condition holds. Integers in the message are
    shown by their values."""
    values: list[Scalar] = []

    def show(value: Scalar, form: str) -> str:
        if value.number is not None:
            return format(value.number, form)
        if form:
            refuse_static(
                value, "can't be converted to a string: it is known only when the kernel runs", None
            )
        if not (value.dtype.is_integer or value.dtype.is_bool):
            tracing.refuse(f"a message shows integers, not {value.described}")
        values.append(value)
        return f"\x00{len(values) - 1}\x00"

    with shown_as(show):
        given = message()
        text = "the assertion does not hold" if given is None else str(given)
    pieces = _MARK.split(text)
    parts: list[str | Scalar] = [
        values[int(piece)] if at % 2 else piece for at, piece in enumerate(pieces)
    ]
    require(builder, condition, [part for part in parts if part != ""])


def require(builder: Builder, condition: Scalar, message: list[str | Scalar]) -> None:
    """Ends the program with the message, whose integers are shown by their values, unless the
    condition holds."""
    unit = builder.attribute("unit")
    entries = [unit if isinstance(part, Scalar) else builder.string(part) for part in message]
    shown = [made_tensors.ssa(builder, part) for part in message if isinstance(part, Scalar)]
    operands = [builder.ssa(convert(condition, BOOL)), *shown]
    builder.op("fly.check", [], operands, {"message": builder.array(entries)})


def require_equal(builder: Builder, a: Any, b: Any, what: str) -> None:
    """That two integers are equal: now, if both are known, else when the program runs."""
    a, b = made_tensors.size(a, what), made_tensors.size(b, what)
    if isinstance(a, int) and isinstance(b, int):
        if a != b:
            tracing.refuse(f"{what} are {a} and {b}, and have to be equal")
        return
    if isinstance(a, Scalar) and isinstance(b, Scalar) and a.value == b.value:
        return
    parts = [what + " are ", a, " and ", b, ", and have to be equal"]
    message = [str(part) if isinstance(part, int) else part for part in parts]
    require(builder, operator.eq(a, b), message)
