"""FlyDSL's methods of classes: of `Numeric`, and of vectors with a fixed number of elements.

Where the language has the method too, a function with FlyDSL's rules gets FlyDSL's.
"""

from __future__ import annotations

import functools
from typing import Any

from fly_trace.core import rules, tracing
from fly_trace.values.dtypes import DType, Numeric
from fly_trace.values.functions.fast_math import FastMathFlags
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vectors import Vector, VectorType
from fly_trace.values.vector_shapes import count, nested, vector_ir

from fly.flydsl.numbers.methods import select
from fly.flydsl.numbers.operators import FlyDSLError, FlyDSLIndexError, typed
from fly.flydsl.numbers.raw import RawVector, lift
from fly.flydsl.numbers.types import dtype_of


def from_python_value(value: Any) -> Scalar:
    """A number of Python as an Int32, Int64, Float32 or Boolean."""
    made = typed(value)
    if not isinstance(made, Scalar):
        tracing.refuse(f"{tracing.describe(value)} is no number")
    return made


def from_ir_type(kind: Any) -> DType:
    """The element type of a type of MLIR; integers are signed."""
    found = dtype_of(kind)
    if found is None:
        raise TypeError(f"the type {kind} of MLIR is no type of numbers")
    return found


def filled(shape: Any, fill_value: Any, dtype: DType) -> Vector:
    """A vector with all elements equal to `fill_value`: a broadcast, also of a constant."""
    builder = tracing.current("a vector")
    form = nested(shape)
    number = builder.ssa(dtype(fill_value))
    return Vector(
        builder.one("vector.broadcast", vector_ir(dtype, count(form)), number), form, dtype
    )


def _ruled(language: Any) -> Any:
    """A decorator: the function replaces the language's in functions with FlyDSL's rules."""

    def make(own: Any) -> Any:
        @functools.wraps(own)
        def method(self: Any, *arguments: Any, **named: Any) -> Any:
            if rules.current() is None:
                return language(self, *arguments, **named)
            return own(self, *arguments, **named)

        return method

    return make


# -- vectors ---------------------------------------------------------------------------------------

# The names of MLIR's combining kinds → reductions.
_KINDS = {
    **dict.fromkeys(("MAXUI", "MAXSI", "MAXNUMF", "MAXIMUMF"), "max"),
    **dict.fromkeys(("MINUI", "MINSI", "MINNUMF", "MINIMUMF"), "min"),
    "ADD": "add",
    "MUL": "mul",
}


@_ruled(Vector.reduce)
def reduce(self: Vector, op: Any, init_val: Any = None, *, fastmath: Any = None) -> Any:
    """Reduces all elements: by a ReductionOp, its name, or a combining kind of MLIR."""
    if not isinstance(op, str):
        op = _KINDS.get(getattr(op, "name", ""), op)
    return _reduce(self, op, init_val, fastmath=flags(fastmath))


_reduce = Vector.reduce


def flags(given: Any) -> Any:
    """Fast-math flags, also as MLIR's enumeration has them."""
    if given is None or isinstance(given, (str, FastMathFlags)):
        return given
    name = getattr(given, "name", None)
    return name.replace("|", ",") if isinstance(name, str) else given


@_ruled(Vector.__getitem__)
def item(self: Vector, index: Any) -> Any:
    """An element. IndexError for one that is not there."""
    try:
        return _item(self, index)
    except FlyDSLError as error:
        number = getattr(index, "number", index)
        if type(number) is int and not -self.numel <= number < self.numel:
            raise FlyDSLIndexError(error.message, place=error.place, hint=error.hint) from None
        raise


_item = Vector.__getitem__


def _unhashable(self: Vector) -> int:
    raise TypeError(f"unhashable type: '{type(self).__name__}'")


@_ruled(_unhashable)
def _hash(self: Vector) -> int:
    return id(self)


def extract(self: Any) -> list[Any]:
    """The vector as a list of one value of MLIR."""
    return [RawVector(self)]


def shown(self: Vector) -> str:
    return f"Vector({list(self.shape)}, {self.dtype.title})"


# -- vectors of a fixed length ---------------------------------------------------------------------


def _matches(kind: VectorType, value: Any) -> bool:
    return isinstance(value, Vector) and value.dtype is kind.dtype and value.numel == kind.lanes


@_ruled(VectorType.__call__)
def make(self: VectorType, value: Any, shape: Any = None, dtype: Any = None) -> Vector:
    """`fx.Float32x4(x)`: of 4 elements, of one number for all of them, or of a vector of MLIR that
    has this type."""
    if dtype is not None and dtype is not self.dtype:
        tracing.refuse(f"{name_of(self)} has elements of {self.dtype.title}, not {dtype.title}")
    if shape is not None and count(nested(shape)) != self.lanes:
        tracing.refuse(f"{name_of(self)} has {self.lanes} elements, not {count(nested(shape))}")
    held = lift(value)
    if isinstance(held, Vector):
        if held.numel != self.lanes:
            tracing.refuse(f"{name_of(self)} has {self.lanes} elements, not {held.numel}")
        if held.dtype.ir == self.dtype.ir:
            return Vector(held.value, (self.lanes,), self.dtype)
    return _make(self, held)


_make = VectorType.__call__


def name_of(kind: VectorType) -> str:
    return f"{kind.dtype.title}x{kind.lanes}"


def _filled(self: VectorType, shape: Any, fill_value: Any, dtype: Any = None) -> Vector:
    """A vector of this type with all elements equal to `fill_value`."""
    return make(self, filled(shape, fill_value, dtype or self.dtype), shape, dtype)


def make_type(self: VectorType, shape: Any = None, dtype: Any = None) -> Any:
    """The type in MLIR."""
    from fly_dialect import dialect as fly

    lanes = self.lanes if shape is None else count(nested(shape))
    return fly.type_of(vector_ir(dtype or self.dtype, lanes))


def _install() -> None:
    placed: dict[Any, dict[str, Any]] = {
        Numeric: {
            "from_python_value": staticmethod(from_python_value),
            "from_ir_type": staticmethod(from_ir_type),
        },
        Vector: {
            "__getitem__": item,
            "reduce": reduce,
            "select": _ruled(Vector.select)(select),
            "__hash__": _hash,
            "__str__": shown,
            "__extract_to_ir_values__": extract,
        },
        VectorType: {
            "__call__": make,
            "__instancecheck__": _matches,
            "filled": _filled,
            "make_type": make_type,
        },
    }
    for kind, methods in placed.items():
        for name, method in methods.items():
            setattr(kind, name, method)


_install()
