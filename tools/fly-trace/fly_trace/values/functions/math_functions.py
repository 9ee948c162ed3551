"""Mathematical functions of the language: fx.exp, fx.where, fx.minimum, …

Each takes numbers and returns a Scalar of the promoted type. f16 and bf16 are computed in f32 and
rounded once, unless the operation is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values import integer_ops
from fly_trace.values.arithmetic import binary, common, computed, refuse_host_float
from fly_trace.values.conversion import checked, convert, scalar
from fly_trace.values.dtypes import BOOL, F32, I32, I64, DType
from fly_trace.values.functions.fast_math import Flags, of_op
from fly_trace.values.promotion import check_computes
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_trace.session.builder import Builder

# fx's name → the op of the math dialect. Computed in f32 for 16-bit floats.
_NAMES = """
    exp exp2 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan asin acos atan sinh cosh tanh
    asinh acosh atanh erf erfc
    """
UNARY = {name: f"math.{name}" for name in _NAMES.split()}
# The results are exact, so the type's own op is used.
EXACT = {name: f"math.{name}" for name in ("floor", "ceil", "trunc", "round", "roundeven")}
PREDICATES = {name: f"math.{name}" for name in ("isnan", "isinf", "isfinite", "isnormal")}


def _is_typed(operands: tuple[Any, ...]) -> bool:
    return any(isinstance(operand, Scalar) for operand in operands)


def meet(name: str, *operands: Any) -> DType:
    """The promoted type of any number of operands: the typed ones first, then the weak ones."""
    typed = [operand for operand in operands if isinstance(operand, Scalar)]
    plain = [operand for operand in operands if not isinstance(operand, Scalar)]
    for operand in plain:
        if not isinstance(operand, (bool, int, float)):
            tracing.refuse(f"fx.{name} takes numbers, not {describe(operand)}")
    if not typed:
        typed = [scalar(plain.pop(0), name)]
    held = Scalar(typed[0].dtype)
    for operand in [*typed[1:], *plain]:
        held = Scalar(common(held, operand))
    return held.dtype


def _floats(name: str, *operands: Any) -> tuple[Builder, DType, list[Any]]:
    builder = tracing.kernel(f"fx.{name}")
    dtype = meet(name, *operands)
    checked(check_computes, dtype)
    if not dtype.is_float:
        dtype = F32
    return builder, dtype, [builder.ssa(convert(operand, dtype)) for operand in operands]


def _widened(
    builder: Builder, op: str, dtype: DType, operands: list[Any], fastmath: Flags
) -> Scalar:
    """Computes `op` in f32 and rounds to `dtype` for a 16-bit float; computes it in `dtype` for
    others."""
    flags = of_op(builder, fastmath)
    if dtype.bits >= 32:
        return Scalar(dtype, builder.one(op, dtype.ir, *operands, **flags))
    wide = [builder.one("arith.extf", "f32", operand) for operand in operands]
    result = builder.one(op, "f32", *wide, **flags)
    return Scalar(dtype, builder.one("arith.truncf", dtype.ir, result))


def _unary(name: str, op: str) -> Any:
    def function(x: Any, *, fastmath: Flags = None) -> Scalar:
        builder, dtype, operands = _floats(name, x)
        if name in EXACT and isinstance(x, Scalar) and not x.dtype.is_float:
            tracing.refuse(f"fx.{name} takes a float, not {describe(x)}")
        return _widened(builder, op, dtype, operands, fastmath)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{op} of a float; an integer is computed in f32. `fastmath`: LLVM's flags."
    return function


def _predicate(name: str, op: str) -> Any:
    def function(x: Any, *, fastmath: Flags = None) -> Scalar:
        builder, _, operands = _floats(name, x)
        return Scalar(BOOL, builder.one(op, "i1", *operands, **of_op(builder, fastmath)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{op} of a float: a bool."
    return function


BY_NAME = {name: _unary(name, op) for name, op in {**UNARY, **EXACT}.items()}
BY_NAME |= {name: _predicate(name, op) for name, op in PREDICATES.items()}


def pow_(x: Any, y: Any, *, fastmath: Flags = None) -> Scalar:
    """x to the power y, both floats."""
    builder, dtype, operands = _floats("pow", x, y)
    return _widened(builder, "math.powf", dtype, operands, fastmath)


def fpowi(x: Any, n: Any, *, fastmath: Flags = None) -> Scalar:
    """The float x to the power n, an integer of up to 32 bits."""
    builder, dtype, operands = _floats("fpowi", x)
    exponent = scalar(n, "the exponent of fx.fpowi")
    if not exponent.dtype.is_integer or exponent.dtype.bits > 32 or exponent.dtype.name == "u32":
        tracing.refuse(
            f"the exponent of fx.fpowi must be an integer that fits in i32, not {describe(n)}",
            "convert it, as in fx.Int32(n)",
        )
    power, flags = builder.ssa(convert(exponent, I32)), of_op(builder, fastmath)
    if dtype.bits >= 32:
        return Scalar(dtype, builder.one("math.fpowi", dtype.ir, *operands, power, **flags))
    wide = builder.one("arith.extf", "f32", *operands)
    result = builder.one("math.fpowi", "f32", wide, power, **flags)
    return Scalar(dtype, builder.one("arith.truncf", dtype.ir, result))


def atan2(y: Any, x: Any, *, fastmath: Flags = None) -> Scalar:
    """The angle of the point (x, y), from -π to π."""
    builder, dtype, operands = _floats("atan2", y, x)
    return _widened(builder, "math.atan2", dtype, operands, fastmath)


def copysign(mag: Any, sign: Any, *, fastmath: Flags = None) -> Scalar:
    """The magnitude of one float with the sign of another, including that of a NaN or a zero."""
    builder, dtype, operands = _floats("copysign", mag, sign)
    flags = of_op(builder, fastmath)
    return Scalar(dtype, builder.one("math.copysign", dtype.ir, *operands, **flags))


def clampf(x: Any, lo: Any, hi: Any, *, fastmath: Flags = None) -> Scalar:
    """x limited to the range from `lo` to `hi`; NaN if any operand is NaN."""
    _, dtype, _ = _floats("clampf", x, lo, hi)
    below = minimum(convert(x, dtype), hi, fastmath=fastmath)
    return maximum(below, lo, fastmath=fastmath)


def absf(x: Any, *, fastmath: Flags = None) -> Scalar:
    """The absolute value of a float."""
    builder, dtype, operands = _floats("absf", x)
    flags = of_op(builder, fastmath)
    return Scalar(dtype, builder.one("math.absf", dtype.ir, *operands, **flags))


def power(a: Any, b: Any) -> Any:
    """`a ** b`. A small static integer exponent becomes a product; other floats use pow."""
    if not all(isinstance(operand, (Scalar, bool, int, float)) for operand in (a, b)):
        return NotImplemented
    builder = tracing.current("`**` on a typed value")
    dtype = common(a, b)
    if builder.host:
        if dtype.is_float:
            refuse_host_float()
        dtype = I64
    exponent = b.number if isinstance(b, Scalar) else b
    dtype = computed("pow", dtype, a, b)
    if dtype.is_integer:
        if not isinstance(exponent, int) or exponent < 0:
            tracing.refuse(
                "an integer power needs an exponent that is known while tracing and not negative",
                "convert the base to a float, as in fx.Float32(x) ** y",
            )
    elif not isinstance(exponent, int) or abs(exponent) > 16:
        return pow_(a, b)
    base, result = convert(a, dtype), None
    for bit in bin(abs(exponent))[2:]:
        result = None if result is None else binary("mul", result, result)
        if bit == "1":
            result = base if result is None else binary("mul", result, base)
    if result is None:
        return Scalar(dtype, number=1.0 if dtype.is_float else 1)
    return binary("truediv", 1.0, result) if exponent < 0 else result


def fma(a: Any, b: Any, c: Any, *, fastmath: Flags = None) -> Scalar:
    """a·b + c of floats with a single rounding."""
    builder, dtype, operands = _floats("fma", a, b, c)
    flags = of_op(builder, fastmath)
    if dtype.name == "bf16":
        # gfx9 has no bf16 fma. The product of two bf16 is exact in f32, but rounding the sum to f32
        # and then to bf16 could round twice. In f64, both steps before the last are exact.
        wide = [builder.one("arith.extf", "f64", operand) for operand in operands]
        result = builder.one("math.fma", "f64", *wide, **flags)
        return Scalar(dtype, builder.one("arith.truncf", dtype.ir, result))
    return Scalar(dtype, builder.one("math.fma", dtype.ir, *operands, **flags))


def abs_(x: Any) -> Scalar:
    """The absolute value. The least integer is unchanged, as in two's complement."""
    return abs(scalar(x, "the argument of fx.abs")) if isinstance(x, Scalar) else abs(x)


# Op for signed integers, unsigned integers, floats.
_EXTREMES = {
    "maximum": ("arith.maxsi", "arith.maxui", "arith.maximumf"),
    "minimum": ("arith.minsi", "arith.minui", "arith.minimumf"),
    "maxnumf": ("arith.maxsi", "arith.maxui", "arith.maxnumf"),
    "minnumf": ("arith.minsi", "arith.minui", "arith.minnumf"),
}


def _extreme(name: str, *operands: Any, fastmath: Flags) -> Any:
    if all(type(operand) is int for operand in operands):  # such as static extents
        return (max if name.startswith("max") else min)(operands)
    if not _is_typed(operands):
        tracing.refuse(f"fx.{name} takes at least one typed value", "use Python's max or min")
    builder = tracing.current(f"fx.{name}")
    dtype = meet(name, *operands)
    checked(check_computes, dtype)
    if builder.host:
        dtype = (
            I64
            if not dtype.is_float
            else tracing.refuse(
                "the host function computes with integers only", "compute with floats in the kernel"
            )
        )
    signed, unsigned, floating = _EXTREMES[name]
    op = floating if dtype.is_float else signed if dtype.kind == "int" else unsigned
    values = [builder.ssa(convert(operand, dtype)) for operand in operands]
    flags = of_op(builder, fastmath) if dtype.is_float else {}
    result = values[0]
    for value in values[1:]:
        result = builder.one(op, dtype.ir, result, value, **flags)
    return Scalar(dtype, result)


def maximum(a: Any, b: Any, *more: Any, fastmath: Flags = None) -> Any:
    """The greatest. If any float is NaN, so is the result (IEEE 754-2019 maximum). That of Python's
    integers, as static extents are, is one of them."""
    return _extreme("maximum", a, b, *more, fastmath=fastmath)


def minimum(a: Any, b: Any, *more: Any, fastmath: Flags = None) -> Any:
    """The least. If any float is NaN, so is the result (IEEE 754-2019 minimum). That of Python's
    integers is one of them."""
    return _extreme("minimum", a, b, *more, fastmath=fastmath)


def maxnumf(a: Any, b: Any, *more: Any, fastmath: Flags = None) -> Scalar:
    """The greatest of the operands that are not NaN; NaN if all are."""
    return _extreme("maxnumf", a, b, *more, fastmath=fastmath)


def minnumf(a: Any, b: Any, *more: Any, fastmath: Flags = None) -> Scalar:
    """The least of the operands that are not NaN; NaN if all are."""
    return _extreme("minnumf", a, b, *more, fastmath=fastmath)


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` if the condition is true, else `b`. Both are evaluated, whereas a conditional expression
    evaluates only one."""
    if isinstance(condition, (bool, int)):
        return a if condition else b
    builder = tracing.current("fx.where")
    if not isinstance(condition, Scalar) or not condition.dtype.is_bool:
        tracing.refuse(
            f"the condition of fx.where must be a bool, not {describe(condition)}",
            "compare it, as in x != 0",
        )
    dtype = meet("where", a, b)
    if builder.host:
        dtype = (
            I64
            if not dtype.is_float
            else tracing.refuse("the host function computes with integers only")
        )
    x, y = (builder.ssa(convert(operand, dtype)) for operand in (a, b))
    return Scalar(dtype, builder.one("arith.select", dtype.ir, builder.ssa(condition), x, y))


def ceildiv(a: Any, b: Any) -> Any:
    """a / b rounded up, for integers."""
    if not _is_typed((a, b)):
        return -(-a // b)
    builder = tracing.current("fx.ceildiv")
    dtype = meet("ceildiv", a, b)
    checked(check_computes, dtype)
    if not dtype.is_integer:
        tracing.refuse(f"fx.ceildiv takes integers, not {describe(a)} and {describe(b)}")
    if builder.host:
        dtype = I64
    known = b.number if isinstance(b, Scalar) else b
    if known == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    x, y = (builder.ssa(convert(operand, dtype)) for operand in (a, b))
    return Scalar(dtype, integer_ops.ceildiv(builder, x, y, dtype))
