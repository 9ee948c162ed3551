"""Integer clamp: "the result must be clamped to the largest and smallest representable value"
(LLVM, Syntax of AMDGPU Instruction Modifiers). Computes exact results in wide integers, and limits
them to the range.

Results that are always in range (minima and maxima) and operations that saturate anyway
(conversions) are unaffected by the modifier. Packed 16-bit floats are clamped to [0, 1], like other
floats. V_CMP's modifier is about exceptions.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from oracle.state.waves import DTYPES

i64, u32, u64 = np.int64, np.uint32, np.uint64
SAME = re.compile(
    r"v_(min|max|med)3?_[iu]16|v_(min3|max3|med3)_[iu]16|v_frexp_exp_i(16|32)_f\d+"
    r"|v_cvt_[iu](16|32)_f\d+|v_cvt_(flr|rpi|floor|nearest)_i32_f32|v_cvt_norm_[iu]16_f16"
    r"|v_cvt_pk(accum)?_u8_f32|v_cvt_pk_?norm_[iu]16_f(16|32)|v_cvt_pk_[iu]16_f32"
)
HALVES = re.compile(r"v_cvt_pk_?(rtz_)?f16_f32")


def _low_24(x: np.ndarray) -> np.ndarray:
    """Extends the low 24 bits with the operand's signedness."""
    low = x.astype(i64) & 0xFFFFFF
    return (low ^ 0x800000) - 0x800000 if x.dtype == np.int32 else low


def _field(x: np.ndarray, width: int, k: int) -> np.ndarray:
    return x.astype(i64) >> width * k & (1 << width) - 1


def _gaps(a: np.ndarray, b: np.ndarray, width: int, masked: bool = False) -> np.ndarray:
    """Sums all absolute differences of fields; masked: only where the second field is not zero."""
    total = np.zeros(np.broadcast_shapes(a.shape, b.shape), i64)
    for k in range(32 // width):
        x, y = _field(a, width, k), _field(b, width, k)
        total = total + np.where((y == 0) & masked, 0, np.abs(x - y))
    return total


def _windows(masked: bool) -> Callable:
    """Four sums of 16 bits."""

    def function(source, reference, addend):
        shape = np.broadcast_shapes(source.shape, reference.shape, addend.shape)
        result = np.zeros(shape, u64)
        for k in range(4):
            window = (source >> u64(8 * k)).astype(u32)
            start = (addend >> u64(16 * k) & u64(0xFFFF)).astype(i64)
            part = np.minimum(start + _gaps(window, reference, 8, masked), 0xFFFF)
            result |= part.astype(u64) << u64(16 * k)
        return result

    return function


def _add(a, b, c):
    return a.astype(i64) * b.astype(i64) + c.astype(i64)


def _mad_24(a, b, c):
    return _low_24(a) * _low_24(b) + c.astype(i64)


EXACT: dict[str, Callable] = {
    **{f"v_add_{t}": lambda a, b: a.astype(i64) + b for t in ("u32", "i32", "u16", "i16")},
    **{f"v_sub_{t}": lambda a, b: a.astype(i64) - b for t in ("u32", "i32", "u16", "i16")},
    **{f"v_subrev_{t}": lambda a, b: b.astype(i64) - a for t in ("u32", "u16")},
    **{f"v_mad_{name}": _add for name in ("u16", "i16", "legacy_u16", "legacy_i16")},
    **{f"v_mad_{name}": _add for name in ("u32_u16", "i32_i16")},
    **{f"v_mad_{name}": _mad_24 for name in ("u32_u24", "i32_i24")},
    **{f"v_mul_{name}": lambda a, b: _low_24(a) * _low_24(b) for name in ("u32_u24", "i32_i24")},
    "v_sad_u8": lambda a, b, c: _gaps(a, b, 8) + c,
    "v_sad_hi_u8": lambda a, b, c: (_gaps(a, b, 8) << 16) + c,
    "v_sad_u16": lambda a, b, c: _gaps(a, b, 16) + c,
    "v_sad_u32": lambda a, b, c: _gaps(a, b, 32) + c,
    "v_msad_u8": lambda a, b, c: _gaps(a, b, 8, masked=True) + c,
}
WHOLE: dict[str, Callable] = {
    "v_qsad_pk_u16_u8": _windows(False),
    "v_mqsad_pk_u16_u8": _windows(True),
}


def has(name: str) -> bool:
    return name in EXACT or name in WHOLE or bool(SAME.fullmatch(name) or HALVES.fullmatch(name))


def function(name: str, plain: Callable, kind: str) -> Callable | None:
    """Returns the function of an instruction of VALU with the modifier; None if unknown."""
    if name in WHOLE:
        return WHOLE[name]
    if name in EXACT:
        info = np.iinfo(DTYPES[kind])
        return lambda *values: np.clip(EXACT[name](*values), info.min, info.max)
    if HALVES.fullmatch(name):
        return lambda *values: _unit(plain(*values))
    return plain if SAME.fullmatch(name) else None


def _unit(word: np.ndarray) -> np.ndarray:
    """Clamps both halves to [0, 1]; NaN is 0, as under DX10_CLAMP."""
    halves = np.ascontiguousarray(word, u32)[..., None].view(np.float16)
    held = np.where(halves > 0, np.minimum(halves, np.float16(1)), np.float16(0))
    return np.ascontiguousarray(held.astype(np.float16)).view(u32)[..., 0]


def multiply_add(low: int, high: int) -> Callable:
    """V_MAD_U64_U32 and V_MAD_I64_I32; the mask is the same as without the modifier."""

    def run(a, b, c):
        exact = a.astype(object) * b.astype(object) + c.astype(object)
        held = np.minimum(np.maximum(exact, low), high)
        kind = u64 if low == 0 else i64
        return held.astype(kind), ((exact < low) | (exact > high)).astype(bool)

    return run
