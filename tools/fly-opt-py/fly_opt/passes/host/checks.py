"""Checks of a host function as steps: fly.check."""

from __future__ import annotations

from typing import Any

from fly_dialect.bindings import ir

from fly_opt.passes.base import refuse
from fly_opt.passes.host.walk import Walk


def check(walk: Walk, op: Any) -> None:
    """fly.check: its condition, and a message in which `unit` is the next operand's value. One that
    always holds is left out."""
    condition, *values = (walk.values.integer(op, operand) for operand in op.operands)
    message: list[str | int] = []
    for part in op.attributes["message"]:
        if isinstance(part, ir.StringAttr):
            message.append(part.value)
        elif isinstance(part, ir.UnitAttr) and values:
            message.append(values.pop(0))
        else:
            raise refuse(op, "the message of fly.check holds texts, and `unit` for its operands")
    walk.check(condition, message)
