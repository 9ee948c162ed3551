"""Vector instructions on floats: arithmetic, transcendental functions, conversions."""

from __future__ import annotations

import numpy as np

from oracle.arithmetic import floats
from oracle.arithmetic.floats import fma
from oracle.vector.integer import byte
from oracle.vector.table import define

u16, u32 = np.uint16, np.uint32
i16, i32, i64 = np.int16, np.int32, np.int64
f16, f32, f64 = np.float16, np.float32, np.float64

# Float arithmetic

for t in ("f16", "f32", "f64"):
    two, three = f"{t}: {t} {t}", f"{t}: {t} {t} {t}"
    define(f"add_{t}", two, lambda a, b: a + b)
    define(f"mul_{t}", two, lambda a, b: a * b)
    define(f"min_{t}", two, floats.minimum, ieee=True)
    define(f"max_{t}", two, floats.maximum, ieee=True)
    define(f"fma_{t}", three, fma, keeps_high=True)
    define(f"trunc_{t}", f"{t}: {t}", lambda a: floats.quiet(np.trunc(a)))
    define(f"ceil_{t}", f"{t}: {t}", lambda a: floats.quiet(np.ceil(a)))
    define(f"floor_{t}", f"{t}: {t}", lambda a: floats.quiet(np.floor(a)))
    define(f"rndne_{t}", f"{t}: {t}", lambda a: floats.quiet(np.rint(a)))
    define(f"div_fixup_{t}", three, floats.divide_fixup, keeps_high=True)
for t in ("f16", "f32"):
    two, three = f"{t}: {t} {t}", f"{t}: {t} {t} {t}"
    define(f"sub_{t}", two, lambda a, b: a - b)
    define(f"subrev_{t}", two, lambda a, b: b - a)
    define(
        f"min3_{t}",
        three,
        ieee=True,
        keeps_high=True,
        function=lambda a, b, c, ieee: floats.minimum(floats.minimum(a, b, ieee), c, ieee),
    )
    define(
        f"max3_{t}",
        three,
        ieee=True,
        keeps_high=True,
        function=lambda a, b, c, ieee: floats.maximum(floats.maximum(a, b, ieee), c, ieee),
    )
    define(f"minimum3_{t}", three, floats.minimum3)
    define(f"maximum3_{t}", three, floats.maximum3)
    define(f"med3_{t}", three, floats.median, ieee=True, keeps_high=True)
define("fmac_f32", "f32: f32 f32 f32", fma, tied=True)
define("fmac_f64", "f64: f64 f64 f64", fma, tied=True)
define("fmamk_f32 fmaak_f32", "f32: f32 f32 f32", fma)
for name in ("mac", "madmk", "madak", "mad"):
    for t in ("f16", "f32"):
        # Two roundings. The f32 forms flush denormals in any mode (checked by the machine).
        # LLVM's zeroesHigh16BitsOfDest ("derived from experimentation"): the f16 ones preserve the
        # upper half on gfx9.
        define(
            f"{name}_{t}",
            f"{t}: {t} {t} {t}",
            lambda a, b, c: a * b + c,
            tied=name == "mac",
            keeps_high=True,
        )


def legacy_product(a, b):
    return np.where((a == 0) | (b == 0), f32(0), a * b)


define("mul_legacy_f32", "f32: f32 f32", legacy_product)
define("mad_legacy_f32", "f32: f32 f32 f32", lambda a, b, c: legacy_product(a, b) + c)


def fraction(x):
    """x - floor(x), limited to the largest number below 1."""
    below_one = np.nextafter(x.dtype.type(1), x.dtype.type(0))
    part = x - np.floor(x)
    return floats.quiet(np.where(part >= 1, below_one, part))


def mantissa(x):
    return floats.quiet(np.where(np.isfinite(x), np.frexp(x)[0], x).astype(x.dtype))


def mantissa_exponent(x):
    return np.where(np.isfinite(x), np.frexp(x)[1], 0)


for t in ("f16", "f32", "f64"):
    define(f"fract_{t}", f"{t}: {t}", fraction)
    define(f"frexp_mant_{t}", f"{t}: {t}", mantissa)
define("frexp_exp_i32_f32", "i32: f32", mantissa_exponent)
define("frexp_exp_i32_f64", "i32: f64", mantissa_exponent)
define("frexp_exp_i16_f16", "i16: f16", mantissa_exponent)
define("ldexp_f32", "f32: f32 i32", floats.ldexp)
define("ldexp_f64", "f64: f64 i32", floats.ldexp)
define("ldexp_f16", "f16: f16 i16", floats.ldexp)

# Transcendental: the manual guarantees about 1 ULP. These are correctly rounded, or nearly.


def through_double(function):
    return lambda x: function(x.astype(f64)).astype(x.dtype)


def turns(function):
    """A function of an angle in turns. Quarter turns are exact; the manual's domain is ±256
    turns."""

    def of(x):
        angle = x.astype(f64)
        part = angle - np.rint(angle)  # exact, and small if the angle is
        exact = np.isfinite(angle) & (part * 4 == np.rint(part * 4))
        quarter = np.where(exact, part * 4, 0)
        result = np.where(exact, np.rint(function(np.pi / 2 * quarter)), function(2 * np.pi * part))
        return result.astype(x.dtype)

    return of


for t in ("f16", "f32"):
    define(f"exp_{t}", f"{t}: {t}", through_double(np.exp2))
    define(f"log_{t}", f"{t}: {t}", through_double(np.log2))
    define(f"sin_{t}", f"{t}: {t}", turns(np.sin))
    define(f"cos_{t}", f"{t}: {t}", turns(np.cos))
define("exp_legacy_f32", "f32: f32", through_double(np.exp2))
define("log_legacy_f32", "f32: f32", through_double(np.log2))
for t in ("f16", "f32", "f64"):
    define(f"rcp_{t}", f"{t}: {t}", lambda x: x.dtype.type(1) / x)
    define(f"sqrt_{t}", f"{t}: {t}", np.sqrt)
    define(
        f"rsq_{t}", f"{t}: {t}", lambda x: (1 / np.sqrt(x.astype(np.longdouble))).astype(x.dtype)
    )
define("rcp_iflag_f32", "f32: f32", lambda x: f32(1) / x)

# Conversions

define("cvt_f32_i32", "f32: i32", lambda x: x.astype(f32))
define("cvt_f32_u32", "f32: u32", lambda x: x.astype(f32))
define("cvt_f64_i32", "f64: i32", lambda x: x.astype(f64))
define("cvt_f64_u32", "f64: u32", lambda x: x.astype(f64))
define("cvt_f16_i16", "f16: i16", lambda x: x.astype(f16))
define("cvt_f16_u16", "f16: u16", lambda x: x.astype(f16))
define("cvt_f32_f16", "f32: f16", lambda x: x.astype(f32))
define("cvt_f16_f32", "f16: f32", lambda x: x.astype(f16))
define("cvt_f64_f32", "f64: f32", lambda x: x.astype(f64))
define("cvt_f32_f64", "f32: f64", lambda x: x.astype(f32))
for target, name in ((i32, "i32"), (u32, "u32")):
    for t in ("f32", "f64"):
        define(
            f"cvt_{name}_{t}", f"{name}: {t}", lambda x, target=target: floats.to_integer(x, target)
        )
define("cvt_i16_f16", "i16: f16", lambda x: floats.to_integer(x, i16))
define("cvt_u16_f16", "u16: f16", lambda x: floats.to_integer(x, u16))
for index in range(4):
    define(f"cvt_f32_ubyte{index}", "f32: u32", lambda x, k=index: byte(x, k).astype(f32))
define("cvt_rpi_i32_f32", "i32: f32", lambda x: floats.to_integer(np.floor(x + f32(0.5)), i32))
define("cvt_flr_i32_f32", "i32: f32", lambda x: floats.to_integer(np.floor(x), i32))
define(
    "cvt_off_f32_i4",
    "f32: u32",
    lambda x: (((x & u32(15)) ^ u32(8)).astype(f32) - f32(8)) / f32(16),
)


def pack(low, high):
    return low.astype(u16).astype(u32) | high.astype(u16).astype(u32) << u32(16)


def pack_floats(low, high):
    return pack(low.view(u16), high.view(u16))


def normalize(x, scale, dtype):
    return floats.to_integer(
        np.rint(np.clip(x.astype(f64), -1 if dtype == i16 else 0, 1) * scale), dtype
    )


define("pack_b32_f16", "b32: f16 f16", pack_floats)
define(
    "cvt_pkrtz_f16_f32",
    "b32: f32 f32",
    lambda a, b: pack_floats(
        floats.toward_zero(a.astype(f64), f16), floats.toward_zero(b.astype(f64), f16)
    ),
)
define(
    "cvt_pk_u16_u32",
    "b32: u32 u32",
    lambda a, b: pack(np.minimum(a, u32(65535)), np.minimum(b, u32(65535))),
)
define(
    "cvt_pk_i16_i32",
    "b32: i32 i32",
    lambda a, b: pack(np.clip(a, -32768, 32767), np.clip(b, -32768, 32767)),
)
for t in ("f32", "f16"):
    define(
        f"cvt_pknorm_i16_{t}",
        f"b32: {t} {t}",
        lambda a, b: pack(normalize(a, 32767, i16), normalize(b, 32767, i16)),
    )
    define(
        f"cvt_pknorm_u16_{t}",
        f"b32: {t} {t}",
        lambda a, b: pack(normalize(a, 65535, u16), normalize(b, 65535, u16)),
    )


def to_brain(x):
    """Converts float32 to bfloat16, to nearest even."""
    raw = x.view(u32)
    rounded = (raw + u32(0x7FFF) + ((raw >> u32(16)) & u32(1))) >> u32(16)
    return np.where(np.isnan(x), (raw >> u32(16)) | u32(0x40), rounded).astype(u16)


define("cvt_pk_bf16_f32", "b32: f32 f32", lambda a, b: pack(to_brain(a), to_brain(b)))


def half(x):
    return floats.quiet(x.astype(f16))


define("cvt_pk_f16_f32", "b32: f32 f32", lambda a, b: pack_floats(half(a), half(b)))
define("cvt_f32_bf16", "f32: b16", lambda x: (x.astype(u32) << u32(16)).view(f32))
define("cvt_norm_i16_f16", "i16: f16", lambda x: normalize(x, 32767, i16))
define("cvt_norm_u16_f16", "u16: f16", lambda x: normalize(x, 65535, u16))


def pack_byte(x, index, old):
    """V_CVT_PK_U8_F32: replaces a byte of old by a float, truncated and clamped to a byte."""
    shift = (index & u32(3)) * u32(8)
    value = np.clip(floats.to_integer(x, i32), 0, 255).astype(u32)
    return (old & ~(u32(255) << shift)) | value << shift


define("cvt_pk_u8_f32", "b32: f32 u32 u32", pack_byte)
define(
    "sat_pk_u8_i16",
    "b16: b32",
    lambda x: (
        np.clip(x.astype(u16).view(i16), 0, 255).astype(u16)
        | np.clip((x >> u32(16)).astype(u16).view(i16), 0, 255).astype(u16) << u16(8)
    ),
)
