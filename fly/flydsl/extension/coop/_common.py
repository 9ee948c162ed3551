"""What algorithms of waves and of blocks have in common."""

from __future__ import annotations

import math
from typing import Any

from fly_trace.control.branches import if_
from fly_trace.values.dtypes import DType
from fly_trace.values.vector.vectors import ReductionOp, Vector

from fly.flydsl.expr import arith
from fly.flydsl.expr.gpu import num_warp_threads, thread_idx
from fly.flydsl.numbers.operators import typed, wrapped
from fly.flydsl.numbers.raw import lift


def require_power_of_two(value: Any, what: str) -> None:
    if not isinstance(value, int) or value < 1 or value & (value - 1):
        raise ValueError(f"{what} must be a power of two, got {value!r}")


def resolve_warp_width(width: int | None, what: str) -> int:
    """The lanes of a group: by default those of a wave."""
    most = num_warp_threads()
    if width is None:
        return most
    require_power_of_two(width, what)
    if width > most:
        raise ValueError(f"{what} must not exceed the wave's {most} lanes, got {width}")
    return width


def combine(op: Any, lhs: Any, rhs: Any) -> Any:
    """`lhs op rhs`, in their type. `op` is a `ReductionOp`, or a function of both."""
    if callable(op):
        found = number(op(lhs, rhs))
        return found if found.dtype is lhs.dtype else found.to(lhs.dtype)
    if op == ReductionOp.ADD:
        return lhs + rhs
    if op == ReductionOp.MUL:
        return lhs * rhs
    if op == ReductionOp.MAX:
        return arith.max(lhs, rhs)
    if op == ReductionOp.MIN:
        return arith.min(lhs, rhs)
    raise TypeError(f"unsupported ReductionOp, got {op!r}")


def identity(op: Any, dtype: DType) -> Any:
    """The value that an operation leaves others unchanged by: of a function, its `identity`, a
    value or a function of the type."""
    if callable(op):
        own = getattr(op, "identity", None)
        if own is None:
            raise TypeError("a function as an operation needs an identity here: give identity=")
        return dtype(own(dtype) if callable(own) else own)
    if op in (ReductionOp.ADD, ReductionOp.MUL):
        return dtype(int(op == ReductionOp.MUL))
    if op not in (ReductionOp.MAX, ReductionOp.MIN):
        raise TypeError(f"unsupported ReductionOp, got {op!r}")
    if dtype.is_float:
        return dtype(math.inf if op == ReductionOp.MIN else -math.inf)
    return dtype(wrapped(dtype.range[1 if op == ReductionOp.MIN else 0], dtype))


def with_identity(op: Any, given: Any) -> Any:
    """An operation with another identity, if one is given."""
    if given is None:
        return op

    def work(lhs: Any, rhs: Any) -> Any:
        return combine(op, lhs, rhs)

    work.identity = given  # type: ignore[attr-defined]
    return work


def number(value: Any) -> Any:
    """A thread's value as the language has it."""
    return typed(lift(value))


def seed(value: Any, op: Any, init: Any) -> Any:
    """A scan's result with `init` before it."""
    return value if init is None else combine(op, init, value)


def thread_partial(value: Any, op: Any) -> Any:
    """The items of a thread as one."""
    items = list(value) if isinstance(value, (list, tuple, Vector)) else [value]
    if isinstance(value, Vector) and not callable(op):
        return value.reduce(op)  # type: ignore[call-arg]
    found = number(items[0])
    for item in items[1:]:
        found = combine(op, found, number(item))
    return found


def linear_thread_id(block_size: tuple[int, int, int] | None) -> Any:
    """The number of the thread in its block, x first, then y and z."""
    tid = thread_idx.x
    if block_size is None:
        return tid
    x, y, z = block_size
    if y > 1 or z > 1:
        tid = tid + thread_idx.y * x + thread_idx.z * (x * y)
    return tid


def when(condition: Any, work: Any) -> None:
    """Runs `work` where the condition holds."""
    if_(condition, work, lambda: None, tuple, lambda _: None, (), 0)
