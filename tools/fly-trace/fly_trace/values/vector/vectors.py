"""Vectors: several numbers of one type in registers, with elementwise operations.

A vector has the shape of the tensor it was loaded from. Its elements are numbered like a layout's
coordinates, with the first mode fastest: `v[i, j]` is the tensor's element at (i, j).

`vector_values` defines the class, `vector_arithmetic` the operators. Importing this module installs
the operators, like `operators` does for scalars.
"""

from __future__ import annotations

from typing import Any

from fly_common.record import record

from fly_trace.values import operators
from fly_trace.values.dtypes import DType
from fly_trace.values.vector import vector_arithmetic
from fly_trace.values.vector.vector_values import Vector

__all__ = [
    "ReductionOp",
    "Vector",
    "full",
    "full_like",
    "ones_like",
    "zeros_like",
]

operators.install(
    Vector,
    operators.ruled(vector_arithmetic.binary),
    operators.ruled_unary(vector_arithmetic.unary),
)
setattr(Vector, "to", operators.ruled_to(vector_arithmetic.convert))  # noqa: B010
setattr(Vector, "select", vector_arithmetic.select)  # noqa: B010


class ReductionOp:
    """The operations of `Vector.reduce`."""

    ADD, MUL, MAX, MIN = "add", "mul", "max", "min"


@record
class VectorType:
    """`fx.Float32x4`: a call makes a vector of 4 elements; `p.load(fx.Float32x4)` loads one."""

    dtype: DType
    lanes: int

    def __call__(self, value: Any) -> Vector:
        if isinstance(value, Vector):
            return value.reshape((self.lanes,)).to(self.dtype)
        if isinstance(value, (list, tuple)):
            return Vector.from_elements(value, self.dtype).reshape((self.lanes,))
        return Vector.filled((self.lanes,), value, self.dtype)


def full(shape: Any, fill_value: Any, dtype: DType) -> Vector:
    """A vector with all elements equal to `fill_value`."""
    return Vector.filled(shape, fill_value, dtype)


def full_like(a: Vector, fill_value: Any, dtype: DType | None = None) -> Vector:
    """A vector with a's shape and all elements equal to `fill_value`."""
    return Vector.filled(a.shape, fill_value, dtype or a.dtype)


def zeros_like(a: Vector, dtype: DType | None = None) -> Vector:
    """A vector with a's shape and all elements 0."""
    return full_like(a, 0, dtype)


def ones_like(a: Vector, dtype: DType | None = None) -> Vector:
    """A vector with a's shape and all elements 1."""
    return full_like(a, 1, dtype)


def empty_like(a: Vector, dtype: DType | None = None) -> Vector:
    """A vector with a's shape. Its elements are zero."""
    return zeros_like(a, dtype)
