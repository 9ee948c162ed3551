"""What combines two values: a `ReductionOp`, or a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly.flydsl.extension.coop._common import combine, number


def operation(op: Any) -> Callable[[Any, Any], Any]:
    """The function that an operation is."""
    if callable(op):
        return lambda lhs, rhs: number(op(lhs, rhs))
    return lambda lhs, rhs: combine(op, lhs, rhs)
