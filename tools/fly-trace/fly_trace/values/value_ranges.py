"""Integer range analysis on the ops that are being built.

An interval is (least, greatest), inclusive, of the value as a signed integer of its type. A sum
that may overflow has the full range of its type. Facts that the ops do not imply, such as
non-negative extents and the program's assumptions, are in the builder's `intervals`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder

Interval = tuple[int, int]

DEPTH = 8  # maximum depth of the search through ops
# Sources: LLVM's "User Guide for AMDGPU Backend" (a workgroup has at most 1,024 work items, a wave
# 32 or 64); the AQL dispatch packet in the HSA Runtime specification (a grid dimension is a 32-bit
# number of work items).
MOST_IN_BLOCK = 1024
MOST_IN_GRID = (1 << 32) - 1


def of_type(bits: int) -> Interval:
    """The range of a signed type."""
    return -(1 << bits - 1), (1 << bits - 1) - 1


def promise(builder: Builder, value: Any, least: int | None, most: int | None) -> None:
    """Records an assumption about an SSA integer that holds in the whole function."""
    low, high = interval(builder, value)
    low = low if least is None else max(low, least)
    high = high if most is None else min(high, most)
    builder.intervals[value] = low, high


def interval(builder: Builder, value: Any, depth: int = DEPTH) -> Interval:
    """The interval of an SSA integer of an arith type or `index`."""
    known = builder.intervals.get(value)
    if known is not None:
        return known
    name = str(value.type)
    whole = of_type(64 if name == "index" else int(name[1:]))
    if depth == 0:
        return whole
    if hasattr(value, "arg_number"):
        found = _of_argument(builder, value, depth - 1)
    else:
        found = _of_op(builder, value.owner.operation, depth - 1)
    if found is None or found[0] < whole[0] or found[1] > whole[1]:
        return whole
    return found


def _of_argument(builder: Builder, value: Any, depth: int) -> Interval | None:
    """The interval of a block argument that is a loop counter: it is within the loop's bounds."""
    loop = value.owner.owner.operation
    if loop.name != "scf.for" or value.arg_number != 0:
        return None
    lower, upper = (interval(builder, bound, depth) for bound in list(loop.operands)[:2])
    if "unsignedCmp" in loop.attributes and (lower[0] < 0 or upper[0] < 0):
        return None
    return lower[0], upper[1] - 1


def _of_op(builder: Builder, op: ir.Operation, depth: int) -> Interval | None:
    """The interval of an op's result, or None if unknown. It may exceed the result type's range."""
    name = op.name
    if name == "arith.constant":
        number = op.attributes["value"].value
        return number, number
    if name in _IDS:
        block = builder.known_block
        axis = "xyz".index(str(op.attributes["dimension"])[-2]) if block else 0
        return _IDS[name](block[axis] if block else None)
    rule = _RULES.get(name)
    if rule is None:
        return None
    return rule(*(interval(builder, operand, depth) for operand in op.operands))


# By the block's size in the dimension, None if it is dynamic.
_IDS: dict[str, Callable[[int | None], Interval]] = {
    "gpu.thread_id": lambda block: (0, (block or MOST_IN_BLOCK) - 1),
    "gpu.block_dim": lambda block: (block or 1, block or MOST_IN_BLOCK),
    "gpu.block_id": lambda block: (0, MOST_IN_GRID // (block or 1) - 1),
    "gpu.grid_dim": lambda block: (1, MOST_IN_GRID // (block or 1)),
}


def _product(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _masked(a: Interval, b: Interval) -> Interval | None:
    """A mask without the sign bit limits the result to the range from 0 to the mask."""
    high = [high for low, high in (a, b) if low >= 0]
    return (0, min(high)) if high else None


def _shifted(a: Interval, by: Interval) -> Interval | None:
    if by[0] != by[1]:
        return None
    return a[0] >> by[0], a[1] >> by[0]


_RULES: dict[str, Callable[..., Interval | None]] = {
    "gpu.lane_id": lambda: (0, 63),
    "gpu.subgroup_size": lambda: (32, 64),
    "arith.index_cast": lambda a: a,
    "arith.extsi": lambda a: a,
    "arith.extui": lambda a: a if a[0] >= 0 else None,
    "arith.trunci": lambda a: a,
    "arith.addi": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "arith.subi": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "arith.muli": _product,
    "arith.andi": _masked,
    "arith.shrsi": _shifted,
    "arith.maxsi": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "arith.minsi": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
}
