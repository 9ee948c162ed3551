"""Tensors that a host function makes: their types, of extents and strides that may be dynamic."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fly_dialect.layouts.integers import Int
from fly_dialect.layouts.layout import Layout
from fly_dialect.types import MemRefSpec

from fly_trace.core import locations, tracing
from fly_trace.core.tracing import describe
from fly_trace.layouts.int_tuples import IntTuple
from fly_trace.memory.tensors import Parts, Tensor
from fly_trace.values.conversion import convert
from fly_trace.values.dtypes import I64, DType
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_trace.session.builder import Builder

Size = int | Scalar  # a dynamic one is an integer of any width

_DYNAMIC = Int(None, 64)
_ASSIGNED = re.compile(r"\s*([^\W\d]\w*)\s*(?::[^=]*)?=[^=]")


def host_builder(what: str, instead: str | None = None) -> Builder:
    """The builder of a host function; InputError in a kernel and outside."""
    builder = tracing.current(what)
    if not builder.host:
        tracing.refuse(f"{what} can only be used in the host function, not in a kernel", instead)
    return builder


def sizes(given: Any, what: str) -> tuple[Size, ...]:
    """The extents of a shape: one integer, several, or a tensor's shape."""
    if isinstance(given, Parts):
        given = tuple(given.tensor.leaf(given.what, mode) for mode in range(given.rank))
    elif isinstance(given, IntTuple):
        given = given.unpack()
    listed = tuple(given) if isinstance(given, tuple | list) else (given,)
    return tuple(size(one, what) for one in listed)


def size(given: Any, what: str) -> Size:
    """One integer of the host function."""
    if isinstance(given, Scalar) and given.dtype.is_integer:
        return given if given.number is None else int(given.number)
    if isinstance(given, Scalar | bool) or not hasattr(given, "__index__"):
        tracing.refuse(f"{what} must be an integer, not {describe(given)}")
    return number(given, what)


def number(given: Any, what: str) -> int:
    """An integer that is known."""
    found = operator.index(given)
    if not -(1 << 63) <= found < 1 << 63:
        tracing.refuse(f"{what} does not fit 64 bits")
    return found


def ssa(builder: Builder, value: Scalar) -> Any:
    """An integer as a 64-bit SSA value, which all of the host function's are."""
    return builder.ssa(convert(value, I64))


def split(builder: Builder, values: Sequence[Size]) -> tuple[list[Any], list[Any]]:
    """(entries, operands) for an op: the entry of a dynamic integer is `unit`, its value the next
    operand."""
    unit = builder.attribute("unit")
    entries = [unit if isinstance(one, Scalar) else builder.integer(one, "i64") for one in values]
    return entries, [ssa(builder, one) for one in values if isinstance(one, Scalar)]


def spec_of(dtype: DType, extents: Sequence[Size | None], strides: Sequence[Size | None]) -> Any:
    """The type of a tensor in global memory; None is an integer that is not known."""
    if not extents:  # no tuples without leaves: one element, at offset 0
        return MemRefSpec(dtype.memory, "global", Layout(Int(1), Int(0)))
    shape, steps = tuple(map(_leaf, extents)), tuple(map(_leaf, strides))
    if len(shape) == 1:
        return MemRefSpec(dtype.memory, "global", Layout(shape[0], steps[0]))
    return MemRefSpec(dtype.memory, "global", Layout(shape, steps))


def contiguous(shape: Sequence[Size]) -> list[Size | None]:
    """The strides of a C-contiguous tensor, as far as they are known."""
    strides: list[Size | None] = []
    step: int | None = 1
    for extent in reversed(shape):
        strides.append(step)
        step = None if step is None or isinstance(extent, Scalar) else step * max(extent, 1)
    return strides[::-1]


def _leaf(value: Size | None) -> Int:
    if isinstance(value, int):
        return Int(value)
    leaf = value.leaf if isinstance(value, Scalar) else None
    return _DYNAMIC if leaf is None else leaf


def tensor(
    spec: Any,
    value: Any,
    dtype: DType,
    name: str,
    extents: Sequence[Size | None],
    *,
    is_contiguous: bool = False,
) -> Tensor:
    """The tensor of an op's result; extents that are given are not read from it again."""
    rank = len(extents)
    made = Tensor(spec, value, dtype, name, is_array=True, rank=rank, is_contiguous=is_contiguous)
    for mode, extent in enumerate(extents):
        if isinstance(extent, Scalar):
            made.parts["shape", mode] = extent
    return made


def assigned_name(fallback: str) -> str:
    """The variable that the user's line assigns, for messages and listings."""
    place = locations.place(locations.here(2))
    found = _ASSIGNED.match((place.text if place is not None else None) or "")
    return found[1] if found else fallback
