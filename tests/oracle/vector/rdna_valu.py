"""Vector ALU instructions that are new on gfx11 and gfx12: a table like integer.py's.

Written from the RDNA3 and RDNA4 ISA manuals. 16-bit results preserve the register's other half.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracle.arithmetic import floats
from oracle.vector.floating import fma, normalize, pack
from oracle.vector.table import Op

u8, u16, u32 = np.uint8, np.uint16, np.uint32
i16, i32, f32 = np.int16, np.int32, np.float32

TABLE: dict[str, Op] = {}


def define(names: str, signature: str, function: Callable, **options) -> None:
    result, _, sources = signature.partition(":")
    keeps = result.endswith("16")
    for name in names.split():
        row = Op(result, tuple(sources.split()), function, keeps_high=keeps, **options)
        TABLE["v_" + name] = row


define("mov_b16", "b16: b16", lambda a: a)
define("not_b16", "b16: b16", lambda a: ~a)
define("and_b16", "b16: b16 b16", lambda a, b: a & b)
define("or_b16", "b16: b16 b16", lambda a, b: a | b)
define("xor_b16", "b16: b16 b16", lambda a, b: a ^ b)
define("xor3_b32", "b32: b32 b32 b32", lambda a, b, c: a ^ b ^ c)
define("cvt_i32_i16", "i32: i16", lambda a: a.astype(i32))
define("cvt_u32_u16", "u32: u16", lambda a: a.astype(u32))

for _t in ("u32", "i32"):
    _three = f"{_t}: {_t} {_t} {_t}"
    define(f"maxmin_{_t}", _three, lambda a, b, c: np.minimum(np.maximum(a, b), c))
    define(f"minmax_{_t}", _three, lambda a, b, c: np.maximum(np.minimum(a, b), c))


def max_then_min(a, b, c, ieee):
    return floats.minimum(floats.maximum(a, b, ieee), c, ieee)


def min_then_max(a, b, c, ieee):
    return floats.maximum(floats.minimum(a, b, ieee), c, ieee)


def minimum(a, b):
    """IEEE 754-2019's minimum, which propagates NaN, by the three-source one."""
    return floats.minimum3(a, b, b)


def maximum(a, b):
    return floats.maximum3(a, b, b)


for _t in ("f16", "f32"):
    _two, _three = f"{_t}: {_t} {_t}", f"{_t}: {_t} {_t} {_t}"
    define(f"maxmin_{_t} maxmin_num_{_t}", _three, max_then_min, ieee=True)
    define(f"minmax_{_t} minmax_num_{_t}", _three, min_then_max, ieee=True)
    define(f"minimum3_{_t}", _three, floats.minimum3)
    define(f"maximum3_{_t}", _three, floats.maximum3)
    define(f"maximumminimum_{_t}", _three, lambda a, b, c: minimum(maximum(a, b), c))
    define(f"minimummaximum_{_t}", _three, lambda a, b, c: maximum(minimum(a, b), c))
for _t in ("f16", "f32", "f64"):
    define(f"minimum_{_t}", f"{_t}: {_t} {_t}", minimum)
    define(f"maximum_{_t}", f"{_t}: {_t} {_t}", maximum)

define("fmac_f16", "f16: f16 f16 f16", fma, tied=True)
define("fmamk_f16 fmaak_f16", "f16: f16 f16 f16", fma)


def fma_zero(a, b, c):
    """The DX9 rule: zero times anything is zero."""
    return np.where((a == 0) | (b == 0), c, fma(a, b, c))


define("fma_dx9_zero_f32", "f32: f32 f32 f32", fma_zero)
define("fmac_dx9_zero_f32", "f32: f32 f32 f32", fma_zero, tied=True)


def bytes_of_halves(x):
    """V_SAT_PK_U8_I16: saturates each signed half of a dword to a byte."""
    low, high = (x & u32(0xFFFF)).astype(u16).view(i16), (x >> u32(16)).astype(u16).view(i16)
    return np.clip(low, 0, 255).astype(u16) | np.clip(high, 0, 255).astype(u16) << u16(8)


define("sat_pk_u8_i16", "b16: b32", bytes_of_halves)
define("cvt_norm_i16_f16", "i16: f16", lambda x: normalize(x, 32767, i16))
define("cvt_norm_u16_f16", "u16: f16", lambda x: normalize(x, 65535, u16))
for _letter, _kind in (("i", i16), ("u", u16)):
    define(
        f"cvt_pk_{_letter}16_f32",
        "b32: f32 f32",
        lambda a, b, k=_kind: pack(
            floats.to_integer(a, k).view(u16), floats.to_integer(b, k).view(u16)
        ),
    )
