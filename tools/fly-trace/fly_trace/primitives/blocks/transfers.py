"""Loads and stores of a block's items from and to memory."""

from __future__ import annotations

from typing import Any

from fly_common.quoting import quoted

from fly_trace import expr as fx
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.memory.tensors import Tensor
from fly_trace.primitives.blocks import exchange, threads
from fly_trace.values.vector.vectors import VectorType

_WAYS = ("blocked", "striped", "vectorized", "transposed")
_WIDEST = 16  # bytes of an access


def load(
    tensor: Any,
    count: int,
    *,
    offset: Any = 0,
    arrangement: str = "blocked",
    valid: Any = None,
    default: Any = 0,
) -> list[Any]:
    """Loads `count` items of each thread from consecutive elements of a tensor of rank 1.

    offset: the element at which the block's items start. arrangement: "blocked" (thread t has the
    items from t · count on), "striped" (t, t + threads, …; neighbouring threads load neighbouring
    elements), "vectorized" (blocked, by accesses of up to 16 bytes; the tensor is contiguous), or
    "transposed" (blocked, loaded as striped and exchanged). valid: how many elements there are from
    `offset` on; items beyond, also all of them, are `default`. Returns a list. Cost: count loads,
    count · bytes / 16 if vectorized; "transposed" is an exchange more. With `valid` there are two
    paths, of which a whole block takes the one without conditions. As CUB's BlockLoad.
    """
    what = "fx.block.load"
    size = checked(tensor, count, arrangement, what)
    if arrangement == "transposed":
        items = loaded(tensor, count, offset, "striped", valid, default, size)
        return exchange.striped_to_blocked(items)
    return loaded(tensor, count, offset, arrangement, valid, default, size)


def store(
    tensor: Any,
    items: Any,
    *,
    offset: Any = 0,
    arrangement: str = "blocked",
    valid: Any = None,
) -> None:
    """Stores the items of each thread, a number or a list, to consecutive elements of a tensor of
    rank 1.

    offset, arrangement, valid: as of `load`; items beyond `valid` are not stored. "blocked",
    "vectorized" and "transposed" take items in blocked arrangement. Cost: as of `load`. As CUB's
    BlockStore.
    """
    what = "fx.block.store"
    given = threads.items_of(items, what)
    size = checked(tensor, len(given), arrangement, what)
    if arrangement == "transposed":
        given, arrangement = exchange.blocked_to_striped(given), "striped"
    if valid is None or valid >= size * len(given):
        stored(tensor, given, offset, arrangement, size)
    else:
        for item, place in zip(given, places_of(len(given), arrangement, size), strict=True):
            if place < valid:
                tensor[offset + place] = item


def checked(tensor: Any, count: Any, arrangement: Any, what: str) -> int:
    """Checks arguments, and returns the block's threads."""
    size = threads.size(what)
    if not isinstance(tensor, Tensor) or len(tensor.shape) != 1:
        tracing.refuse(f"{what} takes a tensor of rank 1 first, not {describe(tensor)}")
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        tracing.refuse(f"the count of {what} is a positive Python int, not {describe(count)}")
    if arrangement not in _WAYS:
        tracing.refuse(f"{what} has the arrangements {', '.join(_WAYS)}, not {quoted(arrangement)}")
    return size


def places_of(count: int, arrangement: str, size: int) -> list[Any]:
    """The places of a thread's items."""
    if arrangement == "striped":
        return [threads.index() + i * size for i in range(count)]
    return exchange.blocked_places(count)


def loaded(
    tensor: Any, count: int, offset: Any, arrangement: str, valid: Any, default: Any, size: int
) -> list[Any]:
    """The items of a thread, loaded as blocked, striped or vectorized."""
    places = places_of(count, arrangement, size)
    if valid is None:
        return whole(tensor, places, offset, arrangement)
    other = tensor.dtype(default)
    if valid >= size * count:
        items = whole(tensor, places, offset, arrangement)
    else:
        items = [tensor[offset + place] if place < valid else other for place in places]
    return items


def whole(tensor: Any, places: list[Any], offset: Any, arrangement: str) -> list[Any]:
    """The elements at places that exist."""
    if arrangement != "vectorized":
        return [tensor[offset + place] for place in places]
    step = vector_length(len(places), tensor.dtype)
    kind, start = VectorType(tensor.dtype, step), fx.get_iter(tensor)
    found: list[Any] = []
    for first in fx.range_constexpr(0, len(places), step):
        vector = (start + (offset + places[first])).load(kind)
        found = [*found, *[vector[i] for i in range(step)]]
    return found


def stored(tensor: Any, items: list[Any], offset: Any, arrangement: str, size: int) -> None:
    """Stores the items of a thread at places that exist."""
    places = places_of(len(items), arrangement, size)
    if arrangement != "vectorized":
        for item, place in zip(items, places, strict=True):
            tensor[offset + place] = item
        return
    step, start = vector_length(len(items), tensor.dtype), fx.get_iter(tensor)
    for first in fx.range_constexpr(0, len(items), step):
        vector = fx.Vector.from_elements(items[first : first + step], tensor.dtype)
        (start + (offset + places[first])).store(vector)


def vector_length(count: int, dtype: Any) -> int:
    """The elements of the widest access that divides a thread's items."""
    length = 1
    while count % (2 * length) == 0 and 2 * length * dtype.bytes <= _WIDEST:
        length *= 2
    return length
