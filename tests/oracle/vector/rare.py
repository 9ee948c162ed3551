"""Rare vector instructions: cube maps, sums of absolute differences of moving windows, gfx8's
half-float forms, gfx950's packed shifts, random numbers and stochastic rounding.

All follow the CDNA4 ISA manual's pseudocode, with two exceptions. V_TRIG_PREOP's mask keeps the
lowest 53 bits, which a left shift has cleared: its comments and LLVM's argument reduction need the
upper 53. V_CVT_SR_F16_F32 has no pseudocode: it follows what AMD's HIP headers do for smaller
floats without an instruction (from_float_sr): the random number's upper bits, as many as are
dropped, are added to the mantissa; a carry goes into the exponent; the rest is truncated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from oracle.arithmetic import floats
from oracle.arithmetic.minifloat import Format
from oracle.program.text import Instruction
from oracle.state.waves import Waves
from oracle.vector import integer
from oracle.vector.table import define

u8, u16, u32, u64, i32, i64 = np.uint8, np.uint16, np.uint32, np.uint64, np.int32, np.int64
f16, f32 = np.float16, np.float32

# Cube maps: the axis with the largest magnitude, z before y before x.


def _by_axis(x, y, z, of_x, of_y, of_z):
    z_first = (np.abs(z) >= np.abs(x)) & (np.abs(z) >= np.abs(y))
    return np.where(z_first, of_z, np.where(np.abs(y) >= np.abs(x), of_y, of_x)).astype(f32)


def cube_face(x, y, z):
    return _by_axis(x, y, z, np.where(x < 0, 1, 0), np.where(y < 0, 3, 2), np.where(z < 0, 5, 4))


def cube_s(x, y, z):
    return _by_axis(x, y, z, np.where(x < 0, z, -z), x, np.where(z < 0, -x, x))


def cube_t(x, y, z):
    return _by_axis(x, y, z, -y, np.where(y < 0, -z, z), -y)


def cube_axis(x, y, z):
    return f32(2) * _by_axis(x, y, z, x, y, z)


define("cubeid_f32", "f32: f32 f32 f32", cube_face)
define("cubesc_f32", "f32: f32 f32 f32", cube_s)
define("cubetc_f32", "f32: f32 f32 f32", cube_t)
define("cubema_f32", "f32: f32 f32 f32", cube_axis)


def _byte_into(x, index, old):
    """Replaces a byte of the old value by the float, truncated and clamped."""
    shift = (index & u32(3)) * u32(8)
    value = np.clip(floats.to_integer(x, i32), 0, 255).astype(u32)
    return (old & ~(u32(255) << shift)) | value << shift


define("cvt_pkaccum_u8_f32", "b32: f32 u32 b32", _byte_into, tied=True)

# Sums of absolute differences


def _windows(source: np.ndarray) -> list[np.ndarray]:
    """Returns the four dwords that start at bytes 0 to 3 of a 64-bit source."""
    return [(source >> u64(8 * k)).astype(u32) for k in range(4)]


def _difference(window, reference, addend, masked: bool):
    total = addend.astype(u32)
    for k in range(4):
        a, b = integer.byte(window, k), integer.byte(reference, k)
        gap = integer.gap(a, b)
        total = total + (np.where(b == 0, u32(0), gap) if masked else gap)
    return total


def _four_sums(masked: bool):
    def function(source, reference, addend):
        result = np.zeros(np.broadcast_shapes(source.shape, reference.shape, addend.shape), u64)
        for k, window in enumerate(_windows(source)):
            part = _difference(window, reference, addend >> u64(16 * k) & u64(0xFFFF), masked)
            result |= (part & u32(0xFFFF)).astype(u64) << u64(16 * k)
        return result

    return function


define("qsad_pk_u16_u8", "u64: u64 u32 u64", _four_sums(False))
define("mqsad_pk_u16_u8", "u64: u64 u32 u64", _four_sums(True))

# gfx8's half-float forms, which clear the upper half of the register


define("fma_legacy_f16", "f16: f16 f16 f16", floats.fma)
define("mad_legacy_f16", "f16: f16 f16 f16", lambda a, b, c: a * b + c)
define("div_fixup_legacy_f16", "f16: f16 f16 f16", floats.divide_fixup)


def _both_halves(a, b, c):
    shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
    result = np.zeros(shape, u32)
    for shift in (u32(0), u32(16)):
        halves = [(x >> shift).astype(u16).view(f16) for x in (a, b, c)]
        result |= floats.fma(*halves).view(u16).astype(u32) << shift
    return result


# gfx950


def _packed_shift(low: int, high: int) -> Callable:
    def function(a, b, count):
        parts = [np.clip(x >> (count & u32(31)).astype(i32), low, high) for x in (a, b)]
        first, second = (part.astype(i64).astype(u8).astype(u16) for part in parts)
        return first | second << u16(8)

    return function


define("ashr_pk_i8_i32", "b16: i32 i32 u32", _packed_shift(-128, 127), keeps_high=True)
define("ashr_pk_u8_i32", "b16: i32 i32 u32", _packed_shift(0, 255), keeps_high=True)


def next_random(seed):
    """V_PRNG_B32: a 32-bit linear feedback shift register."""
    return (seed << u32(1)) ^ np.where(seed >> u32(31) != 0, u32(197), u32(0))


define("prng_b32", "u32: u32", next_random)
HALF = Format(16, 10, 15, 0x7BFF, 0x7C00, 0x7E00)
BRAIN = Format(16, 7, 127, 0x7F7F, 0x7F80, 0x7FC0)


def _stochastic(narrow: Format) -> Callable:
    dropped = 23 - narrow.mantissa
    return lambda x, seed: narrow.encode_stochastic(x.astype(np.float64), seed, dropped)


define(
    "cvt_sr_f16_f32",
    "f16: f32 u32",
    lambda x, seed: _stochastic(HALF)(x, seed).astype(u16).view(f16),
    keeps_high=True,
)
define("cvt_sr_bf16_f32", "b16: f32 u32", _stochastic(BRAIN), keeps_high=True)

# A part of 2/π, for the reduction of large angles

PLACES = 1201


@functools.cache
def two_over_pi() -> int:
    """Returns the first 1,201 fraction bits, by Machin's formula: π/4 = 4 atan 1/5 - atan 1/239."""
    one = 1 << PLACES + 64

    def arctangent(x: int) -> int:
        term = total = one // x
        divisor, sign = 1, 1
        while term:
            term //= x * x
            divisor, sign = divisor + 2, -sign
            total += sign * (term // divisor)
        return total

    pi = 4 * (4 * arctangent(5) - arctangent(239))
    return (one << PLACES + 1) // pi


def _part_of_two_over_pi(x, segment):
    x, segment = np.broadcast_arrays(x, segment)
    exponents = floats.exponent(x)
    result = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        exponent = int(exponents[index])
        shift = 53 * (int(segment[index]) & 31) + max(0, exponent - 1077)
        digits = (two_over_pi() << shift) >> PLACES - 53 & (1 << 53) - 1
        power = -53 - shift + (128 if exponent >= 1968 else 0)
        result[index] = np.ldexp(float(digits), power)
    return result


define("trig_preop_f64", "f64: f64 u32", _part_of_two_over_pi)


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    """Builds instructions whose result is not one value of at most 64 bits per lane."""
    if ins.mnemonic == "v_pk_fmac_f16":
        return lambda w: _multiply_add_halves(w, ins)
    if ins.mnemonic == "v_mqsad_u32_u8":
        return lambda w: _four_wide_sums(w, ins)
    return None


def _multiply_add_halves(w: Waves, ins: Instruction) -> None:
    target, *sources = ins.operands
    first = w.first(target)
    # On gfx9 a float constant is only in the lower half (LLVM: getInlineEncodingV216).
    words = [
        w.read(operand, 16).astype(u32) if operand.kind == "float" else w.read(operand, 32)
        for operand in sources
    ]
    w.put_v32(first, _both_halves(*words, w.v32(first)), w.active())


def _four_wide_sums(w: Waves, ins: Instruction) -> None:
    """V_MQSAD_U32_U8: its addend and its result are four dwords."""
    target, source, reference, addend = ins.operands
    against, first = w.read(reference, 32), w.first(addend)
    sums = [
        _difference(window, against, w.v32(first + k), masked=True)
        for k, window in enumerate(_windows(w.read(source, 64)))
    ]
    if ins.modifiers.get("clamp"):  # a sum below the addend has overflowed 32 bits
        sums = [np.where(x < w.v32(first + k), ~u32(0), x) for k, x in enumerate(sums)]
    for k, value in enumerate(sums):
        w.put_v32(w.first(target) + k, value, w.active())
