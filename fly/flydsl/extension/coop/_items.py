"""The items of a thread: one number, or a sequence of them; and places in a tile of a block.

A tile has the items of all threads. In blocked order, item `i` of thread `t` of `n` items each is
at `t * n + i`; in striped order at `t + i * threads`.
"""

from __future__ import annotations

from typing import Any

from fly_trace.control.branches import value_of
from fly_trace.values.dtypes import BOOL, I32, DType
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vectors import Vector

from fly.flydsl.expr.typing import Vector as Vectors
from fly.flydsl.extension.coop._common import number, when


def is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple, Vector))


def items_of(value: Any, dtype: DType | None, count: int | None, what: str) -> list[Any]:
    """The items as numbers of `dtype`, or of their own type."""
    found = list(value) if is_sequence(value) else [value]
    if count is not None and len(found) != count:
        raise ValueError(f"{what} takes {count} items of each thread, got {len(found)}")
    if not found:
        raise ValueError(f"{what} takes at least one item of each thread")
    return [number(one) if dtype is None else converted(one, dtype) for one in found]


def converted(value: Any, dtype: DType) -> Any:
    found = number(value) if isinstance(value, Scalar) else dtype(value)
    return found if found.dtype is dtype else found.to(dtype)


def shaped(items: list[Any], given: Any) -> Any:
    """Items in the form in which they were given: one, or a vector."""
    return Vectors.from_elements(items) if is_sequence(given) else items[0]


def integer(value: Any) -> Any:
    """An index or a count, as i32."""
    return converted(value, I32)


def truth(value: Any) -> Any:
    """A flag as a Boolean."""
    found = value if isinstance(value, (bool, Scalar)) else number(value)
    if isinstance(found, Scalar) and found.dtype is not BOOL:
        return found != 0
    return BOOL(found) if isinstance(found, bool) else found


def both(a: Any, b: Any) -> Any:
    """`a and b`, of which either may be None for true."""
    return b if a is None else a if b is None else a & b


def put(array: Any, place: Any, value: Any, where: Any = None) -> None:
    """Stores a value, where the condition holds."""

    def store() -> None:
        array[place] = value

    store() if where is None else when(where, store)


def read(source: Any, place: Any, where: Any, otherwise: Any, dtype: DType) -> Any:
    """An element, or another value where the condition does not hold: then nothing is read."""
    if where is None:
        return converted(source[place], dtype)
    return value_of(
        where, lambda: converted(source[place], dtype), lambda: otherwise, "item", "an item"
    )


def blocked(thread: Any, count: int) -> list[Any]:
    return [thread * count + at for at in range(count)]


def striped(thread: Any, count: int, threads: int) -> list[Any]:
    return [thread + at * threads for at in range(count)]


def warp_striped(thread: Any, count: int, lanes: int) -> list[Any]:
    first = (thread // lanes) * (lanes * count) + thread % lanes
    return [first + at * lanes for at in range(count)]
