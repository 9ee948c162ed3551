"""FlyDSL's methods and properties of numbers, vectors and element types, added to the language's
classes when this package is imported. None replaces one that the language has."""

from __future__ import annotations

import importlib
from typing import Any

from fly_dialect.types import MemRefSpec, PtrSpec
from fly_trace.core import tracing
from fly_trace.core.dialect_value import DialectValue
from fly_trace.layouts.int_tuples import Extent
from fly_trace.memory.pointers import Pointer
from fly_trace.memory.structs import Record
from fly_trace.signatures.annotations import Constexpr
from fly_trace.values.conversion import bitcast as scalar_bitcast
from fly_trace.values.dtypes import BOOL, DType, named
from fly_trace.values.elementwise import Elementwise
from fly_trace.values.functions.fast_math import of_op
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vector_arithmetic import select as vector_select
from fly_trace.values.vector.vector_arithmetic import spread
from fly_trace.values.vector.vectors import Vector, VectorType

from fly.flydsl.numbers import promotion
from fly.flydsl.numbers.operators import NUMBERS, typed, wrapped
from fly.flydsl.numbers.raw import RawScalar, RawVector, lift, lower, raw_scalar, type_of
from fly.flydsl.numbers.types import Index, dtype_of, ir_type, vector_parts


def ir_value(self: Any) -> Any:
    """The value as one of MLIR: FlyDSL's operators no longer convert it."""
    if isinstance(self, Scalar):
        return raw_scalar(self.dtype, tracing.current("ir_value").ssa(self))
    if isinstance(self, Vector):
        return self
    return self


def _shaped(value: Any, kind: Any) -> tuple[Elementwise, DType, Any]:
    """What converts a number or vector to an element type, given as FlyDSL's or MLIR's."""
    parts = None if isinstance(kind, (DType, VectorType)) else vector_parts(kind)
    dtype = parts[1] if parts else kind if isinstance(kind, DType) else dtype_of(kind)
    if dtype is None:
        tracing.refuse(f"{kind} is no type of numbers")
    vector = isinstance(value, Vector)
    ops = Elementwise(tracing.current("a conversion"), value.numel if vector else None)

    def wrap(made: Any) -> Any:
        return RawVector(made, (value.numel,), dtype) if vector else raw_scalar(dtype, made)

    return ops, dtype, wrap


def _cast(op: str) -> Any:
    def method(self: Any, target_type: Any, *, fastmath: Any = None) -> Any:
        ops, dtype, wrap = _shaped(self, target_type)
        if dtype.ir == self.dtype.ir:
            return self
        flags = of_op(ops.builder, fastmath)
        return wrap(ops.op(op, dtype, lower(self), **flags))

    method.__name__ = op.partition(".")[2]
    method.__doc__ = f"`{op}` to a type of MLIR."
    return method


def _binary(op: str) -> Any:
    def method(self: Any, other: Any, *, fastmath: Any = None) -> Any:
        vector = next((one for one in (self, other) if isinstance(one, Vector)), None)
        ops = Elementwise(tracing.current("an operator"), None if vector is None else vector.numel)
        other = typed(lift(other))
        if isinstance(other, Scalar) and other.number is not None:
            other = Scalar(self.dtype, number=wrapped(other.number, self.dtype))
        x, y = (
            lower(one) if vector is None else spread(one, self.dtype, vector.shape)
            for one in (self, other)
        )
        made = ops.op(op, self.dtype, x, y, **of_op(ops.builder, fastmath))
        if vector is not None:
            return Vector(made, vector.shape, self.dtype)
        return self.with_value(made)

    method.__name__ = op.partition(".")[2]
    method.__doc__ = f"`{op}` of two values of one type."
    return method


def _math(name: str) -> Any:
    def method(self: Any, *, fastmath: Any = None) -> Any:
        ops = Elementwise(tracing.current(name), self.numel if isinstance(self, Vector) else None)
        made = ops.op(f"math.{name}", self.dtype, lower(self), **of_op(ops.builder, fastmath))
        if isinstance(self, Vector):
            return Vector(made, self.shape, self.dtype)
        return self.with_value(made)

    method.__name__ = name
    return method


def select(self: Any, true_value: Any, false_value: Any) -> Any:
    """`true_value` where this is true (not 0), else `false_value`; both are computed."""
    if not isinstance(self, Vector) and self.dtype is not BOOL and self.number is not None:
        self = BOOL(self)
    condition: Any = self if self.dtype is BOOL else self != 0
    if isinstance(self, Vector) and condition is not self:
        self = condition
    a, b = (typed(lift(one)) for one in (true_value, false_value))
    if isinstance(self, Vector):
        dtype = promotion.common(a.dtype, b.dtype)
        x, y = (one.to(dtype) if isinstance(one, Vector) else dtype(one) for one in (a, b))
        return vector_select(condition, x, y)
    if not (isinstance(a, Scalar) and isinstance(b, Scalar)):
        return _selected(condition, a, b)
    raw = isinstance(a, RawScalar) or isinstance(b, RawScalar)
    if raw:
        dtype = next(one.dtype for one in (a, b) if isinstance(one, RawScalar))
    else:
        dtype = promotion.common(a.dtype, b.dtype)
    x, y = dtype(a), dtype(b)
    if condition.number is not None:
        return x if condition.number else y
    builder = tracing.current("a selection")
    operands = [builder.ssa(one) for one in (condition, x, y)]
    return Scalar(dtype, builder.one("arith.select", dtype.ir, *operands))


def _selected(condition: Scalar, a: Any, b: Any) -> Any:
    """A selection of two vectors, or of other values of one type, by one bool."""
    if condition.number is not None:
        return a if condition.number else b
    builder = tracing.current("a selection")
    vector = next((one for one in (a, b) if isinstance(one, Vector)), None)
    if vector is not None:
        x, y = (spread(one, vector.dtype, vector.shape) for one in (a, b))
        kind = x.type
    else:
        x, y = lower(a), lower(b)
        kind = x.type
    op = builder.op("arith.select", [kind], [builder.ssa(condition), x, y])
    made = op.results[0]
    return Vector(made, vector.shape, vector.dtype) if vector is not None else lift(made)


def shuffle_xor(self: Any, offset: Any, width: Any) -> Any:
    """The value of the lane whose number differs by `offset` in exclusive or."""
    gpu = importlib.import_module("fly.flydsl.expr.gpu")

    return gpu.shuffle_xor(self, offset, width)


def bitcast(self: Scalar, dtype: Any) -> Any:
    """The same bits as another type of this width, FlyDSL's or MLIR's."""
    raw = not isinstance(dtype, DType)
    found = dtype_of(dtype) if raw else dtype
    if found is None:
        tracing.refuse(f"{dtype} is no type of numbers")
    made = scalar_bitcast(self, found)
    return raw_scalar(found, made.value) if raw else made


def shrui(self: Any, amount: Any) -> Any:
    """Shifted to the right; zeros come in."""
    return _binary("arith.shrui")(self, amount)


def vector_load(memref: Any, indices: Any, kind: Any) -> Any:
    """`Vector.load`: a vector of a memref of MLIR."""
    vector = importlib.import_module("fly.flydsl._mlir.dialects.vector")

    return lift(vector.LoadOp(kind, memref, [as_index(one) for one in indices]).result)


def vector_store(self: Any, memref: Any, indices: Any, *, alignment: int | None = None) -> None:
    vector = importlib.import_module("fly.flydsl._mlir.dialects.vector")

    named = {} if alignment is None else {"alignment": alignment}
    vector.store(self, memref, [as_index(one) for one in indices], **named)


def as_index(value: Any) -> Any:
    return Index(value)


def with_signedness(self: Any, signed: bool | None) -> Any:
    """The same bits as a number with or without a sign; None: as MLIR has it, without either."""
    if self.dtype.is_float or self.dtype is BOOL:
        return self
    bits = self.dtype.bits
    if signed is None:
        return raw_scalar(named(f"i{bits}"), lower(self))
    return scalar_bitcast(self, named(f"{'i' if signed else 'u'}{bits}"))


_METHODS = {
    "ir_value": ir_value,
    "with_signedness": with_signedness,
    "select": select,
    "shuffle_xor": shuffle_xor,
    "shrui": shrui,
    "get_name": lambda self: lower(self).get_name(),
    **{name: _math(name) for name in ("exp2", "rsqrt")},
    **{name: _binary(f"arith.{name}") for name in ("addf", "maximumf", "minimumf")},
    **{
        name: _cast(f"arith.{name}")
        for name in ("extf", "truncf", "extui", "extsi", "trunci", "index_cast")
    },
}
_SIGNS = {"int": True, "bool": True, "uint": False, "float": None}


def _element(self: Any) -> Any:
    from fly_dialect import dialect as fly

    return fly.type_of(self.element)


def _llvm_ptr(self: Pointer) -> Any:
    to_llvm_ptr = importlib.import_module("fly.flydsl.expr.primitive").to_llvm_ptr

    return to_llvm_ptr(self)


def _zero(self: DType) -> Any:
    return 0.0 if self.is_float else 0


def _numpy(self: DType) -> Any:
    import numpy as np
    from fly_numerics.element_types import ELEMENT_TYPES

    row = ELEMENT_TYPES.get(self.name)
    return np.dtype(row.numpy) if row is not None and row.numpy else None


class Answer(int):
    """A bool that may be called, as FlyDSL's methods are: `x.is_static`, `x.is_static()`."""

    def __call__(self) -> bool:
        return bool(self)

    def __repr__(self) -> str:
        return repr(bool(self))


def _is_static(self: Any) -> Answer:
    return Answer(self.number is not None)


_PROPERTIES = {
    DType: {
        "ir_type": ir_type,
        "signed": lambda self: _SIGNS[self.kind],
        "zero": _zero,
        "numpy_dtype": _numpy,
        "log_width": lambda self: (self.bits - 1).bit_length(),
    },
    VectorType: {"ir_type": ir_type},
    Scalar: {"type": type_of, "signed": lambda self: _SIGNS[self.dtype.kind]},
    Vector: {
        "type": type_of,
        "element_type": lambda self: self.dtype,
        "signed": lambda self: bool(_SIGNS[self.dtype.kind]),
    },
    Constexpr: {
        "__extract_to_ir_values__": lambda self: list,
        "__get_ir_types__": lambda self: list,
    },
    DialectValue: {"type": type_of},
}


def _fields_of(kind: Any) -> Any:
    """What a struct is for caches: its class and its values."""
    names = kind.__fly_fields__
    values = (getattr(kind, name) for name in names)
    return type(kind), *(getattr(one, "number", one) for one in values)


def _install() -> None:
    tracing.OUTSIDE.rules = NUMBERS  # type: ignore[assignment]
    for spec in (PtrSpec, MemRefSpec):
        spec.element_type = property(_element)  # type: ignore[union-attr]
        spec.address_space = property(lambda self: self.space)  # type: ignore[union-attr]
    Pointer.llvm_ptr = property(_llvm_ptr)  # type: ignore[attr-defined]
    Extent.get_static_leaf_int = property(int)  # type: ignore[attr-defined]
    Scalar.is_static = property(_is_static)  # type: ignore[assignment]
    setattr(Record, "__cache_signature__", _fields_of)  # noqa: B010
    for kind in (Scalar, Vector):
        for name, method in _METHODS.items():
            if not hasattr(kind, name):
                setattr(kind, name, method)
    setattr(Scalar, "bitcast", bitcast)  # noqa: B010
    setattr(Vector, "store", vector_store)  # noqa: B010
    setattr(DialectValue, "ir_value", ir_value)  # noqa: B010
    for kind, properties in _PROPERTIES.items():
        for name, read in properties.items():
            if name not in vars(kind):
                setattr(kind, name, property(read))


_install()
