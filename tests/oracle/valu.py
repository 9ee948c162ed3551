"""What each vector ALU instruction computes, lane by lane: a table, written from the ISA manual.

`VALU[mnemonic] = Op("f32: f32 f32", function)`: the destination's type, the sources' types, and a
function of NumPy arrays of those types. Types: b/u/i/f and a width. Source modifiers, clamp, output
scale, DPP, SDWA and the writing of a partial register are the machine's business (vector.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracle import floats
from oracle.floats import fma

u8, u16, u32, u64 = np.uint8, np.uint16, np.uint32, np.uint64
i8, i16, i32, i64 = np.int8, np.int16, np.int32, np.int64
f16, f32, f64 = np.float16, np.float32, np.float64


@dataclass(frozen=True)
class Op:
    """`ieee`: the function takes the IEEE mode bit as a keyword. `tied`: the last source is the
    destination's old value. `high`: what a 16-bit result does to the register's upper half."""

    result: str
    sources: tuple[str, ...]
    function: Callable
    ieee: bool = False
    tied: bool = False
    keeps_high: bool = False


VALU: dict[str, Op] = {}


def define(names: str, signature: str, function: Callable, **options) -> None:
    result, _, sources = signature.partition(":")
    for name in names.split():
        VALU["v_" + name] = Op(result, tuple(sources.split()), function, **options)


def wide(x):
    return x.astype(i64)


def count_bits(x):
    return np.bitwise_count(x).astype(u32)


def leading_zeros(x):
    """Of uint32; 32 for 0."""
    # frexp's exponent is the number of significant bits: exact, as float64 holds 32 bits.
    return (32 - np.frexp(x.astype(f64))[1]).astype(u32)


def reverse_bits(x):
    raw = np.ascontiguousarray(x).view(u8).reshape(*x.shape, 4)
    flipped = np.packbits(np.unpackbits(raw, axis=-1), axis=-1, bitorder="little")
    return np.ascontiguousarray(flipped[..., ::-1]).view(u32).reshape(x.shape)


def find_first_one(x):
    lowest = x & (~x + u32(1))
    return np.where(x == 0, u32(0xFFFFFFFF), u32(31) - leading_zeros(lowest))


def find_first_high(x):
    return np.where(x == 0, u32(0xFFFFFFFF), leading_zeros(x))


def find_sign_change(x):
    folded = (x ^ (x.view(i32) >> 31).view(u32)).astype(u32)
    return np.where(folded == 0, u32(0xFFFFFFFF), leading_zeros(folded))


def byte(x, index):
    return (x >> u32(8 * index)) & u32(255)


# Moves and bit operations


def same(x):
    return x


define("mov_b32 accvgpr_read_b32 accvgpr_write_b32 accvgpr_mov_b32", "b32: b32", same)
define("mov_b64", "b64: b64", same)
define("not_b32", "b32: b32", lambda a: ~a)
define("and_b32", "b32: b32 b32", lambda a, b: a & b)
define("or_b32", "b32: b32 b32", lambda a, b: a | b)
define("xor_b32", "b32: b32 b32", lambda a, b: a ^ b)
define("xnor_b32", "b32: b32 b32", lambda a, b: ~(a ^ b))
define("bfrev_b32", "b32: b32", reverse_bits)
define("ffbh_u32", "b32: b32", find_first_high)
define("ffbl_b32", "b32: b32", find_first_one)
define("ffbh_i32", "b32: b32", find_sign_change)
define("bcnt_u32_b32", "u32: b32 u32", lambda a, b: count_bits(a) + b)
define("and_or_b32", "b32: b32 b32 b32", lambda a, b, c: (a & b) | c)
define("or3_b32", "b32: b32 b32 b32", lambda a, b, c: a | b | c)
define("bfi_b32", "b32: b32 b32 b32", lambda a, b, c: (a & b) | (~a & c))


def bit_field_mask(width, offset):
    return ((u32(1) << (width & u32(31))) - u32(1)) << (offset & u32(31))


def extract_unsigned(x, offset, width):
    return (x >> (offset & u32(31))) & ((u32(1) << (width & u32(31))) - u32(1))


def extract_signed(x, offset, width):
    width = (width & u32(31)).astype(i64)
    kept = wide(x >> (offset & u32(31)).view(i32)) & ((i64(1) << width) - 1)
    sign = np.where(width > 0, kept >> np.maximum(width - 1, 0) & 1, 0)
    return (kept - (sign << width)).astype(i32)


define("bfm_b32", "b32: b32 b32", bit_field_mask)
define("bfe_u32", "u32: u32 u32 u32", extract_unsigned)
define("bfe_i32", "i32: i32 u32 u32", extract_signed)


def align(high, low, shift):
    return ((high.astype(u64) << u64(32) | low) >> shift.astype(u64)).astype(u32)


define("alignbit_b32", "b32: b32 b32 b32", lambda a, b, c: align(a, b, c & u32(31)))
define("alignbyte_b32", "b32: b32 b32 b32", lambda a, b, c: align(a, b, (c & u32(3)) * u32(8)))


def permute_bytes(high, low, selector):
    """V_PERM_B32: 0-3 a byte of S1, 4-7 of S0, 8-11 a sign, 12 zero, 13 and more 0xff."""
    data = high.astype(u64) << u64(32) | low
    result = np.zeros(np.broadcast_shapes(data.shape, selector.shape), u32)
    for index in range(4):
        choice = byte(selector, index).astype(u64)
        plain = (data >> ((choice & u64(7)) * u64(8))).astype(u32) & u32(255)
        sign_bit = u64(15) + u64(16) * (choice & u64(3))
        sign = np.where((data >> sign_bit) & u64(1) != 0, u32(255), u32(0))
        value = np.select(
            [choice < 8, choice < 12, choice == 12], [plain, sign, u32(0)], u32(255)
        ).astype(u32)
        result |= value << u32(8 * index)
    return result


define("perm_b32", "b32: b32 b32 b32", permute_bytes)

# Shifts

define("lshlrev_b32", "b32: u32 b32", lambda s, x: x << (s & u32(31)))
define("lshrrev_b32", "b32: u32 b32", lambda s, x: x >> (s & u32(31)))
define("ashrrev_i32", "i32: u32 i32", lambda s, x: x >> (s & u32(31)).view(i32))
define("lshlrev_b64", "b64: u32 b64", lambda s, x: x << (s & u32(63)).astype(u64))
define("lshrrev_b64", "b64: u32 b64", lambda s, x: x >> (s & u32(63)).astype(u64))
define("ashrrev_i64", "i64: u32 i64", lambda s, x: x >> (s & u32(63)).astype(i64))
define("lshlrev_b16", "b16: u16 b16", lambda s, x: x << (s & u16(15)))
define("lshrrev_b16", "b16: u16 b16", lambda s, x: x >> (s & u16(15)))
define("ashrrev_i16", "i16: u16 i16", lambda s, x: x >> (s & u16(15)).view(i16))
define("lshl_or_b32", "b32: b32 u32 b32", lambda a, s, c: (a << (s & u32(31))) | c)
define("lshl_add_u32", "u32: u32 u32 u32", lambda a, s, c: (a << (s & u32(31))) + c)
define("add_lshl_u32", "u32: u32 u32 u32", lambda a, b, s: (a + b) << (s & u32(31)))
define("lshl_add_u64", "u64: u64 u32 u64", lambda a, s, c: (a << (s & u32(7)).astype(u64)) + c)
define("xad_u32", "u32: u32 u32 u32", lambda a, b, c: (a ^ b) + c)

# Integer arithmetic

define("add_u32", "u32: u32 u32", lambda a, b: a + b)
define("sub_u32", "u32: u32 u32", lambda a, b: a - b)
define("subrev_u32", "u32: u32 u32", lambda a, b: b - a)
define("add_i32", "i32: i32 i32", lambda a, b: a + b)
define("sub_i32", "i32: i32 i32", lambda a, b: a - b)
define("add3_u32", "u32: u32 u32 u32", lambda a, b, c: a + b + c)
define("mul_lo_u32", "u32: u32 u32", lambda a, b: a * b)
define("mul_hi_u32", "u32: u32 u32", lambda a, b: (a.astype(u64) * b.astype(u64)) >> u64(32))
define("mul_hi_i32", "i32: i32 i32", lambda a, b: (wide(a) * wide(b)) >> 32)
define("min_u32", "u32: u32 u32", np.minimum)
define("max_u32", "u32: u32 u32", np.maximum)
define("min_i32", "i32: i32 i32", np.minimum)
define("max_i32", "i32: i32 i32", np.maximum)


def low24(x):
    """The low 24 bits, of the operand's signedness."""
    return (x << 8) >> 8


for sign in ("u", "i"):
    define(
        f"mul_{sign}32_{sign}24",
        f"{sign}32: {sign}32 {sign}32",
        lambda a, b: (wide(low24(a)) * wide(low24(b))) & 0xFFFFFFFF,
    )
    define(
        f"mul_hi_{sign}32_{sign}24",
        f"{sign}32: {sign}32 {sign}32",
        lambda a, b: (wide(low24(a)) * wide(low24(b))) >> 32,
    )
    define(
        f"mad_{sign}32_{sign}24",
        f"{sign}32: {sign}32 {sign}32 {sign}32",
        lambda a, b, c: (wide(low24(a)) * wide(low24(b)) + wide(c)) & 0xFFFFFFFF,
    )
    define(
        f"mad_{sign}32_{sign}16",
        f"{sign}32: {sign}16 {sign}16 {sign}32",
        lambda a, b, c: (wide(a) * wide(b) + wide(c)) & 0xFFFFFFFF,
    )
    for width in (16, 32):
        t = f"{sign}{width}"
        define(
            f"min3_{t}",
            f"{t}: {t} {t} {t}",
            lambda a, b, c: np.minimum(np.minimum(a, b), c),
            keeps_high=True,
        )
        define(
            f"max3_{t}",
            f"{t}: {t} {t} {t}",
            lambda a, b, c: np.maximum(np.maximum(a, b), c),
            keeps_high=True,
        )
        define(
            f"med3_{t}",
            f"{t}: {t} {t} {t}",
            keeps_high=True,
            function=lambda a, b, c: np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c)),
        )
    define(f"min_{sign}16", f"{sign}16: {sign}16 {sign}16", np.minimum)
    define(f"max_{sign}16", f"{sign}16: {sign}16 {sign}16", np.maximum)
    define(
        f"mad_legacy_{sign}16", f"{sign}16: {sign}16 {sign}16 {sign}16", lambda a, b, c: a * b + c
    )
    define(
        f"mad_{sign}16",
        f"{sign}16: {sign}16 {sign}16 {sign}16",
        lambda a, b, c: a * b + c,
        keeps_high=True,
    )

define("add_u16", "u16: u16 u16", lambda a, b: a + b)
define("sub_u16", "u16: u16 u16", lambda a, b: a - b)
define("subrev_u16", "u16: u16 u16", lambda a, b: b - a)
define("mul_lo_u16", "u16: u16 u16", lambda a, b: a * b)
define("add_i16", "i16: i16 i16", lambda a, b: a + b, keeps_high=True)
define("sub_i16", "i16: i16 i16", lambda a, b: a - b, keeps_high=True)


def gap(a, b):
    return np.maximum(a, b) - np.minimum(a, b)


def byte_gaps(a, b):
    return sum(gap(byte(a, k), byte(b, k)) for k in range(4))


define("sad_u8", "u32: u32 u32 u32", lambda a, b, c: byte_gaps(a, b) + c)
define("sad_hi_u8", "u32: u32 u32 u32", lambda a, b, c: (byte_gaps(a, b) << u32(16)) + c)
define(
    "sad_u16",
    "u32: u32 u32 u32",
    lambda a, b, c: gap(a & u32(0xFFFF), b & u32(0xFFFF)) + gap(a >> u32(16), b >> u32(16)) + c,
)
define("sad_u32", "u32: u32 u32 u32", lambda a, b, c: gap(a, b) + c)
define(
    "msad_u8",
    "u32: u32 u32 u32",
    lambda a, b, c: (
        c + sum(np.where(byte(b, k) == 0, u32(0), gap(byte(a, k), byte(b, k))) for k in range(4))
    ),
)
define(
    "lerp_u8",
    "u32: u32 u32 u32",
    lambda a, b, c: sum(
        ((byte(a, k) + byte(b, k) + (byte(c, k) & u32(1))) >> u32(1)) << u32(8 * k)
        for k in range(4)
    ).astype(u32),
)

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
    define(f"med3_{t}", three, floats.median, ieee=True, keeps_high=True)
define("fmac_f32", "f32: f32 f32 f32", fma, tied=True)
define("fmac_f64", "f64: f64 f64 f64", fma, tied=True)
define("fmamk_f32 fmaak_f32", "f32: f32 f32 f32", fma)
for name in ("mac", "madmk", "madak", "mad"):
    for t in ("f16", "f32"):
        # Two roundings. The f32 forms flush denormals whatever the mode (checked by the machine).
        # LLVM's zeroesHigh16BitsOfDest ("derived from experimentation"): the f16 ones keep the
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
    """x - floor(x), below 1: the largest number below 1 where it would round to 1."""
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

# Transcendental: the manual promises about 1 ULP. These are correctly rounded, or nearly.


def through_double(function):
    return lambda x: function(x.astype(f64)).astype(x.dtype)


def turns(function):
    """Of an angle in turns. Quarter turns are exact; the manual's domain is ±256 turns."""

    def of(x):
        angle = x.astype(f64)
        part = angle - np.rint(angle)  # exact, and small where the angle is
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
    """float32 to bfloat16, nearest even."""
    raw = x.view(u32)
    rounded = (raw + u32(0x7FFF) + ((raw >> u32(16)) & u32(1))) >> u32(16)
    return np.where(np.isnan(x), (raw >> u32(16)) | u32(0x40), rounded).astype(u16)


define("cvt_pk_bf16_f32", "b32: f32 f32", lambda a, b: pack(to_brain(a), to_brain(b)))

# Compares

CONDITIONS = {
    "f": lambda a, b: np.zeros(np.broadcast_shapes(a.shape, b.shape), bool),
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "lg": lambda a, b: (a < b) | (a > b),
    "ge": lambda a, b: a >= b,
    "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "neq": lambda a, b: ~(a == b),
    "nlt": lambda a, b: ~(a < b),
    "tru": lambda a, b: np.ones(np.broadcast_shapes(a.shape, b.shape), bool),
    "ne": lambda a, b: a != b,
    "t": lambda a, b: np.ones(np.broadcast_shapes(a.shape, b.shape), bool),
}
FLOAT_CONDITIONS = [name for name in CONDITIONS if name not in ("ne", "t")]
INTEGER_CONDITIONS = ["f", "lt", "eq", "le", "gt", "ne", "ge", "t"]

VOPC: dict[str, Op] = {}
for prefix in ("v_cmp_", "v_cmpx_"):
    for t in ("f16", "f32", "f64"):
        for condition in FLOAT_CONDITIONS:
            VOPC[f"{prefix}{condition}_{t}"] = Op("mask", (t, t), CONDITIONS[condition])
        mask_type = "b16" if t == "f16" else "b32"
        VOPC[f"{prefix}class_{t}"] = Op(
            "mask", (t, mask_type), lambda a, b: floats.classify(a) & b.astype(u32) != 0
        )
    for t in ("i16", "u16", "i32", "u32", "i64", "u64"):
        for condition in INTEGER_CONDITIONS:
            VOPC[f"{prefix}{condition}_{t}"] = Op("mask", (t, t), CONDITIONS[condition])

# Arithmetic with a carry: (result, carry out) of two sources and a carry in


def add_carry(a, b, carry):
    total = a.astype(u64) + b + carry
    return total.astype(u32), total > 0xFFFFFFFF


def subtract_borrow(a, b, borrow):
    return a - b - borrow.astype(u32), a.astype(u64) < b.astype(u64) + borrow


CARRY: dict[str, tuple[Callable, bool, bool]] = {
    # mnemonic: (function, takes a carry, sources exchanged)
    "v_add_co_u32": (add_carry, False, False),
    "v_addc_co_u32": (add_carry, True, False),
    "v_sub_co_u32": (subtract_borrow, False, False),
    "v_subb_co_u32": (subtract_borrow, True, False),
    "v_subrev_co_u32": (subtract_borrow, False, True),
    "v_subbrev_co_u32": (subtract_borrow, True, True),
}


def multiply_add(a, b, c):
    """V_MAD_U64_U32: (a * b + c, whether it overflowed 64 bits)."""
    total = a.astype(u64) * b.astype(u64) + c
    return total, total < c


def multiply_add_signed(a, b, c):
    product = wide(a) * wide(b)
    total = product + c
    # Overflow: the operands agree in sign and the sum doesn't.
    return total, ((product ^ total) & (c ^ total)) < 0
