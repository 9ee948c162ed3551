"""Python numbers that a dynamic loop carries: `s = 0` before `for …: s = s + X[i]`.

The loop is traced with the number as an i32 or f32 at first. If an iteration ends with a number of
another type that has room for it, the loop is traced again with that type, as Python numbers are
weakly typed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fly_common.errors import InputError
from fly_common.record import record

from fly_trace.control.carried.carried_values import Mismatch
from fly_trace.control.carried.discarded import TracedAgain
from fly_trace.control.carried.leaf_kinds import adopt, kind_of
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder
    from fly_trace.values.dtypes import DType

# The types of Python numbers that a loop carries, by their places among its leaves. The dictionary
# also stands for the loop, however often that is traced.
Types = dict[int, "DType"]


@record
class Weak:
    """A Python number that a loop carries."""

    types: Types
    at: int
    number: int | float


class OtherType(TracedAgain):
    """At the end of an iteration, numbers have other types than in the loops that carry them."""

    found: tuple[tuple[Weak, DType], ...] = ()


def mark(builder: Builder, types: Types, leaves: Iterable[Any], values: Iterable[ir.Value]) -> None:
    """Notes which of a loop's `values` stand for Python numbers, of this loop or of one around."""
    for at, (leaf, value) in enumerate(zip(leaves, values, strict=True)):
        if type(leaf) is int or type(leaf) is float:
            builder.weak[value] = Weak(types, at, leaf)
        elif isinstance(leaf, Scalar) and leaf.ssa is not None and leaf.ssa in builder.weak:
            builder.weak[value] = builder.weak[leaf.ssa]


def other_type(
    builder: Builder, types: Types, at: int, leaf: Any, end: Any
) -> tuple[Weak, DType] | None:
    """The number that leaf `at` of a loop stands for, and the type that it may take, that of `end`:
    a wider one, or for an int a float of at least 32 bits, too."""
    weak: Weak | None = Weak(types, at, leaf)
    if isinstance(leaf, Scalar):
        weak = builder.weak.get(leaf.ssa) if leaf.ssa is not None else None
    if weak is None or builder.host or not isinstance(end, Scalar):
        return None
    if type(weak.number) not in (int, float):
        return None
    before = weak.types.get(weak.at) or kind_of(weak.number).dtype
    assert before is not None, "it is a number"
    dtype = end.dtype
    return (weak, dtype) if _is_wider(dtype, before) and _fits(weak.number, dtype) else None


def _is_wider(dtype: DType, before: DType) -> bool:
    """Whether a loop may be traced again with `dtype` for `before`; never back again."""
    if dtype.bits < 32 or dtype.is_bool or (before.is_float and not dtype.is_float):
        return False
    if dtype.is_float is before.is_float:
        return dtype.bits > before.bits or (dtype.bits == before.bits and not dtype.is_signed)
    return True


def _fits(number: int | float, dtype: DType) -> bool:
    try:
        adopt(number, dtype)
    except Mismatch:
        return False
    return True


def take(error: OtherType, types: Types) -> bool:
    """Enters the types for the loop of `types`. Returns whether there are any."""
    own = [(weak.at, dtype) for weak, dtype in error.found if weak.types is types]
    types.update(own)
    return bool(own)


def refusal(error: InputError, found: Iterable[tuple[Weak, DType]]) -> OtherType:
    """`error`, for the loops that carry the numbers to catch."""
    made = OtherType(error.message, place=error.place, hint=error.hint)
    made.found = tuple(found)
    return made
