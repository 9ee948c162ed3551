"""Floats of 8, 6 and 4 bits: all values are listed, and conversions search the list.

OCP "8-bit Floating Point" (E4M3, E5M2) and "Microscaling Formats" (E2M3, E3M2, E2M1); gfx942's FNUZ
formats have a bias one larger, no infinity, no -0, and one NaN: 0x80.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

f64, i64 = np.float64, np.int64


@dataclass(frozen=True)
class Format:
    """`last`: the code of the largest finite magnitude. `infinity`, `nan`: codes, None if the
    format has none. Codes are without sign; `unsigned_zero`: the sign with code 0 is the NaN."""

    bits: int
    mantissa: int
    bias: int
    last: int
    infinity: int | None
    nan: int | None
    unsigned_zero: bool = False

    @property
    def sign(self) -> int:
        return 1 << self.bits - 1

    def magnitude(self, code: int) -> float:
        exponent, fraction = code >> self.mantissa, code & (1 << self.mantissa) - 1
        if exponent == 0:
            return fraction * 2.0 ** (1 - self.bias - self.mantissa)
        return (1 + fraction / 2**self.mantissa) * 2.0 ** (exponent - self.bias)

    @cached_property
    def magnitudes(self) -> np.ndarray:
        """Magnitudes of the finite codes, and of the one after the last, to which overflow is
        rounded."""
        return np.array([self.magnitude(code) for code in range(self.last + 2)])

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Returns the values as float64."""
        table = np.full(2 * self.sign, np.nan)
        for code in range(self.sign):
            value = self.magnitude(code) if code <= self.last else np.nan
            if code == self.infinity:
                value = np.inf
            table[code], table[code | self.sign] = value, -value
        if self.unsigned_zero:
            table[self.sign] = np.nan
        return table[codes.astype(i64)]

    def encode(self, x: np.ndarray) -> np.ndarray:
        """Returns the codes nearest to float64 values, ties to the even code; int64."""
        size = np.abs(x)
        middles = (self.magnitudes[1:] + self.magnitudes[:-1]) / 2
        low = np.searchsorted(middles, size, side="left")
        high = np.searchsorted(middles, size, side="right")
        return self._finish(x, np.where(low % 2 == 0, low, high))

    def encode_stochastic(self, x: np.ndarray, seed: np.ndarray, kept: int) -> np.ndarray:
        """Rounds up if the dropped fraction of a step plus the seed's fraction of 2^32 is one or
        more. `kept`: the number of the seed's upper bits that count."""
        size = np.abs(x)
        below = np.searchsorted(self.magnitudes, size, side="right") - 1
        below = np.minimum(below, self.last)
        step = self.magnitudes[below + 1] - self.magnitudes[below]
        share = np.where(np.isfinite(size), (size - self.magnitudes[below]) / step, 2.0)
        chance = (seed.astype(i64) >> 32 - kept) / 2.0**kept
        return self._finish(x, below + (share + chance >= 1))

    def _finish(self, x: np.ndarray, code: np.ndarray) -> np.ndarray:
        """Applies the sign, overflow and NaN."""
        nan = self.nan if self.nan is not None else self.last
        over = self.infinity if self.infinity is not None else nan
        code = np.where(code > self.last, over, code)
        code = np.where(np.isnan(x), nan, code)
        if self.unsigned_zero:
            negative = np.signbit(x) & (code != 0) & (code != self.sign)
            return np.where(negative, code | self.sign, code)
        return np.where(np.signbit(x), code | self.sign, code)


FNUZ = {
    "fp8": Format(8, 3, 8, 0x7F, None, 0x80, unsigned_zero=True),
    "bf8": Format(8, 2, 16, 0x7F, None, 0x80, unsigned_zero=True),
}
OCP = {
    "fp8": Format(8, 3, 7, 0x7E, None, 0x7F),
    "bf8": Format(8, 2, 15, 0x7B, 0x7C, 0x7E),
    "fp6": Format(6, 3, 1, 0x1F, None, None),
    "bf6": Format(6, 2, 3, 0x1F, None, None),
    "fp4": Format(4, 1, 1, 0x7, None, None),
}


def formats(target: str) -> dict[str, Format]:
    return FNUZ if target == "gfx942" else OCP
