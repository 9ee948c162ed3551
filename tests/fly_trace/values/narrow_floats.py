"""Floats of 8, 6 and 4 bits in NumPy, for tests: every number of a format, from its bits.

Written only from the formats' tables (OCP OFP8 and MX 1.0; FNUZ: the CDNA3 ISA manual): an encoding
is split into sign, exponent and fraction, and the special ones are listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Format:
    """Bits of exponent and fraction, the exponent's bias, and the encodings that are not
    numbers."""

    exponent: int
    fraction: int
    bias: int
    nans: tuple[int, ...] = ()
    infinities: tuple[int, ...] = ()

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.fraction

    @cached_property
    def values(self) -> np.ndarray:
        """The number of each encoding, as float64."""
        codes = np.arange(1 << self.bits)
        sign = np.where(codes >> (self.bits - 1), -1.0, 1.0)
        exponent = codes >> self.fraction & (1 << self.exponent) - 1
        fraction = (codes & (1 << self.fraction) - 1) / (1 << self.fraction)
        normal = (1 + fraction) * 2.0 ** (exponent - self.bias)
        found = sign * np.where(exponent == 0, fraction * 2.0 ** (1 - self.bias), normal)
        found[list(self.infinities)] = sign[list(self.infinities)] * np.inf
        found[list(self.nans)] = np.nan
        return found

    @property
    def greatest(self) -> float:
        return float(self.values[np.isfinite(self.values)].max())

    def nearest(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the encodings of the nearest numbers in range, ties to the even encoding."""
        finite = np.flatnonzero(np.isfinite(self.values[: 1 << (self.bits - 1)]))
        distance = np.abs(self.values[finite][None, :] - np.abs(numbers)[:, None])
        least = distance.min(1, keepdims=True)
        # Break ties towards the even encoding by treating odd ones as greater.
        keys = finite + (finite & 1) * (1 << self.bits)
        keys = np.where(distance == least, keys[None, :], 4 << self.bits)
        codes = keys.min(1) % (1 << self.bits)
        signed = codes | (np.signbit(numbers).astype(np.int64) << (self.bits - 1))
        return np.where(np.isnan(self.values[signed]), codes, signed)


FORMATS = {
    "Float8E4M3FN": Format(4, 3, 7, nans=(0x7F, 0xFF)),
    "Float8E4M3FNUZ": Format(4, 3, 8, nans=(0x80,)),
    "Float8E5M2": Format(
        5, 2, 15, nans=(0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF), infinities=(0x7C, 0xFC)
    ),
    "Float8E5M2FNUZ": Format(5, 2, 16, nans=(0x80,)),
    "Float6E2M3FN": Format(2, 3, 1),
    "Float6E3M2FN": Format(3, 2, 3),
    "Float4E2M1FN": Format(2, 1, 1),
}
# E8M0, the format of scales.
SCALES = np.append(2.0 ** np.arange(-127.0, 128.0), np.nan)


def bits_of(codes: np.ndarray, bits: int) -> np.ndarray:
    """Packs encodings along the last axis into bytes, the first lowest."""
    apart = codes[..., None] >> np.arange(bits) & 1
    whole = apart.reshape(*codes.shape[:-1], -1).astype(np.uint8)
    return np.packbits(whole, axis=-1, bitorder="little")
