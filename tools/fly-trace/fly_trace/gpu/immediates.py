"""Integers that an operation requires to be static."""

from __future__ import annotations

import operator
from typing import Any

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values.scalars import Scalar


def number(value: Any, what: str, most: int) -> int:
    """An operand of an instruction's immediate field, or of an assumption: static, from 0 to
    `most`."""
    if isinstance(value, Scalar) and value.number is not None:
        value = value.number
    if isinstance(value, (bool, Scalar)) or not hasattr(type(value), "__index__"):
        tracing.refuse(f"{what} must be a number known while tracing, not {describe(value)}")
    found = operator.index(value)
    if not 0 <= found <= most:
        tracing.refuse(f"{what} must be from 0 to {most}, not {found}")
    return found
