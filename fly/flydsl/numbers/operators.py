"""Operators and conversions, as FlyDSL documents them: `fly_trace.core.rules`.

Numbers that are known while tracing are computed by Python, and wrap at their width.
"""

from __future__ import annotations

import math
import operator
from typing import Any, ClassVar

from fly_common.errors import InputError, UsageError
from fly_common.record import record
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.layouts.int_tuples import Extent
from fly_trace.values import conversion
from fly_trace.values.dtypes import BOOL, F32, F64, I32, DType, rounded
from fly_trace.values.elementwise import PREDICATES, Elementwise
from fly_trace.values.functions import fast_math
from fly_trace.values.promotion import default
from fly_trace.values.scalars import Scalar
from fly_trace.values.vector import vector_arithmetic
from fly_trace.values.vector.vector_arithmetic import spread
from fly_trace.values.vector.vector_values import Vector
from fly_trace.values.vector_shapes import broadcast, count

from fly.flydsl.numbers import promotion
from fly.flydsl.numbers.raw import RawScalar, RawVector, lift, raw_scalar
from fly.flydsl.numbers.types import Index

# Operation → ops for signed integers, unsigned integers and floats.
_OPS = {
    "add": ("arith.addi", "arith.addi", "arith.addf"),
    "sub": ("arith.subi", "arith.subi", "arith.subf"),
    "mul": ("arith.muli", "arith.muli", "arith.mulf"),
    "truediv": ("", "", "arith.divf"),
    "floordiv": ("arith.floordivsi", "arith.divui", "arith.divf"),
    "mod": ("arith.remsi", "arith.remui", "arith.remf"),
    "and": ("arith.andi", "arith.andi", ""),
    "or": ("arith.ori", "arith.ori", ""),
    "xor": ("arith.xori", "arith.xori", ""),
    "lshift": ("arith.shli", "arith.shli", ""),
    "rshift": ("arith.shrsi", "arith.shrui", ""),
    "pow": ("math.ipowi", "math.ipowi", "math.powf"),
}
_NUMBERS = (bool, int, float)


class FlyDSLError(InputError, TypeError, ValueError, RuntimeError):
    """An error of a function that is traced. FlyDSL raises one of these for the same mistake, and
    programs catch it."""


class FlyDSLCallError(UsageError, TypeError):
    """A call of a host function with arguments that it does not take: a TypeError, as Python's."""

    @classmethod
    def of(cls, error: UsageError) -> FlyDSLCallError:
        made = cls.__new__(cls, *error.args)
        made.__dict__.update(error.__dict__)
        return made


class FlyDSLIndexError(FlyDSLError, IndexError):
    """An element that a vector doesn't have. No other error is an IndexError, which ends a loop of
    Python's over an object's items."""


def _remainder(a: Any, b: Any) -> Any:
    """That of `arith`: with the sign of the dividend."""
    return math.fmod(a, b) if isinstance(a, float) else a - b * int(_quotient(a, b))


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_FOLDED = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "floordiv", "truediv")},
    **{name: getattr(operator, name) for name in ("lshift", "rshift", "xor", *PREDICATES)},
    "and": operator.and_,
    "or": operator.or_,
    "mod": _remainder,
    "pow": operator.pow,
}


def wrapped(number: Any, dtype: DType) -> Any:
    """A number as one of `dtype`, as C converts it."""
    if dtype.is_bool:
        return bool(number)
    if dtype.is_float:
        try:
            return rounded(float(number), dtype)
        except OverflowError:  # beyond the greatest finite number
            return math.copysign(math.inf, number)
    if isinstance(number, float) and not math.isfinite(number):
        tracing.refuse(f"{number} has no integer value")
    low, high = dtype.range
    return (int(number) - low) % (high - low + 1) + low


def typed(value: Any) -> Any:
    """A number of Python as a Scalar, also one of a layout; others unchanged."""
    if isinstance(value, Extent):
        value = int(value)
    if type(value) in _NUMBERS:
        return Scalar(default(value), number=value)
    return value


@record
class FlyDSLNumbers:
    """See `fly_trace.core.rules.Rules`. `fastmath` are the flags of all operations on floats,
    `waves_per_eu` and the most `registers` are what kernels ask for (0: nothing), `is_free` is for
    programs that are only traced."""

    error: ClassVar[type[InputError]] = FlyDSLError
    merges_reordered: ClassVar[bool] = True
    drops_one_sided: ClassVar[bool] = True
    fastmath: str | None = None
    waves_per_eu: int = 0
    registers: int = 0
    is_free: bool = False

    def begin(self, builder: Any) -> None:
        if self.fastmath is not None and not builder.host:
            builder.fastmath = fast_math.attribute(builder, self.fastmath)

    def binary(self, operation: str, a: Any, b: Any) -> Any:
        a, b = (typed(lift(one)) for one in (a, b))
        if not all(isinstance(one, (Scalar, Vector)) for one in (a, b)):
            return NotImplemented
        if operation == "divmod":
            return self.binary("floordiv", a, b), self.binary("mod", a, b)
        if isinstance(a, (RawScalar, RawVector)) or (
            isinstance(b, (RawScalar, RawVector)) and getattr(a, "number", None) is not None
        ):
            return _raw(operation, a, b)
        dtype = promotion.of_operation(operation, a.dtype, b.dtype)
        if operation == "pow" and a.dtype.is_float and b.dtype.is_integer:
            return _power(a, b)
        if isinstance(a, Vector) or isinstance(b, Vector):
            return _vectors(operation, a, b, dtype)
        a, b = self.convert(a, dtype), self.convert(b, dtype)
        if a.number is not None and b.number is not None:
            return _folded(operation, a.number, b.number, dtype)
        builder = tracing.current("an operator")
        ops = Elementwise(builder)
        return _made(ops, operation, builder.ssa(a), builder.ssa(b), dtype, Scalar)

    def unary(self, operation: str, a: Any) -> Any:
        if operation == "pos":
            return a
        if operation == "abs" and a.dtype.is_bool:
            tracing.refuse("a bool has no absolute value")
        if operation == "neg" and a.dtype.is_bool:
            tracing.refuse("a bool has no negative")
        if operation == "invert" and a.dtype.is_float:
            tracing.refuse(f"`~` takes an integer, not {describe(a)}")
        dtype = a.dtype
        number = getattr(a, "number", None)
        if number is not None:
            known = {"neg": operator.neg, "abs": abs, "invert": operator.invert}[operation]
            flipped = not number if dtype.is_bool else known(number)
            return Scalar(dtype, number=wrapped(flipped, dtype))
        builder = tracing.current("an operator")
        lanes = a.numel if isinstance(a, Vector) else None
        ops = Elementwise(builder, lanes)
        x = a.value
        if operation == "neg" and dtype.is_float:
            made = ops.op("arith.negf", dtype, x)
        elif operation == "neg":
            made = ops.op("arith.subi", dtype, ops.constant(0, dtype), x)
        elif operation == "invert":
            made = ops.op("arith.xori", dtype, x, ops.constant(1 if dtype.is_bool else -1, dtype))
        elif dtype.is_float:
            made = ops.op("math.absf", dtype, x)
        elif dtype.kind == "uint":
            return a
        else:
            made = ops.op("math.absi", dtype, x)
        return _like(a, made)

    def convert(self, value: Any, dtype: DType) -> Any:
        """`fx.Int32(value)`: integers wrap, floats round or are truncated. What MLIR made counts
        as signed, as wide as it is."""
        value = lift(value)
        if isinstance(value, Vector):
            # FlyDSL keeps a vector whose elements have the type, and converts floats.
            if value.dtype.ir == dtype.ir:
                return value
            if value.dtype.is_float and dtype.is_float:
                return vector_arithmetic.convert(value, dtype)
            tracing.refuse(
                f"fx.{dtype.title} takes a number, not {value.described}",
                f"convert the elements: x.to(fx.{dtype.title})",
            )
        if isinstance(value, _NUMBERS):
            return Scalar(dtype, number=wrapped(value, dtype))
        if not isinstance(value, Scalar):
            tracing.refuse(f"fx.{dtype.title} takes a number, not {describe(value)}")
        if value.number is not None:
            return Scalar(dtype, number=wrapped(value.number, dtype))
        if isinstance(value, RawScalar):
            value = Scalar(value.dtype, value.value)
        return conversion.convert(value, dtype)

    def to(
        self,
        value: Any,
        dtype: Any,
        *,
        rounding: str | None = None,
        saturate: bool = False,
        rounding_mode: str | None = None,
    ) -> Any:
        """`x.to(dtype)`. A rounding mode is for floats that become narrower; one that becomes wider
        is exact."""
        if not isinstance(dtype, DType):
            if getattr(dtype, "is_any_value", False):  # ir.Value
                return value
            tracing.refuse(f"`to` takes an element type, not {describe(dtype)}")
        mode = rounding if rounding_mode is None else rounding_mode
        if mode is None and not saturate:
            if value.dtype is dtype:
                return value
            if isinstance(value, Vector):
                return vector_arithmetic.convert(value, dtype)
            return self.convert(value, dtype)
        if mode is not None and getattr(value, "number", None) is not None:
            tracing.refuse("a rounding mode takes a run-time value, not a constant")
        if value.dtype is dtype:
            return value
        if mode is not None and not (value.dtype.is_float and dtype.is_float):
            tracing.refuse(
                f"a rounding mode is for float-to-float conversions, not {value.dtype.name} to"
                f" {dtype.name}"
            )
        if dtype.bits > value.dtype.bits and not saturate:
            mode = None
        convert: Any = vector_arithmetic.convert if isinstance(value, Vector) else conversion.to
        return convert(value, dtype, rounding=mode, saturate=saturate)

    def stored(self, value: Any, dtype: DType) -> Any:
        value = lift(value)
        if isinstance(value, _NUMBERS):
            return Scalar(dtype, number=wrapped(value, dtype))
        if isinstance(value, (RawScalar, RawVector)) and value.dtype.ir == dtype.ir:
            return value
        if isinstance(value, Scalar) and value.number is not None:
            return Scalar(dtype, number=wrapped(value.number, dtype))
        if isinstance(value, (Scalar, Vector)) and value.dtype.ir == dtype.ir:
            return value
        return NotImplemented


def _folded(operation: str, a: Any, b: Any, dtype: DType) -> Scalar:
    made = _FOLDED[operation](a, b)
    if operation in PREDICATES:
        return Scalar(BOOL, number=bool(made))
    if operation == "truediv" and not dtype.is_float:
        dtype = F64 if dtype.bits > 32 else F32
    return Scalar(dtype, number=wrapped(made, dtype))


def _made(ops: Elementwise, operation: str, x: Any, y: Any, dtype: DType, wrap: Any) -> Any:
    """The op for two operands of `dtype`."""
    if operation in PREDICATES:
        return wrap(BOOL, _compared(ops, operation, x, y, dtype))
    if operation == "truediv" and not dtype.is_float:
        if dtype is Index:
            return wrap(dtype, ops.op("arith.divui", dtype, x, y))
        wide = F64 if dtype.bits > 32 else F32
        x, y = (ops.convert(one, dtype, wide) for one in (x, y))
        dtype = wide
    kind = 2 if dtype.is_float else 1 if dtype.kind == "uint" else 0
    name = _OPS[operation][kind]
    made = ops.op(name, dtype, x, y)
    if operation == "floordiv" and dtype.is_float:
        made = ops.op("math.floor", dtype, made)
    return wrap(dtype, made)


def _compared(ops: Elementwise, operation: str, x: Any, y: Any, dtype: DType) -> Any:
    if dtype.is_bool and operation not in ("eq", "ne"):
        x, y, dtype = ops.convert(x, dtype, I32), ops.convert(y, dtype, I32), I32
    return ops.test(operation, x, y, dtype)


def _vectors(operation: str, a: Any, b: Any, dtype: DType) -> Any:
    shapes = [one.shape for one in (a, b) if isinstance(one, Vector)]
    shape = shapes[0] if len(shapes) == 1 else broadcast(*shapes)
    ops = Elementwise(tracing.current("an operator on a vector"), count(shape))
    x, y = (spread(one, dtype, shape) for one in (a, b))
    return _made(ops, operation, x, y, dtype, lambda kind, made: Vector(made, shape, kind))


def _raw(operation: str, a: Any, b: Any) -> Any:
    """An operator of the dialect `arith`: one operand decides the type, the other has it."""
    main = a if isinstance(a, (RawScalar, RawVector)) else b
    dtype = main.dtype
    vector = next((one for one in (a, b) if isinstance(one, Vector)), None)
    builder = tracing.current("an operator")
    ops = Elementwise(builder, None if vector is None else vector.numel)

    def operand(one: Any) -> Any:
        if getattr(one, "number", None) is not None:
            return ops.constant(wrapped(one.number, dtype), dtype)
        if one.dtype.ir != dtype.ir:
            tracing.refuse(
                f"{describe(main)} meets {describe(one)}: operators on values of MLIR convert"
                " nothing",
                f"convert one of them, as in fx.{one.dtype.title}(x)",
            )
        if vector is not None and not isinstance(one, Vector):
            return spread(Scalar(one.dtype, one.value), one.dtype, vector.shape)
        return builder.ssa(one) if isinstance(one, Scalar) else one.value

    x, y = operand(a), operand(b)
    if operation == "rshift":
        made = ops.op("arith.shrui", dtype, x, y)
    else:

        def wrap(kind: DType, value: Any) -> Any:
            if vector is None:
                return raw_scalar(kind, value)
            return RawVector(value, vector.shape, kind)

        return _made(ops, operation, x, y, dtype, wrap)
    return _like(main if vector is None else vector, made)


def _power(a: Any, b: Any) -> Any:
    """A float to the power of an integer."""
    from fly_trace.values.functions.math_functions import fpowi

    if getattr(b, "number", None) is not None:
        b = Scalar(I32, number=int(b.number))
    return vector_arithmetic.over_lanes(fpowi)(a, b)


def _like(a: Any, made: Any) -> Any:
    if isinstance(a, RawScalar):
        return raw_scalar(a.dtype, made)
    if isinstance(a, Vector):
        return type(a)(made, a.shape, a.dtype)
    return Scalar(a.dtype, made)


NUMBERS = FlyDSLNumbers()
