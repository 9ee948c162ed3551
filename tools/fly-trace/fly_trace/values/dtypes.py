"""The element types, and the one table of how they mix.

A typed value meets a typed value: PROMOTION says the result's type. A typed value meets a Python
number: the number is weak, it takes the value's type where its kind can (`weak`). So `x_f32 * 2.0`
stays f32 and `i_i32 + 1` stays i32. A number that doesn't fit is refused, never wrapped.

Where the table differs from NumPy, it does so on purpose:
 - an integer that meets a float takes the float's type (NumPy: i32 with f32 is f64), because f64
   is slow on most GPUs and never what a kernel's author meant;
 - the default float is f32 (NumPy: f64): int / int and i32 * 2.0 are f32, as in PyTorch;
 - u64 with a signed integer is refused (NumPy: f64, which loses bits silently);
 - bf16, which NumPy lacks: with f16 it is f32.

Types narrower than these (STORED) are formats of memory and of matrix instructions: values of them
are loaded, stored, moved and converted, and nothing is computed in them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fly_common.quoting import quoted
from fly_numerics.element_types import ELEMENT_TYPES, ElementType
from fly_numerics.small_floats import FORMATS


class PromotionError(TypeError):
    """Two types that don't mix, or a Python number that doesn't fit."""


@dataclass(frozen=True, slots=True)
class DType:
    """An element type. Called, it converts: `fx.Float32(x)`. `kind` is bool, int, uint or float."""

    name: str  # f32, as in signatures
    title: str  # Float32, as in kernels
    kind: str
    bits: int

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_narrow(self) -> bool:
        """Whether nothing is computed in it: a float of 8 bits or less, an integer of 4."""
        return self.name in STORED

    @property
    def is_packed(self) -> bool:
        """Whether several share a byte of memory. (A bool has one of its own.)"""
        return self.is_narrow and self.bits < 8

    @property
    def is_signed(self) -> bool:
        return self.kind != "uint"

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def bytes(self) -> int:
        """What an element alone takes in memory; of less than 8 bits, several share a byte."""
        return max(1, self.bits // 8)

    def bytes_of(self, count: Any) -> Any:
        """What `count` elements that follow each other take in memory; a number or a Scalar."""
        return -(-count * self.bits // 8) if self.is_packed else count * self.bytes

    @property
    def ir(self) -> str:
        """The MLIR type of a value in registers; integers are signless."""
        return self.name if self.is_float else f"i{self.bits}"

    @property
    def memory(self) -> str:
        """The MLIR type of an element in memory: a bool is a byte."""
        return "i8" if self.is_bool else self.ir

    @property
    def range(self) -> tuple[int, int]:
        """The least and greatest integer."""
        if self.kind == "int":
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1

    if TYPE_CHECKING:
        # Made in `operators`.
        def __call__(self, value: Any) -> Any: ...

    def __instancecheck__(self, value: Any) -> bool:
        return getattr(value, "dtype", None) is self

    def __repr__(self) -> str:
        return f"fx.{self.title}"

    def __reduce__(self) -> Any:
        return named, (self.name,)


# The least magnitude that rounds to infinity, by type.
OVERFLOW = {"f16": 65520.0, "bf16": 3.3961775292304957e38, "f32": 3.4028235677973366e38}

_TITLES = {"int": "Int", "uint": "Uint", "float": "Float"}


def _title(row: ElementType) -> str:
    """The name in kernels, which is FlyDSL's: Float32, BFloat16, Uint8, Float8E4M3FN."""
    if row.kind == "bool":
        return "Boolean"
    if row.name == "bf16":
        return "BFloat16"
    return _TITLES[row.kind] + row.name[1:]


def _rows(computes: bool) -> tuple[DType, ...]:
    return tuple(
        DType(row.name, _title(row), row.kind, row.bits)
        for row in ELEMENT_TYPES.values()
        if row.computes == computes
    )


_TYPES = _rows(computes=True)
# Those that are computed with.
DTYPES = {dtype.name: dtype for dtype in _TYPES}
BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64 = _TYPES
STORED = {dtype.name: dtype for dtype in _rows(computes=False)}


# All types by their short names.
EVERY = DTYPES | STORED


def named(name: str) -> DType:
    """The type of that short name."""
    return EVERY[name]


# THE promotion table. `----` is refused. docs/language.md shows it; a test holds both together.
PROMOTION_TEXT = """
       bool i8   i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64
 bool  bool i8   i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64
 i8    i8   i8   i16  i32  i64  i16  i32  i64  ---- f16  bf16 f32  f64
 i16   i16  i16  i16  i32  i64  i16  i32  i64  ---- f16  bf16 f32  f64
 i32   i32  i32  i32  i32  i64  i32  i32  i64  ---- f16  bf16 f32  f64
 i64   i64  i64  i64  i64  i64  i64  i64  i64  ---- f16  bf16 f32  f64
 u8    u8   i16  i16  i32  i64  u8   u16  u32  u64  f16  bf16 f32  f64
 u16   u16  i32  i32  i32  i64  u16  u16  u32  u64  f16  bf16 f32  f64
 u32   u32  i64  i64  i64  i64  u32  u32  u32  u64  f16  bf16 f32  f64
 u64   u64  ---- ---- ---- ---- u64  u64  u64  u64  f16  bf16 f32  f64
 f16   f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f32  f32  f64
 bf16  bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32  bf16 f32  f64
 f32   f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64
 f64   f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64
"""


def _table(text: str) -> dict[tuple[DType, DType], DType | None]:
    head, *rows = (line.split() for line in text.strip().splitlines())
    return {
        (DTYPES[row], DTYPES[column]): DTYPES.get(cell)
        for row, *cells in rows
        for column, cell in zip(head, cells, strict=True)
    }


PROMOTION = _table(PROMOTION_TEXT)


def promote(a: DType, b: DType) -> DType:
    """The type of an operation on `a` and `b`. PromotionError where the table refuses."""
    if a is b:
        return a
    check_computes(a, b)
    result = PROMOTION[a, b]
    if result is None:
        raise PromotionError(
            f"{a.name} and {b.name} have no common type that can represent every value;"
            " convert one of them, as in fx.Int64(x)"
        )
    return result


def check_computes(*dtypes: DType) -> None:
    """PromotionError if nothing is computed in one of them."""
    for dtype in dtypes:
        if dtype.is_narrow:
            wide = "Float32" if dtype.is_float else "Int32"
            raise PromotionError(
                f"{dtype.name} is a storage-only type without arithmetic;"
                f" convert it, as in x.to(fx.{wide})"
            )


def rounded(number: float, dtype: DType) -> float:
    """The float nearest to `number` that `dtype` holds (ties to even)."""
    if small := FORMATS.get(dtype.name):
        code = small.encode(number)
        return float(number) if code is None else small.decode(code)
    if dtype.name == "f64" or number != number or abs(number) == float("inf"):
        return float(number)
    if dtype.name == "bf16":
        low = struct.unpack("<Q", struct.pack("<d", number))[0]
        # A double has 52 fraction bits, a bf16 seven; subnormals (below 2**-126) keep fewer.
        if abs(number) < 2.0**-126:
            return round(number * 2.0**133) * 2.0**-133
        low += (1 << 44) - 1 + (low >> 45 & 1)
        return struct.unpack("<d", struct.pack("<Q", low >> 45 << 45))[0]
    code = "<f" if dtype.name == "f32" else "<e"
    return struct.unpack(code, struct.pack(code, number))[0]


def default(number: bool | int | float) -> DType:
    """The type of a Python number that meets nothing typed: bool, i32 (i64 where it must), f32."""
    if isinstance(number, bool):
        return BOOL
    if isinstance(number, int):
        for dtype in (I32, I64):
            low, high = dtype.range
            if low <= number <= high:
                return dtype
        raise PromotionError(f"{quoted(number)} doesn't fit in 64 bits")
    return F32


def weak(number: bool | int | float, dtype: DType) -> DType:
    """The type of an operation on a Python number and a value of `dtype`. PromotionError where
    the number doesn't fit."""
    if isinstance(number, bool):
        return dtype
    if isinstance(number, int):
        if dtype.is_bool:
            return default(number)
        check_fits(number, dtype)
        return dtype
    if not dtype.is_float:
        return F32
    check_fits(number, dtype)
    return dtype


def check_fits(number: bool | int | float, dtype: DType) -> None:
    """PromotionError unless `dtype` can hold the number (a float may round, not overflow)."""
    if small := FORMATS.get(dtype.name):
        if small.encode(float(number)) is None:
            raise PromotionError(f"{quoted(number)} doesn't fit in {dtype.name}")
    elif dtype.is_float:
        limit = OVERFLOW.get(dtype.name, 2**1024)
        finite = isinstance(number, int) or abs(number) < float("inf")
        if finite and abs(number) >= limit:
            raise PromotionError(
                f"{quoted(number)} doesn't fit in {dtype.name}: it would be infinite"
            )
    elif isinstance(number, float):
        raise PromotionError(f"{quoted(number)} is a float, but {dtype.name} is an integer type")
    elif dtype.is_bool:
        if number not in (0, 1):
            raise PromotionError(f"{quoted(number)} is not a bool")
    else:
        low, high = dtype.range
        if not low <= number <= high:
            raise PromotionError(f"{quoted(number)} doesn't fit in {dtype.name} ({low} to {high})")
