"""Keys of any type as unsigned integers in the same order."""

from __future__ import annotations

from typing import Any

from fly_trace import expr as fx
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.values.conversion import scalar
from fly_trace.values.dtypes import DType
from fly_trace.values.scalars import Scalar

_WORDS = {8: fx.Uint8, 16: fx.Uint16, 32: fx.Uint32, 64: fx.Uint64}


def encoded(key: Any, descending: bool, what: str) -> Scalar:
    """An unsigned integer that orders like the key. -0.0 is less than 0.0; every NaN becomes one,
    which is greater than all numbers. With `descending`, the order is reversed."""
    key = scalar(key, f"a key of {what}")
    dtype = key.dtype
    if dtype.is_narrow or dtype.bits > 64:
        tracing.refuse(f"{what} can't order {describe(key)}")
    if dtype.is_bool:
        bits = key.to(fx.Uint8)
    elif dtype.is_float:
        bits = _of_float(key)
    else:
        bits = key.bitcast(_WORDS[dtype.bits])
        if dtype.kind == "int":
            bits = bits ^ (1 << (dtype.bits - 1))
    return ~bits if descending else bits


def _of_float(key: Scalar) -> Scalar:
    width = key.dtype.bits
    word, top = _WORDS[width], 1 << (width - 1)
    bits = key.bitcast(word)
    flipped = fx.where((bits & top) != 0, ~bits, bits | top)
    return fx.where(fx.isnan(key), word(_nan(key.dtype) | top), flipped)


def _nan(dtype: DType) -> int:
    """The bits of the quiet NaN."""
    return {"f16": 0x7E00, "bf16": 0x7FC0, "f32": 0x7FC0_0000, "f64": 0x7FF8 << 48}[dtype.name]


def decoded(bits: Any, dtype: DType, descending: bool) -> Any:
    """The key that `encoded` made `bits` of."""
    bits = ~bits if descending else bits
    if dtype.is_bool:
        return bits != 0
    top = 1 << (dtype.bits - 1)
    if dtype.is_float:
        return fx.where((bits & top) != 0, bits ^ top, ~bits).bitcast(dtype)
    return (bits ^ top).bitcast(dtype) if dtype.kind == "int" else bits
