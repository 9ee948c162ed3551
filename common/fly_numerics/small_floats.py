"""Floating-point formats of 8, 6 and 4 bits: decoding, and encoding by rounding to nearest.

Sources: the OCP specifications "8-bit Floating Point (OFP8)" 1.0 and "Microscaling Formats (MX)"
1.0; for FNUZ the CDNA3 ISA manual, "FP8 and BF8". Names are MLIR's: F finite, N with a NaN, U
unsigned zero (there is no -0), Z the NaN where -0 would be.
"""

from __future__ import annotations

import math

from fly_common.record import record


@record
class SmallFloat:
    """A format with a sign, an exponent and `mantissa` bits of fraction. The least normal number is
    2**`least`. `greatest` is the encoding of the greatest finite number; the encodings above it are
    NaNs, the first of them infinity if `is_infinite`. If `is_unsigned_zero`, the encoding of -0 is
    a NaN."""

    bits: int
    mantissa: int
    least: int
    greatest: int
    is_infinite: bool = False
    is_unsigned_zero: bool = False

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << self.bits - 1

    @property
    def nan(self) -> int | None:
        """An encoding of NaN, or None if the format has no NaN."""
        if self.is_unsigned_zero:
            return self.sign
        return self.sign - 1 if self.greatest < self.sign - 1 else None

    def decode(self, code: int) -> float:
        """Returns the number that `code` encodes."""
        negative, magnitude = code & self.sign, code & self.sign - 1
        if magnitude > self.greatest or (self.is_unsigned_zero and code == self.sign):
            is_infinity = self.is_infinite and magnitude == self.greatest + 1
            found = math.inf if is_infinity else math.nan
        else:
            exponent = max(magnitude >> self.mantissa, 1)
            units = magnitude - (exponent - 1 << self.mantissa)
            found = math.ldexp(units, self.least + exponent - 1 - self.mantissa)
        return -found if negative else found

    def encode(self, number: float) -> int | None:
        """Returns the encoding of the nearest number, ties to even. Returns None for a number that
        rounds beyond the greatest, and for NaN and infinity if the format lacks them."""
        negative = self.sign if math.copysign(1.0, number) < 0 else 0
        if math.isnan(number):
            return self.nan
        if math.isinf(number):
            return negative | self.greatest + 1 if self.is_infinite else None
        # (frexp returns the exponent 0 for zero.)
        exponent = max(math.frexp(number)[1] - 1, self.least) if number else self.least
        units = round(math.ldexp(abs(number), self.mantissa - exponent))
        magnitude = (exponent - self.least << self.mantissa) + units
        if magnitude > self.greatest:
            return None
        return magnitude if self.is_unsigned_zero and magnitude == 0 else negative | magnitude


@record
class Scale:
    """E8M0, the format of block scales: the powers of two from 2**-127 to 2**127, and NaN."""

    bits: int = 8

    def decode(self, code: int) -> float:
        return math.nan if code == 0xFF else math.ldexp(1.0, code - 127)

    def encode(self, number: float) -> int | None:
        """Returns the encoding of a power of two or NaN, or None for any other number."""
        if math.isnan(number):
            return 0xFF
        if not math.isfinite(number) or number <= 0:
            return None
        fraction, exponent = math.frexp(number)
        held = fraction == 0.5 and -127 <= exponent - 1 <= 127
        return exponent + 126 if held else None


FORMATS: dict[str, SmallFloat | Scale] = {
    "f8E4M3FN": SmallFloat(8, 3, -6, 0x7E),
    "f8E4M3FNUZ": SmallFloat(8, 3, -7, 0x7F, is_unsigned_zero=True),
    "f8E5M2": SmallFloat(8, 2, -14, 0x7B, is_infinite=True),
    "f8E5M2FNUZ": SmallFloat(8, 2, -15, 0x7F, is_unsigned_zero=True),
    "f8E8M0FNU": Scale(),
    "f6E2M3FN": SmallFloat(6, 3, 0, 0x1F),
    "f6E3M2FN": SmallFloat(6, 2, -2, 0x1F),
    "f4E2M1FN": SmallFloat(4, 1, 0, 0x7),
}
