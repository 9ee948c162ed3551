"""The element types, by the names that kernels use: FlyDSL's, and short ones as in signatures.

Type checkers see classes of values, so that `x: fx.Float32` and `isinstance(x, fx.Float32)` mean a
number of that type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fly_trace.values import dtypes
from fly_trace.values.dtypes import DType, Float, Integer, Numeric

if TYPE_CHECKING:
    from fly_trace.values.scalars import Scalar

    class Boolean(Scalar, Numeric, metaclass=DType): ...

    class Int4(Scalar, Integer, metaclass=DType): ...

    class Int8(Scalar, Integer, metaclass=DType): ...

    class Int16(Scalar, Integer, metaclass=DType): ...

    class Int32(Scalar, Integer, metaclass=DType): ...

    class Int64(Scalar, Integer, metaclass=DType): ...

    class Int128(Scalar, Integer, metaclass=DType): ...

    class Uint4(Scalar, Integer, metaclass=DType): ...

    class Uint8(Scalar, Integer, metaclass=DType): ...

    class Uint16(Scalar, Integer, metaclass=DType): ...

    class Uint32(Scalar, Integer, metaclass=DType): ...

    class Uint64(Scalar, Integer, metaclass=DType): ...

    class Uint128(Scalar, Integer, metaclass=DType): ...

    class Float16(Scalar, Float, metaclass=DType): ...

    class BFloat16(Scalar, Float, metaclass=DType): ...

    class Float32(Scalar, Float, metaclass=DType): ...

    class Float64(Scalar, Float, metaclass=DType): ...

    class Float8E4M3FN(Scalar, Float, metaclass=DType): ...

    class Float8E4M3FNUZ(Scalar, Float, metaclass=DType): ...

    class Float8E5M2(Scalar, Float, metaclass=DType): ...

    class Float8E5M2FNUZ(Scalar, Float, metaclass=DType): ...

    class Float8E8M0FNU(Scalar, Float, metaclass=DType): ...

    class Float6E2M3FN(Scalar, Float, metaclass=DType): ...

    class Float6E3M2FN(Scalar, Float, metaclass=DType): ...

    class Float4E2M1FN(Scalar, Float, metaclass=DType): ...

else:
    globals().update({dtype.title: dtype for dtype in dtypes.EVERY.values()})

# What addresses and counts: extents and strides are Int64 too. (FlyDSL's has 64 bits, unsigned.)
Index = Int64

i8, i16, i32, i64, i128 = Int8, Int16, Int32, Int64, Int128
u8, u16, u32, u64, u128 = Uint8, Uint16, Uint32, Uint64, Uint128
f16, bf16, f32, f64 = Float16, BFloat16, Float32, Float64

__all__ = [
    "BFloat16",
    "Boolean",
    "DType",
    "Float",
    "Float4E2M1FN",
    "Float6E2M3FN",
    "Float6E3M2FN",
    "Float8E4M3FN",
    "Float8E4M3FNUZ",
    "Float8E5M2",
    "Float8E5M2FNUZ",
    "Float8E8M0FNU",
    "Float16",
    "Float32",
    "Float64",
    "Index",
    "Int4",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "Integer",
    "Numeric",
    "Uint4",
    "Uint8",
    "Uint16",
    "Uint32",
    "Uint64",
    "Uint128",
    "bf16",
    "f16",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
]
