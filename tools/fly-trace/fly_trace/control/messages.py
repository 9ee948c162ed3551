"""Texts that a kernel makes when it runs: messages of asserts, and printed lines.

The text has a field for each dynamic value (`fly_image.reports`). The kernel passes the values' 64
bits on, and the host makes the text of them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from fly_image.reports import FAULTS, PRINTS

from fly_trace.control.branches import branch
from fly_trace.control.calls.call import call
from fly_trace.core import tracing
from fly_trace.values.conversion import bitcast, convert
from fly_trace.values.dtypes import F32, F64, I64, U32, U64, DType
from fly_trace.values.scalars import Scalar, shown_as

__all__ = ["printf"]

# How a value stands in a text until the text is taken apart.
_MARK = re.compile("\x00([0-9]+)\x00")


def require(condition: Scalar, message: Callable[[], Any]) -> None:
    """Fails the launch with the message unless the condition holds. The message is made where it
    does not."""

    def fails() -> None:
        text, values = _text(message, "the assertion does not hold", FAULTS.values, "an assert")
        _report(text, values, is_assert=True)

    branch(condition, lambda: None, fails, lambda *_: None, "assert")


def printf(*parts: Any) -> None:
    """Prints a line when the kernel runs: `fx.printf("x = {}", x)`, `fx.printf(f"x = {x:.3f}")`.
    Each thread that comes to it prints its own; the lines go to stdout after the launch, in the
    order of blocks and threads."""
    _print(*(functools.partial(_itself, part) for part in parts))


def _itself(value: Any) -> Any:
    return value


def call_printf(function: Any, *parts: Callable[[], Any]) -> Any:
    """`function(*parts)`. If it is `fx.printf`, f-strings in the arguments show dynamic values."""
    if function is not printf:
        return call(function, *(part() for part in parts))
    return _print(*parts)


def _print(*parts: Callable[[], Any]) -> None:
    """Prints a line: a text, or a format and its values, each of them computed by a function."""
    tracing.kernel("fx.printf")

    def line() -> str:
        form, *given = (part() for part in parts)
        if not isinstance(form, str):
            tracing.refuse(f"fx.printf takes a text or a format, not {tracing.describe(form)}")
        return form.format(*given) if given else form

    if not parts:
        tracing.refuse("fx.printf takes a text or a format")
    _report(*_text(line, "", PRINTS.values, "fx.printf"))


def _text(make: Callable[[], Any], default: str, most: int, what: str) -> tuple[str, list[Scalar]]:
    """A site's text, and the values in it."""
    shown: list[tuple[Scalar, str]] = []

    def show(value: Scalar, form: str) -> str:
        if value.number is not None:
            return format(value.number, form)
        if value.dtype.bits > 64:
            tracing.refuse(f"{what} can't show {tracing.describe(value)}")
        try:
            format(0.0 if value.dtype.is_float else 0, form)
        except ValueError as error:
            tracing.refuse(f"{tracing.describe(value)} can't be shown: {error}")
        shown.append((value, form))
        return f"\x00{len(shown) - 1}\x00"

    with shown_as(show):
        given = make()
        text = default if given is None else str(given)
    if len(shown) > most:
        tracing.refuse(f"{what} shows at most {most} dynamic values, and here are {len(shown)}")
    pieces = _MARK.split(text)
    order = list(map(int, pieces[1::2]))
    values, texts = [], [_plain(pieces[0])]
    for place, number in enumerate(order):
        value, form = shown[number]
        kind, bits = _bits(value)
        values.append(bits)
        texts += [f"{{{place}:{kind}{form and ':' + form}}}", _plain(pieces[2 * place + 2])]
    return "".join(texts), values


def _plain(text: str) -> str:
    return text.replace("{", "{{}")


def _bits(value: Scalar) -> tuple[str, Scalar]:
    """The type of a value in reports, and its bits as an i64."""
    dtype: DType = value.dtype
    if dtype.is_bool:
        return "bool", convert(value, I64)
    if dtype is F64:
        return "f64", bitcast(value, I64)
    if dtype.is_float:
        return "f32", convert(bitcast(convert(value, F32), U32), I64)
    if dtype.is_signed:
        return "i64", convert(value, I64)
    return "u64", bitcast(convert(value, U64), I64)


def _report(text: str, values: list[Scalar], is_assert: bool = False) -> None:
    builder = tracing.current("a report")
    attributes = {"format": builder.string(text)}
    if is_assert:
        attributes["assert"] = builder.attribute("unit")
    builder.op("fly.print", [], [builder.ssa(value) for value in values], attributes)
