"""`flydsl.expr.typing`: the types of values, and `T`, which makes types of MLIR."""

from __future__ import annotations

import enum
import re
from typing import Any

import fly_trace.expr as _language
from fly_trace.core import tracing
from fly_trace.values.dtypes import DType
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vectors import Vector as _Vector
from fly_trace.values.vector.vectors import VectorType
from fly_trace.values.vector_shapes import count, nested, vector_ir

from fly.flydsl.numbers.classes import filled
from fly.flydsl.numbers.methods import vector_load
from fly.flydsl.numbers.operators import typed
from fly.flydsl.numbers.raw import RawScalar, RawVector, is_value, lift
from fly.flydsl.numbers.specs import (
    AddressSpace,
    CoordTensorType,
    LayoutType,
    MemRefType,
    PointerType,
    space_of,
)
from fly.flydsl.numbers.types import Index, dtype_of, text_of

__all__ = [
    "AddressSpace",
    "CoordTensorType",
    "Index",
    "LayoutType",
    "MemRefType",
    "PointerType",
    "ReductionOp",
    "T",
    "Types",
    "Vector",
    "as_dsl_value",
    "as_ir_value",
    "as_numeric",
    "full",
    "full_like",
    "is_generic_address_space",
    "is_target_address_space",
    "zeros_like",
]


class Types:
    """`T.f16` is a type of MLIR, `T.i32x4` a vector type, `T.vec(8, T.f16)` another."""

    def __getattr__(self, name: str) -> Any:
        from fly_dialect import dialect as fly

        found = re.fullmatch(r"(index|i\d+|b?f\d+)(?:x(\d+))?", name)
        if found is None or dtype_of(found[1]) is None:
            raise AttributeError(f"T has no type {name}")
        text = found[1] if found[2] is None else f"vector<{found[2]}x{found[1]}>"
        tracing.current(f"T.{name}")
        return fly.type_of(text)

    def vec(self, n: int, elem: Any) -> Any:
        """The vector type of `n` elements of a type of MLIR."""
        from fly_dialect import dialect as fly

        return fly.type_of(f"vector<{int(n)}x{text_of(elem)}>")


T = Types()


class _VectorKind(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, _Vector)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return isinstance(kind, VectorType) or kind is cls or issubclass(kind, _Vector)

    def __call__(cls, value: Any, shape: Any = None, dtype: Any = None) -> _Vector:
        held = lift(value)
        if not isinstance(held, _Vector):
            tracing.refuse(f"fx.Vector takes a vector, not {tracing.describe(held)}")
        kind = dtype or held.dtype
        if kind.ir != held.dtype.ir:
            tracing.refuse(f"the vector has elements of {held.dtype.name}, not {kind.name}")
        return _Vector(held.value, (held.numel,) if shape is None else shape, kind)

    def __getattr__(cls, name: str) -> Any:
        return getattr(_Vector, name)


class Vector(metaclass=_VectorKind):
    """`fx.Vector`: a vector in registers. A call takes a vector of MLIR."""

    @staticmethod
    def make_type(shape: Any, dtype: DType) -> Any:
        """The type in MLIR of a vector of a shape."""
        from fly_dialect import dialect as fly

        return fly.type_of(vector_ir(dtype, count(nested(shape))))

    @staticmethod
    def from_elements(elements: Any, dtype: DType | None = None) -> _Vector:
        """A vector of numbers. Without a type, the first one's is that of all."""
        items = [typed(lift(one)) for one in elements]
        if not items:
            raise ValueError("Vector.from_elements takes at least one element")
        chosen = dtype or items[0].dtype
        return _Vector.from_elements([chosen(one) for one in items], chosen)

    @staticmethod
    def filled(shape: Any, fill_value: Any, dtype: DType) -> _Vector:
        return filled(shape, fill_value, dtype)

    @staticmethod
    def filled_like(template: _Vector, fill_value: Any, dtype: DType | None = None) -> _Vector:
        return Vector.filled(template.shape, fill_value, dtype or template.dtype)

    @staticmethod
    def zeros_like(template: _Vector, dtype: DType | None = None) -> _Vector:
        return Vector.filled_like(template, 0, dtype)

    @staticmethod
    def __construct_from_ir_values__(values: Any, exemplar: Any = None) -> _Vector:
        """The vector of one value of MLIR, with the shape and the type of an exemplar."""
        held = lift(values[0])
        if isinstance(exemplar, _Vector):
            return _Vector(held.value, exemplar.shape, exemplar.dtype)
        return held

    @staticmethod
    def load(result_type: Any, memref: Any, indices: Any) -> _Vector:
        """A vector of a memref of MLIR."""
        return vector_load(memref, indices, result_type)


class ReductionOp(enum.StrEnum):
    """The operations of `Vector.reduce` and `fx.coop`."""

    ADD, MUL, MAX, MIN = "add", "mul", "max", "min"


def full(shape: Any, fill_value: Any, dtype: DType) -> _Vector:
    """A vector with all elements equal to `fill_value`."""
    return filled(shape, fill_value, dtype)


def full_like(template: _Vector, fill_value: Any, dtype: DType | None = None) -> _Vector:
    """A vector with a template's shape and all elements equal to `fill_value`."""
    return Vector.filled_like(template, fill_value, dtype)


def zeros_like(template: _Vector, dtype: DType | None = None) -> _Vector:
    """A vector with a template's shape and all elements 0."""
    return Vector.filled_like(template, 0, dtype)


def is_generic_address_space(address_space: Any, expected: Any) -> bool:
    return space_of(address_space) == space_of(expected)


is_target_address_space = is_generic_address_space


def as_ir_value(value: Any, *, keep_static: bool = False) -> Any:
    """The value of MLIR for a value of the language: numbers without their sign, lists item by
    item. With `keep_static`, numbers that are known stay numbers of Python."""
    if value is None or is_value(value):
        return value
    if isinstance(value, (tuple, list)):
        return type(value)(as_ir_value(one, keep_static=keep_static) for one in value)
    held = typed(value)
    if isinstance(held, Scalar):
        if keep_static and held.number is not None:
            return held.number
        return held.ir_value()  # type: ignore[attr-defined]
    extract = getattr(value, "__extract_to_ir_values__", None)
    if extract is not None:
        found = extract()
        return found[0] if len(found) == 1 else found
    own = getattr(value, "ir_value", None)
    return value if own is None else own()


def as_dsl_value(value: Any, exemplar: Any = None) -> Any:
    """The value of the language for one of MLIR. `exemplar` is a value of its type, or the type."""
    if value is None:
        return None
    if isinstance(value, (tuple, list)):
        like = exemplar if isinstance(exemplar, (tuple, list)) else [exemplar] * len(value)
        return type(value)(map(as_dsl_value, value, like))
    held = lift(value)
    if isinstance(exemplar, Scalar):
        return exemplar.dtype(held)
    if isinstance(exemplar, DType):
        return exemplar(held)
    if isinstance(held, RawScalar):
        return Scalar(held.dtype, held.value)
    if isinstance(held, RawVector):
        return _Vector(held)
    return held


def as_numeric(value: Any) -> Any:
    """A number as a Scalar, with FlyDSL's type for one of Python."""
    return as_dsl_value(typed(value))


def __getattr__(name: str) -> Any:
    """The rest is the language's: element types, annotations, layouts, tiles, …"""
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ("Align", "Array"):
        from fly.flydsl.structs import arrays

        return getattr(arrays, name)
    return getattr(_language, name)
