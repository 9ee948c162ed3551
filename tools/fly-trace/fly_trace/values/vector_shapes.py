"""Vector shapes: sizes, coordinates of elements, broadcasting.

Elements are numbered like a layout's coordinates, with the first mode fastest.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from fly_trace.core import tracing
from fly_trace.values.dtypes import DType

Shape = tuple[Any, ...]  # of ints and nested shapes


def nested(shape: Any) -> Shape:
    """Converts a user's shape to nested tuples of ints."""
    if isinstance(shape, (tuple, list)):
        return tuple(
            nested(item) if isinstance(item, (tuple, list)) else int(item) for item in shape
        )
    return (int(shape),)


def flat(shape: Any) -> list[int]:
    """The extents as a flat list."""
    if isinstance(shape, tuple):
        return [extent for item in shape for extent in flat(item)]
    return [shape]


def count(shape: Any) -> int:
    """The number of elements of a shape."""
    return math.prod(flat(shape))


def vector_ir(dtype: DType, number: int) -> str:
    """The MLIR type of a vector of `number` elements."""
    return f"vector<{number}x{dtype.ir}>"


def broadcast(a: Shape, b: Shape) -> Shape:
    """The broadcast shape of two shapes, by NumPy's rules. Keeps the nesting of the first if
    possible."""
    if flat(a) == flat(b) or count(b) == 1:
        return a
    if count(a) == 1:
        return b
    rank = max(len(flat(a)), len(flat(b)))
    pairs = list(zip(_padded(a, rank), _padded(b, rank), strict=True))
    if not all(x == y or 1 in (x, y) for x, y in pairs):
        tracing.refuse(f"vectors of shapes {a} and {b} can't be broadcast together")
    return tuple(max(x, y) for x, y in pairs)


def spread_places(shape: Shape, target: Shape) -> list[int]:
    """For each element of `target`, the index of its element in `shape` when `shape` is repeated
    along its modes of size 1."""
    wanted = flat(target)
    padded = _padded(shape, len(wanted))
    fits = all(a in (1, b) for a, b in zip(padded, wanted, strict=False))
    if len(padded) != len(wanted) or not fits:
        tracing.refuse(f"a vector of shape {shape} can't be broadcast to {target}")
    places = []
    for index in range(count(target)):
        place, step = 0, 1
        for extent, full_extent in zip(padded, wanted, strict=True):
            index, at = divmod(index, full_extent)
            place += step * (at if extent > 1 else 0)
            step *= extent
        places.append(place)
    return places


def _padded(shape: Shape, rank: int) -> list[int]:
    extents = flat(shape)
    return [1] * (rank - len(extents)) + extents


def selected(shape: Shape, coord: tuple[Any, ...]) -> tuple[list[Any], list[int]]:
    """The shape of the modes that are None in `coord`, and the indices of their elements."""
    kept: list[Any] = []
    places, step = [0], 1

    def walk(extent: Any, item: Any, into: list[Any]) -> None:
        nonlocal places, step
        if isinstance(extent, tuple) and isinstance(item, tuple):
            if len(extent) != len(item):
                tracing.refuse(f"{coord} does not fit the shape {shape}")
            inner: list[Any] = []
            for part, index in zip(extent, item, strict=True):
                walk(part, index, inner)
            if inner:
                into.append(tuple(inner))
            return
        size = count(extent)
        if item is None:
            places = [place + step * at for at in range(size) for place in places]
            into.append(extent)
        else:
            number = operator.index(item)
            if not 0 <= number < size:
                tracing.refuse(f"{coord} does not fit the shape {shape}")
            places = [place + step * number for place in places]
        step *= size

    if len(coord) != len(shape):
        tracing.refuse(f"{coord} does not fit the shape {shape}")
    for extent, item in zip(shape, coord, strict=True):
        walk(extent, item, kept)
    return kept, places
