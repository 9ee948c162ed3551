"""The promotion table: the type of an operation on values of two types.

Scalars, vectors, elements of tensors, typed constants, the sides of `if`, `and`, `or` and
`fx.where`, and stores all use it. docs/types.md shows it, with every pair that differs from FlyDSL,
NumPy and torch, and why.

TYPES has the common type of two typed operands. OPERATIONS says what an operator makes of it. A
Python number is weak: it takes the type of the other operand if its kind allows that (`weak`). For
example, `x_f32 * 2.0` stays f32 and `i_i32 + 1` stays i32. A number that does not fit is refused,
never wrapped.

Comparisons need no common type: they compare the numbers, exactly, for every pair (`comparison`).
"""

from __future__ import annotations

from typing import Any

from fly_common.quoting import quoted
from fly_common.record import record

from fly_trace.values.dtypes import (
    BOOL,
    DTYPES,
    F32,
    I32,
    I64,
    DType,
    PromotionError,
    check_fits,
)

# 1. Two integers give the smallest type that represents all values of both. `----` is refused:
#    there is none of up to 64 bits, or of 128 bits.
# 2. An integer and a float give a float that is at least as wide as the integer, up to f32; f64
#    only results from f64, or from u128, whose greatest values are infinite in f32.
#    (u16 and f16 are f32: 65535 is infinite in f16.)
# 3. Two floats give the smallest type that represents all values of both.
# 4. A bool gives the other type.
TYPES_TEXT = """
       bool i8   i16  i32  i64  i128 u8   u16  u32  u64  u128 f16  bf16 f32  f64
 bool  bool i8   i16  i32  i64  i128 u8   u16  u32  u64  u128 f16  bf16 f32  f64
 i8    i8   i8   i16  i32  i64  i128 i16  i32  i64  ---- ---- f16  bf16 f32  f64
 i16   i16  i16  i16  i32  i64  i128 i16  i32  i64  ---- ---- f16  bf16 f32  f64
 i32   i32  i32  i32  i32  i64  i128 i32  i32  i64  ---- ---- f32  f32  f32  f64
 i64   i64  i64  i64  i64  i64  i128 i64  i64  i64  ---- ---- f32  f32  f32  f64
 i128  i128 i128 i128 i128 i128 i128 i128 i128 i128 i128 ---- f32  f32  f32  f64
 u8    u8   i16  i16  i32  i64  i128 u8   u16  u32  u64  u128 f16  bf16 f32  f64
 u16   u16  i32  i32  i32  i64  i128 u16  u16  u32  u64  u128 f32  bf16 f32  f64
 u32   u32  i64  i64  i64  i64  i128 u32  u32  u32  u64  u128 f32  f32  f32  f64
 u64   u64  ---- ---- ---- ---- i128 u64  u64  u64  u64  u128 f32  f32  f32  f64
 u128  u128 ---- ---- ---- ---- ---- u128 u128 u128 u128 u128 f64  f64  f64  f64
 f16   f16  f16  f16  f32  f32  f32  f16  f32  f32  f32  f64  f16  f32  f32  f64
 bf16  bf16 bf16 bf16 f32  f32  f32  bf16 bf16 f32  f32  f64  f32  bf16 f32  f64
 f32   f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64  f32  f32  f32  f64
 f64   f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64
"""

# What the operands of an operator become if their common type is bool, an integer or a float.
# `same`: that type. `----`: refused. `left`: the left operand's type if the table has no common
# one, because an amount is not part of the result. `exact`: see `comparison`.
OPERATIONS_TEXT = """
 add sub mul floordiv mod divmod pow  i32   same   same
 truediv                              f32   f32    same
 lshift rshift                        i32   left   ----
 and or xor                           bool  same   ----
 lt le gt ge eq ne                    bool  exact  exact
 neg pos abs                          i32   same   same
 invert                               bool  same   ----
 minimum maximum where if             bool  same   same
"""


@record
class Operation:
    """A row of OPERATIONS."""

    bools: str
    integers: str
    floats: str


def _types(text: str) -> dict[tuple[DType, DType], DType | None]:
    head, *rows = (line.split() for line in text.strip().splitlines())
    return {
        (DTYPES[row], DTYPES[column]): DTYPES.get(cell)
        for row, *cells in rows
        for column, cell in zip(head, cells, strict=True)
    }


def _operations(text: str) -> dict[str, Operation]:
    found = {}
    for line in text.strip().splitlines():
        *names, bools, integers, floats = line.split()
        found.update({name: Operation(bools, integers, floats) for name in names})
    return found


TYPES = _types(TYPES_TEXT)
OPERATIONS = _operations(OPERATIONS_TEXT)


def promote(a: DType, b: DType) -> DType:
    """The common type of `a` and `b`. Raises PromotionError if the table refuses them."""
    if a is b:
        return a
    check_computes(a, b)
    result = TYPES.get((a, b))
    if result is None:
        raise PromotionError(
            f"{a.name} and {b.name} have no common type that can represent every value;"
            f" convert one of them, as in fx.{(a if a.is_signed else b).title}(x)"
        )
    return result


def weak(number: bool | int | float, dtype: DType) -> DType:
    """The common type of a Python number and a value of `dtype`. Raises PromotionError if the
    number does not fit."""
    if isinstance(number, bool):
        return dtype
    if isinstance(number, int):
        if dtype.is_bool:
            return default(number)
        check_fits(number, dtype)
        return dtype
    if not dtype.is_float:
        return promote(dtype, F32)
    check_fits(number, dtype)
    return dtype


def default(number: bool | int | float) -> DType:
    """The type of a Python number without a typed operand: bool, i32 (i64 if it does not fit),
    f32."""
    if isinstance(number, bool):
        return BOOL
    if isinstance(number, int):
        for dtype in (I32, I64):
            low, high = dtype.range
            if low <= number <= high:
                return dtype
        raise PromotionError(f"{quoted(number)} doesn't fit in 64 bits")
    return F32


def common(a: Any, b: Any) -> DType:
    """The common type of two operands, each a number or a value with a `dtype`."""
    x, y = getattr(a, "dtype", None), getattr(b, "dtype", None)
    if x is not None:
        if x is y:
            return x
        return weak(b, x) if y is None else promote(x, y)
    return promote(default(a), default(b)) if y is None else weak(a, y)


def shifted(a: Any, b: Any) -> DType:
    """The type of `a << b`: an amount need not have a common type with the value."""
    x, y = getattr(a, "dtype", None), getattr(b, "dtype", None)
    known = getattr(b, "number", b)
    if x is not None and isinstance(known, int):
        check_computes(x)
        return x if y is None else TYPES[x, y] or x
    if x is not None and y is not None and x.is_integer and y.is_integer:
        check_computes(x, y)
        return TYPES[x, y] or x
    return common(a, b)


def operated(operation: str, dtype: DType) -> DType | None:
    """What operands of the common type `dtype` become for an operation, or None if it is
    refused."""
    row = OPERATIONS[operation]
    cell = row.bools if dtype.is_bool else row.floats if dtype.is_float else row.integers
    if cell == "f32":
        return promote(dtype, F32)
    return None if cell == "----" else DTYPES.get(cell, dtype)


def check_computes(*dtypes: DType) -> None:
    """Raises PromotionError if there is no arithmetic in one of them."""
    for dtype in dtypes:
        if dtype.is_narrow:
            wide = "Float32" if dtype.is_float else "Int32"
            raise PromotionError(
                f"{dtype.name} is a storage-only type without arithmetic;"
                f" convert it, as in x.to(fx.{wide})"
            )
