"""Layouts as lists of offsets: the operations of the algebra by brute force.

Nothing here depends on the algebra's implementation. A layout is a pair of nested tuples of
integers; its function is evaluated coordinate by coordinate, and operations are defined on lists of
offsets: the complement of a layout repeatedly takes the smallest number that is still missing; a
composition is the composition of functions.
"""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias

Nested: TypeAlias = Any  # an int or a tuple of such


def flat(nested: Nested) -> list[Any]:
    return (
        [leaf for part in nested for leaf in flat(part)] if isinstance(nested, tuple) else [nested]
    )


def size(shape: Nested) -> int:
    return prod(flat(shape))


def offset(coordinate: Nested, shape: Nested, stride: Nested) -> int:
    """Returns the sum of coordinate times stride. A number indexes a tuple with the first mode
    varying fastest; the last mode continues beyond its extent."""
    if isinstance(coordinate, tuple):
        shapes = shape if isinstance(shape, tuple) else (shape,)
        strides = stride if isinstance(stride, tuple) else (stride,)
        return sum(map(offset, coordinate, shapes, strides))
    if not isinstance(shape, tuple):
        return coordinate * stride
    total = 0
    for index, (extent, step) in enumerate(zip(shape, stride, strict=True)):
        count = size(extent)
        here = coordinate if index == len(shape) - 1 else coordinate % count
        total += offset(here, extent, step)
        coordinate //= count
    return total


def offsets(shape: Nested, stride: Nested) -> list[int]:
    """Returns the offset of each coordinate, with the first mode varying fastest."""
    return [offset(number, shape, stride) for number in range(size(shape))]


def complement(taken: list[int], target: int) -> list[int]:
    """Returns the smallest numbers whose sums with `taken` give each number below `target` once."""
    missing, found = set(range(target)), []
    while missing:
        begin = min(missing)
        sums = {begin + one for one in taken}
        if not sums <= missing:
            raise ValueError("there is no complement")
        missing -= sums
        found.append(begin)
    return found


def inverse(values: list[int]) -> list[int]:
    """Returns the inverse of the permutation `values`."""
    found = [0] * len(values)
    for place, value in enumerate(values):
        found[value] = place
    return found


def swizzled(number: int, mask: int, base: int, shift: int) -> int:
    for bit in range(mask):
        if number >> (base + shift + bit) & 1:
            number ^= 1 << (base + bit)
    return number


def ordered_strides(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the strides of a compact layout; the mode with the smallest `order` is innermost."""
    strides = []
    for own in order:
        closer = [extent for extent, other in zip(shape, order, strict=True) if other < own]
        strides.append(prod(closer))
    return tuple(strides)
