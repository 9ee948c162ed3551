"""The common type of two numbers, as FlyDSL documents it.

- A Python number has a type: bool, Int32 (Int64 if it does not fit), Float32.
- Two integers: the wider one; of one width, the unsigned one.
- An integer and a float: a float at least as wide as both (i64 with f32: f64).
- Two floats: the wider one; Float16 and BFloat16 together give Float32.
- Arithmetic on bools is that of Int32.
"""

from __future__ import annotations

from fly_trace.core import tracing
from fly_trace.values.dtypes import BOOL, F16, F32, F64, I32, DType

from fly.flydsl.numbers.types import is_computed

ARITHMETIC = frozenset(("add", "sub", "mul", "truediv", "floordiv", "mod"))
BITWISE = frozenset(("and", "or", "xor", "lshift", "rshift"))
_BY_WIDTH = {16: F16, 32: F32, 64: F64}


def widened(dtype: DType, least: int) -> DType:
    """The narrowest float of at least `least` bits that holds `dtype`."""
    if dtype.bits >= least:
        return dtype
    return next((_BY_WIDTH[width] for width in (32, 64) if width >= least), F64)


def common(a: DType, b: DType) -> DType:
    """The common type of two types."""
    if a is b:
        return a
    if a.is_float and b.is_float:
        wide = a if a.bits > b.bits else b
        if a.bits != b.bits and wide.bits >= 16:
            return wide
        if a.bits == b.bits == 16:
            return F32
        tracing.refuse(f"{a.name} and {b.name} have no common type", "convert one of them")
    if a.is_float or b.is_float:
        one, other = (a, b) if a.is_float else (b, a)
        return widened(one, other.bits)
    if (a.kind == "uint") == (b.kind == "uint"):
        return a if a.bits >= b.bits else b
    unsigned, signed = (a, b) if a.kind == "uint" else (b, a)
    return unsigned if unsigned.bits >= signed.bits else signed


def operand(operation: str, dtype: DType) -> DType:
    """What an operand's type is for an operation."""
    return I32 if dtype is BOOL and operation in ARITHMETIC else dtype


def of_operation(operation: str, a: DType, b: DType) -> DType:
    """The type that both operands of an operation are converted to."""
    found = common(operand(operation, a), operand(operation, b))
    if operation in BITWISE and found.is_float:
        tracing.refuse(f"a bitwise operation takes integers, not {found.name}")
    if not is_computed(found):
        tracing.refuse(
            f"{found.name} is a type for storage, without arithmetic",
            "convert it: x.to(fx.Float32)",
        )
    return found
