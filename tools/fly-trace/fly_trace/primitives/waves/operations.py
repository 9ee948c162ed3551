"""The operations by which values are combined: names, and functions of the user's."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from fly_common.quoting import quoted

from fly_trace import expr as fx
from fly_trace.control.carried import trees
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values.dtypes import DType
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vector_values import Vector

Operation = str | Callable[[Any, Any], Any]

_NAMED: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "mul": operator.mul,
    "min": fx.minimum,
    "max": fx.maximum,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
_BITWISE = ("and", "or", "xor")


def combined(op: Operation, a: Any, b: Any) -> Any:
    """`op(a, b)`. A named operation applies to each leaf; a function gets the whole values, the one
    of the lower thread first."""
    if isinstance(op, str):
        return combined_leaves(op, a, b)
    return op(a, b)


def checked(op: Any, value: Any, what: str) -> Any:
    """Checks an operation, and returns the value that it combines: for a named one, bools are
    counted as i32 unless it is bitwise."""
    if not isinstance(op, str):
        if not callable(op):
            tracing.refuse(f"the operation of {what} is a name or a function, not {describe(op)}")
        return trees.joined(value, trees.leaves(value, f"the value of {what}"))
    if op not in _NAMED:
        tracing.refuse(f"{what} has no operation {quoted(op)}: it has {', '.join(_NAMED)}")
    found = trees.leaves(value, f"the value of {what}")
    for leaf in found:
        if op in _BITWISE and leaf.dtype.is_float:
            tracing.refuse(f"{what} can't combine {describe(leaf)} by {quoted(op)}")
    counted = op not in _BITWISE
    return trees.joined(
        value, [leaf.to(fx.Int32) if counted and leaf.dtype.is_bool else leaf for leaf in found]
    )


def combined_leaves(op: str, a: Any, b: Any) -> Any:
    """`a op b` for each pair of numbers or vectors."""
    pairs = zip(trees.leaves(a, "the value"), trees.leaves(b, "the value"), strict=True)
    return trees.joined(a, [_kept(_NAMED[op](x, y), x) for x, y in pairs])


def _kept(made: Any, like: Scalar | Vector) -> Any:
    """The result in the type of the operands: a bool stays one."""
    return made if made.dtype is like.dtype else made.to(like.dtype)


def identity(op: Operation, value: Any, what: str) -> Any:
    """The value that a named operation leaves others unchanged by, with the structure of `value`.
    0 for floats' "add", so that -0.0 becomes 0.0."""
    if not isinstance(op, str):
        tracing.refuse(
            f"{what} needs a first value: an operation of the user's has no known identity",
            "pass initial=",
        )
    found = trees.leaves(value, f"the value of {what}")
    return trees.joined(value, [_filled(leaf, neutral(op, leaf.dtype)) for leaf in found])


def _filled(like: Scalar | Vector, number: int | float) -> Any:
    if isinstance(like, Vector):
        return fx.full_like(like, number)
    return like.dtype(number)


def neutral(op: str, dtype: DType) -> int | float:
    """The identity of a named operation for a type."""
    if op in ("add", "or", "xor"):
        return 0
    if op == "mul":
        return 1
    if op == "and":
        return True if dtype.is_bool else dtype.range[1] if dtype.kind == "uint" else -1
    if dtype.is_float:
        return math.inf if op == "min" else -math.inf
    return dtype.range[1 if op == "min" else 0]
