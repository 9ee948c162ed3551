"""Values of MLIR in a traced program: what builders of dialects take and give.

`lower` makes operands of MLIR from values of the language, `lift` the reverse. A number that a
builder of MLIR made is an RawScalar: its type in MLIR says no sign, and no operator converts it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_trace.core import tracing
from fly_trace.core.dialect_value import DialectValue, wrap
from fly_trace.memory.structs import Array
from fly_trace.values.dtypes import DType
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector.vector_values import Vector
from fly_trace.values.vector.vectors import VectorType

from fly.flydsl.numbers.types import dtype_of, ir_type, vector_parts

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


class RawScalar(Scalar):
    """A number that a builder of MLIR made. FlyDSL's operators on it are those of the dialect
    `arith`: both operands have one type, `>>` fills with zeros, divisions have a sign."""

    __slots__ = ()
    is_number = False  # `isinstance(x, fx.Int32)`: it has no type of the language

    @property
    def described(self) -> str:
        return f"a value of the MLIR type {self.dtype.ir}"

    def with_value(self, value: ir.Value | None) -> RawScalar:
        return raw_scalar(self.dtype, value)


def raw_scalar(dtype: DType, value: Any) -> RawScalar:
    made = object.__new__(RawScalar)
    Scalar.__init__(made, dtype, value)
    return made


class RawVector(Vector):
    """A vector that a builder of MLIR made."""

    __slots__ = ()

    def with_ssa(self, ssa: ir.Value) -> RawVector:
        return RawVector(ssa, self.shape, self.dtype)


def is_value(value: Any) -> bool:
    """Whether FlyDSL takes something for a value of MLIR: `isinstance(x, ir.Value)`."""
    from fly_dialect.bindings import ir

    return isinstance(value, (ir.Value, RawScalar, Vector, DialectValue))


def type_of(value: Any) -> Any:
    """The type in MLIR of a value of the language; of a value of the fly dialect, its spec."""
    if isinstance(value, DialectValue):
        return value.spec
    if isinstance(value, Vector):
        return value.value.type
    return ir_type(value.dtype)


def is_spec(value: Any) -> bool:
    """Whether something is a type of the fly dialect."""
    return type(value).__module__.partition(".")[0] == "fly_dialect" and not isinstance(value, type)


def spec_of(kind: Any) -> Any:
    """The type of the fly dialect for a type of MLIR; its text for another type."""
    from fly_dialect import dialect as fly

    return fly.spec_of(kind) if hasattr(kind, "context") else kind


def lower(value: Any) -> Any:
    """The operand of MLIR for a value; anything else unchanged. Lists and tuples item by item."""
    if isinstance(value, Scalar):
        return tracing.current("a value of MLIR").ssa(value)
    if isinstance(value, Vector):
        return value.value
    if isinstance(value, DialectValue):
        return value.value(tracing.current("a value of MLIR"))
    if isinstance(value, Op):
        return value.op
    if isinstance(value, Array):
        return lower(value.ptr)
    if is_spec(value):
        return tracing.current("a type of the fly dialect").fly_type(value)
    if isinstance(value, (DType, VectorType)):
        return ir_type(value)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(lower, value))
    return _of_this_trace(value)


def escape(*values: Any) -> None:
    """Notes that an op which the language does not know gets these values: it may read and write
    what they point to."""
    for value in values:
        if isinstance(value, (list, tuple)):
            escape(*value)
        elif (access := getattr(getattr(value, "ptr", value), "access", None)) is not None:
            access.reads = access.writes = True


def _of_this_trace(value: Any) -> Any:
    """A type of MLIR in the context of this trace. A program may have kept one, in a global, that
    it made in an earlier trace."""
    from fly_dialect.bindings import ir

    builder = tracing.active()
    if builder is None or not isinstance(value, ir.Type) or value.context is builder.context:
        return value
    return ir.Type.parse(str(value), builder.context)


def lift(value: Any) -> Any:
    """The value of the language for what a builder of MLIR made."""
    from fly_dialect import dialect as fly
    from fly_dialect.bindings import ir

    if isinstance(value, Op):
        results = value.results
        return results[0] if len(results) == 1 else value
    if isinstance(value, ir.OpView | ir.Operation):
        return Op(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(lift, value))
    if isinstance(value, (ir.OpResultList, ir.BlockArgumentList)):
        return [lift(one) for one in value]
    if not isinstance(value, ir.Value):
        return value
    dtype = dtype_of(value.type)
    if dtype is not None:
        return raw_scalar(dtype, value)
    parts = vector_parts(value.type)
    if parts is not None:
        return RawVector(value, (parts[0],), parts[1])
    if str(value.type).startswith("!fly"):
        return wrap(fly.spec_of(value.type), value)
    return value


class Op:
    """An operation of MLIR, whose results are values of the language."""

    def __init__(self, op: Any):
        self.op = op

    @property
    def result(self) -> Any:
        return lift(self.op.operation.result)

    @property
    def results(self) -> list[Any]:
        return [lift(one) for one in self.op.operation.results]

    def __getattr__(self, name: str) -> Any:
        return lift(getattr(self.op, name))

    def __getitem__(self, index: int) -> Any:
        return self.results[index]
