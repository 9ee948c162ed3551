"""Floating point of 16 bits or fewer: formats, and conversions from and to f32.

Sources: OCP "8-bit Floating Point Specification" and "Microscaling Formats Specification" (E4M3,
E5M2, E2M3, E3M2, E2M1); CDNA3 ISA manual, "FP8" (the FNUZ variants: one NaN, no negative zero);
CDNA4 ISA manual, V_CVT_SCALEF32_*, V_CVT_SR_*.

All computations use integers, so that neither the host's rounding nor its flushing of denormals
affects the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Lanes

FP16_OVFL = 1 << 23  # MODE: clamps overflows to the largest finite number


@dataclass(frozen=True)
class Format:
    """`largest` is the code of the largest finite number, without sign. `overflow` is the code of
    larger numbers: infinity, NaN, or the largest number again. `nan` is the code of NaN, or its
    replacement in formats without NaN. `unsigned_nan`: NaN has the code of negative zero (FNUZ).
    """

    exponent: int
    mantissa: int
    bias: int
    largest: int
    overflow: int
    nan: int
    unsigned_nan: bool = False

    @property
    def width(self) -> int:
        return 1 + self.exponent + self.mantissa


F16 = Format(5, 10, 15, 0x7BFF, 0x7C00, 0x7E00)
BF16 = Format(8, 7, 127, 0x7F7F, 0x7F80, 0x7FC0)
E4M3 = Format(4, 3, 7, 0x7E, 0x7F, 0x7F)
E5M2 = Format(5, 2, 15, 0x7B, 0x7C, 0x7E)
E4M3_FNUZ = Format(4, 3, 8, 0x7F, 0x80, 0x80, unsigned_nan=True)
E5M2_FNUZ = Format(5, 2, 16, 0x7F, 0x80, 0x80, unsigned_nan=True)
E2M3 = Format(2, 3, 1, 0x1F, 0x1F, 0x1F)
E3M2 = Format(3, 2, 3, 0x1F, 0x1F, 0x1F)
E2M1 = Format(2, 1, 1, 0x7, 0x7, 0x7)

ONE = 127  # the exponent field of 1.0f: the neutral scale
INFINITY = 0x7F80_0000
NAN = 0x7FC0_0000


def decode(code: Value, form: Format) -> Value:
    """Converts the low bits of `code` (i32) to f32, exactly."""
    width, mantissa = form.width, form.mantissa
    sign = (code.lshr(width - 1) & 1) << 31
    size = code & ((1 << (width - 1)) - 1)
    # A denormal's mantissa is an integer times the smallest power of two.
    small = (size & ((1 << mantissa) - 1)).convert("uitofp", "float")
    small = (small * 2.0 ** (1 - form.bias - mantissa)).bits("i32")
    normal = (size << (23 - mantissa)) + ((127 - form.bias) << 23)
    result = size.lshr(mantissa).compare("eq", 0).select(small, normal) | sign
    if form.unsigned_nan:
        is_nan = (code & ((1 << width) - 1)).compare("eq", form.nan)
        return is_nan.select(NAN, result).bits("float")
    if form.overflow != form.largest:
        if form.overflow != form.nan and form.overflow == form.largest + 1:
            infinite = size.compare("eq", form.overflow)
            result = infinite.select(sign | INFINITY, result)
            result = size.compare("ugt", form.overflow).select(sign | NAN, result)
        else:
            result = size.compare("eq", form.nan).select(sign | NAN, result)
    return result.bits("float")


def encode(
    k: Lanes, value: Value, form: Format, scale: Value | int = ONE, noise: Value | None = None
) -> Value:
    """Returns the code (i32) of an f32 divided by 2^(scale - 127), rounded once.

    Rounds to nearest even without `noise`, and stochastically with it: its upper bits are added
    just below the last bit kept, the carry propagates into the exponent, and the rest is truncated.
    A `scale` of 255 is NaN. Infinity overflows regardless of FP16_OVFL.
    """
    f = value.function
    bits = value.bits("i32")
    size = bits & 0x7FFF_FFFF
    exponent, significand = _normal(size)
    exponent = exponent - scale + 127
    # Below the format's smallest exponent, more bits are dropped.
    least = 128 - form.bias
    below = _between(least - exponent, 0, 26)
    drop = 23 - form.mantissa
    if noise is None:
        shift = _between(below + drop, 0, 26)
        kept = significand.lshr(shift)
        rest = significand - (kept << shift)
        half = significand.like(1) << (shift - 1)
        tie = rest.compare("eq", half) & (kept & 1).compare("ne", 0)
        kept = kept + (rest.compare("ugt", half) | tie).zext("i32")
    else:
        kept = (significand.lshr(below) + noise.lshr(32 - drop)).lshr(drop)
    # `kept` includes the implicit one of a normal number, which adds 1 to the exponent.
    place = f.intrinsic("llvm.smax", exponent - least, exponent.like(0))
    code = (place << form.mantissa) + kept
    limit = form.largest
    if form.overflow != form.largest:
        saturates = (k.handler.wave.at(state.MODE).load("i32") & FP16_OVFL).compare("ne", 0)
        finite = size.compare("ult", INFINITY)
        large = (saturates.splat(k.chunk) & finite).select(code.like(limit), form.overflow)
    else:
        large = code.like(limit)
    # Scaling must not turn infinity or NaN into a number; many formats have one code for both.
    special = "uge" if form.nan == form.overflow else "eq"
    too_large = code.compare("ugt", limit) | size.compare(special, INFINITY)
    code = too_large.select(large, code)
    if form.nan != form.overflow:
        code = size.compare("ugt", INFINITY).select(form.nan, code)
    if isinstance(scale, Value):
        code = scale.compare("eq", 255).select(form.nan, code)
    sign = bits.lshr(31) << (form.width - 1)
    if form.unsigned_nan:
        # Neither zero nor NaN has a sign.
        plain = code.compare("eq", 0) | code.compare("eq", form.nan)
        return plain.select(code, code | sign)
    return code | sign


def _normal(size: Value) -> tuple[Value, Value]:
    """Returns the exponent field of an f32 without its sign, and its 24-bit significand with the
    top bit set; denormals are normalised too, with exponents of 0 and less."""
    f = size.function
    field = size.lshr(23)
    significand = field.compare("eq", 0).select(size, (size & 0x7F_FFFF) | 0x80_0000)
    zeros = f.intrinsic("llvm.ctlz", significand, f.constant("i1", 0), result=significand)
    up = zeros - 8  # at most 24
    exponent = f.intrinsic("llvm.umax", field, field.like(1)) - up
    return exponent, significand << up


def _between(value: Value, low: int, high: int) -> Value:
    f = value.function
    return f.intrinsic(
        "llvm.smin", f.intrinsic("llvm.smax", value, value.like(low)), value.like(high)
    )
