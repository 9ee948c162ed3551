"""The strides implied by a shape."""

from __future__ import annotations


def c_strides(shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """The strides of a C-contiguous tensor. None for those that depend on dynamic extents."""
    strides: list[int | None] = []
    step: int | None = 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step = None if step is None or extent is None else step * extent
    return tuple(strides)
