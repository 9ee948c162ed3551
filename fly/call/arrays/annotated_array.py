"""`fly.from_dlpack`: an array annotated with the parts of its layout that are dynamic.

    A = fly.from_dlpack(a)                                  these extents and strides only
    A.mark_layout_dynamic(leading_dim=1, divisibility=16)   any extents; rows 16·n elements apart

The methods are FlyDSL's. A plain array has dynamic extents and strides, computed with 64 bits; an
extent that is marked dynamic here is assumed to fit 32 bits. Each launch checks what the code
assumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fly_common.errors import UsageError
from fly_dialect.layouts.integers import Int
from fly_trace.signatures.extents import Step
from fly_trace.signatures.signature import TensorType
from fly_trace.values.dtypes import named

from fly.call.arrays.views import view

Dims = int | Sequence[int]


class AnnotatedArray:
    """An array with a partly static layout. Pass it like the array. Each mark modifies it in place
    and returns it."""

    def __init__(self, array: Any, stride_width: int = 64) -> None:
        found = view(array, "of from_dlpack")
        self.array = array
        self._dtype = named(found.dtype)
        self._width = stride_width
        self._shape: list[Step] = list(found.data.shape)
        self._strides: list[Step] = [step // found.data.itemsize for step in found.data.strides]

    @property
    def type(self) -> TensorType:
        """The type that tracing sees."""
        return TensorType(self._dtype, tuple(self._shape), tuple(self._strides))

    def mark_layout_dynamic(
        self, leading_dim: int | None = None, divisibility: int = 1
    ) -> AnnotatedArray:
        """Makes all extents dynamic, and all strides except that of `leading_dim`, which is 1. With
        None, the leading dimension is the first whose stride is 1. `divisibility` divides the
        dynamic strides."""
        _check(divisibility)
        if leading_dim is None:
            ones = (at for at, step in enumerate(self._strides) if step == 1)
            leading_dim = next(ones, None)
            if leading_dim is None:
                raise UsageError(
                    f"no stride of the array is 1: they are {_text(self._strides)}",
                    hint="pass a copy: np.ascontiguousarray(x)",
                )
        (leading,) = self._dims(leading_dim)
        if self._strides[leading] != 1:
            raise UsageError(
                f"dimension {leading} has the stride {self._strides[leading]}, not 1",
                hint="leading_dim is the dimension whose elements are contiguous",
            )
        for at in range(len(self._shape)):
            self._shape[at] = Int(None)
            if at != leading:
                self._strides[at] = Int(None, self._width, divisibility)
        return self

    def mark_shape_dynamic(self, dims: Dims, divisibility: Dims = 1) -> AnnotatedArray:
        """Makes the extents of `dims` dynamic; each is a multiple of its `divisibility`."""
        for at, divisor in self._divided(dims, divisibility):
            self._shape[at] = Int(None, 32, divisor)
        return self

    def mark_stride_dynamic(self, dims: Dims, divisibility: Dims = 1) -> AnnotatedArray:
        """Makes the strides of `dims` dynamic; each is a multiple of its `divisibility`."""
        for at, divisor in self._divided(dims, divisibility):
            self._strides[at] = Int(None, self._width, divisor)
        return self

    def _divided(self, dims: Dims, divisibility: Dims) -> list[tuple[int, int]]:
        places = self._dims(dims)
        divisors = [divisibility] * len(places) if isinstance(divisibility, int) else divisibility
        if len(divisors) != len(places):
            raise UsageError(f"{len(places)} dimensions, but {len(divisors)} divisibilities")
        for divisor in divisors:
            _check(divisor)
        return list(zip(places, divisors, strict=True))

    def _dims(self, dims: Dims) -> list[int]:
        """Returns the dimensions as non-negative indices."""
        rank = len(self._shape)
        found = [dims] if isinstance(dims, int) else list(dims)
        for at in found:
            if not -rank <= at < rank:
                raise UsageError(f"the array has {rank} dimensions, but no dimension {at}")
        return [at % rank for at in found]


def _check(divisibility: int) -> None:
    if divisibility < 1 or divisibility & (divisibility - 1):
        raise UsageError(f"a divisibility must be a power of two, not {divisibility}")


def _text(strides: Sequence[Step]) -> str:
    return ", ".join(map(str, strides))


def from_dlpack(
    array: Any, *, assumed_align: int | None = None, use_32bit_stride: bool = False
) -> AnnotatedArray:
    """Wraps an array (NumPy, torch, anything with DLPack). Its layout is static until it is marked.

    `assumed_align` is in bytes and is checked. `use_32bit_stride` computes strides with 32 bits.
    Raises UsageError if the value is not an array or is not aligned as assumed.
    """
    if assumed_align is not None and view(array, "of from_dlpack").data.ctypes.data % assumed_align:
        raise UsageError(f"the array does not begin at a multiple of {assumed_align} bytes")
    return AnnotatedArray(array, 32 if use_32bit_stride else 64)
