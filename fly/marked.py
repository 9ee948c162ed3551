"""`fly.from_dlpack`: an array with what FlyDSL's programs say of its layout.

Every layout is dynamic here: one code object serves all extents and strides. So the marks change
nothing; what they say of the array is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fly_common.errors import UsageError

from fly.arrays import view


@dataclass(frozen=True)
class Marked:
    """An array, passed like the array itself."""

    array: Any

    def mark_layout_dynamic(self, leading_dim: int | None = None, divisibility: int = 1) -> Marked:
        """Extents and strides are dynamic; that of `leading_dim` is 1. `divisibility` divides the
        other strides, in elements: a power of two."""
        _check(divisibility)
        data = view(self.array, "of from_dlpack").data
        steps = [step // data.itemsize for step in data.strides]
        if leading_dim is not None:
            if not -data.ndim <= leading_dim < data.ndim:
                raise UsageError(f"the array has no dimension {leading_dim}")
            if steps[leading_dim] != 1 and data.shape[leading_dim] > 1:
                raise UsageError(
                    f"dimension {leading_dim} has the stride {steps[leading_dim]}, not 1"
                )
        for dimension, step in enumerate(steps):
            if step != 1 and step % divisibility and data.shape[dimension] > 1:
                raise UsageError(
                    f"the stride {step} of dimension {dimension} is no multiple of {divisibility}"
                )
        return self

    def mark_shape_dynamic(self, dims: Any = None, divisibility: int = 1) -> Marked:
        """Extents are dynamic, as always."""
        _check(divisibility)
        return self

    def mark_stride_dynamic(self, dims: Any = None, divisibility: int = 1) -> Marked:
        """Strides are dynamic, as always."""
        _check(divisibility)
        return self


def _check(divisibility: int) -> None:
    if divisibility < 1 or divisibility & (divisibility - 1):
        raise UsageError(f"a divisibility is a power of two, not {divisibility}")


def from_dlpack(array: Any, *, assumed_align: int | None = None, **_: Any) -> Marked:
    """An array whose layout can be marked. `assumed_align` in bytes is checked."""
    if assumed_align is not None and view(array, "of from_dlpack").data.ctypes.data % assumed_align:
        raise UsageError(f"the array does not begin at a multiple of {assumed_align} bytes")
    return Marked(array)
