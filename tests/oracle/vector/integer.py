"""Vector instructions on bits and integers: moves, shifts, arithmetic, bytes."""

from __future__ import annotations

import numpy as np

from oracle.vector.table import define

u8, u16, u32, u64 = np.uint8, np.uint16, np.uint32, np.uint64
i16, i32, i64, f64 = np.int16, np.int32, np.int64, np.float64


def wide(x):
    return x.astype(i64)


def count_bits(x):
    return np.bitwise_count(x).astype(u32)


def leading_zeros(x):
    """Counts leading zeros of uint32; 32 for 0."""
    # frexp's exponent is the number of significant bits: exact, because float64 holds 32 bits.
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
    """Returns the low 24 bits, with the operand's signedness."""
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
