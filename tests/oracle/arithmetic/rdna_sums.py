"""Sums of products of f16 and bf16 as measured on gfx1100 and gfx1201.

The measurements are AMD's, for rocjitsu: tests/captures compares with them. One step adds two
products to C on gfx1100, and four (v_dot2: two) on gfx1201. A product's exponent is the sum of its
factors' exponents; a subnormal has that of the smallest normal number. Numbers are converted to
integer multiples of 2^grid, 24 below the greatest exponent of a non-zero product, or 26 below that
of C's first digit, whichever is greater.

gfx1100     digits below the grid are dropped from magnitudes. A product with another sign than C's,
            even if it is zero, then counts as the bitwise complement of its magnitude, with C's
            sign as the positive one. A subnormal bf16 factor is a zero of its sign, as is a
            subnormal C; a sum that has 24 digits and is then too small for a normal number is +0.
gfx1201     each pair of products is rounded down on a grid 24 below the greater exponent; the
            pair's sum and C are then rounded down on the common grid. A C of less than a unit is
            dropped, unless the unit is less than the smallest normal number.

The result is rounded to nearest even. With 16-bit results every step ends with a rounding: bf16 is
the upper half of the f32, f16 is rounded without an intermediate f32, and C's exponent is then at
least -14. Special values take precedence in this order: NaN factors, infinity times zero and
products of both infinities, C's NaN, infinities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

i64, u32 = np.int64, np.uint32
EMPTY = -(1 << 20)  # the exponent of an empty sum


@dataclass(frozen=True)
class Format:
    bits: int
    fraction: int
    bias: int

    @property
    def top(self) -> int:
        return (1 << self.bits - 1) - (1 << self.fraction)

    @property
    def quiet(self) -> int:
        return 1 << self.fraction - 1

    @property
    def sign(self) -> int:
        return 1 << self.bits - 1


FORMATS = {"f32": Format(32, 23, 127), "f16": Format(16, 10, 15), "bf16": Format(16, 7, 127)}
# The NaN that a NaN factor gives, by the result's format; the others give the negative quiet NaN.
FACTOR_NAN = {"f32": 0xFFC00A3D, "f16": 0xFE3D, "bf16": 0xFFFD}


class Numbers:
    """Decoded bits: finite numbers are (-1)^negative · digits · 2^(exponent - fraction)."""

    def __init__(self, raw: np.ndarray, form: Format, flush: bool) -> None:
        raw = raw.astype(i64)
        self.raw, self.form = raw, form
        magnitude, field = raw & form.sign - 1, (raw & form.top) >> form.fraction
        self.negative = raw >> form.bits - 1 != 0
        self.nan, self.infinite = magnitude > form.top, magnitude == form.top
        implied = np.where(field > 0, 1 << form.fraction, 0)
        self.digits = magnitude & (1 << form.fraction) - 1 | implied
        if flush:
            self.digits = np.where(field > 0, self.digits, 0)
        self.exponent = np.maximum(field, 1) - form.bias


# The number of k per step of a matrix. gfx1201's lanes share k in runs of four.
STEPS = {
    "gfx1100": [slice(k, k + 2) for k in range(0, 16, 2)],
    "gfx1201": [slice(k, k + 4) for k in (0, 8, 4, 12)],
}
STEPS["gfx1250"] = STEPS["gfx1201"]  # not measured: for exact sums only


def matrix(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, form: str, target: str, result: str
) -> np.ndarray:
    """Applies `step` along k, the last axis: for gfx1201 in the order of its lanes, the lower half
    first."""
    for k in STEPS[target]:
        c = step(a[..., k], b[..., k], c, form, target, result)
    return c


def step(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, form: str, target: str, result: str
) -> np.ndarray:
    """Returns C plus the products along the last axis of A and B, all as raw bits; C and the result
    have the format `result`."""
    old = target == "gfx1100"
    x, y = (Numbers(side, FORMATS[form], old and form == "bf16") for side in (a, b))
    z = Numbers(c, FORMATS[result], old and result != "f16")
    exponents = np.where(x.digits * y.digits == 0, EMPTY, x.exponent + y.exponent)
    first_digit = z.exponent - z.form.fraction + np.frexp(z.digits.astype(float))[1] - 1
    first_digit = np.where(z.digits == 0, EMPTY, first_digit)
    least = -14 if result == "f16" else EMPTY if old else -126
    grid = np.maximum(exponents.max(axis=-1) - 24, np.maximum(first_digit, least) - 26)
    grid = np.where(grid < -2000, 0, grid)  # an empty sum: any grid will do
    total = (_complements if old else _pairs)(x, y, z, exponents, grid, result)
    return _special(x, y, z, result, _packed(total, grid, result, old))


def _moved(value: np.ndarray, power: np.ndarray) -> np.ndarray:
    """Returns the integer value · 2^power, rounded down."""
    power = np.where(value == 0, 0, power)
    return np.where(power > 0, value << np.maximum(power, 0), value >> np.clip(-power, 0, 63))


def _complements(x: Numbers, y: Numbers, z: Numbers, exponents, grid, result: str) -> np.ndarray:
    scale = x.exponent + y.exponent - 2 * x.form.fraction - grid[..., None]
    magnitudes = _moved(x.digits * y.digits, scale)
    opposed = x.negative ^ y.negative ^ z.negative[..., None]
    products = np.where(opposed, ~magnitudes, magnitudes).sum(axis=-1)
    nothing = (z.digits == 0) & (exponents.max(axis=-1) == EMPTY)
    total = _moved(z.digits, z.exponent - z.form.fraction - grid) + products
    return np.where(nothing, 0, np.where(z.negative, -total, total))


def _pairs(x: Numbers, y: Numbers, z: Numbers, exponents, grid, result: str) -> np.ndarray:
    scale = z.exponent - z.form.fraction - grid
    total = _moved(np.where(z.negative, -z.digits, z.digits), scale)
    small = (_moved(z.digits, scale) == 0) & (grid > (-14 if result == "f16" else -126))
    total = np.where(small, 0, total)
    digits = x.digits * y.digits * np.where(x.negative ^ y.negative, -1, 1)
    scale = x.exponent + y.exponent - 2 * x.form.fraction
    for first in range(0, exponents.shape[-1], 2):
        pair = slice(first, first + 2)
        own = exponents[..., pair].max(axis=-1) - 24
        parts = _moved(digits[..., pair], scale[..., pair] - own[..., None])
        total = total + _moved(parts.sum(axis=-1), own - grid)
    return total


def _packed(total: np.ndarray, grid: np.ndarray, result: str, flush: bool) -> np.ndarray:
    """Returns the raw bits of total · 2^grid, rounded to nearest even."""
    form = FORMATS["f16" if result == "f16" else "f32"]
    magnitude = np.abs(total)
    first = np.frexp(magnitude.astype(float))[1] - 1 + grid
    least = 1 - form.bias
    aligned = first if flush and result != "f16" else np.maximum(first, least)
    unit = np.where(magnitude == 0, grid, aligned - form.fraction)
    drop = np.clip(unit - grid, 0, 62)
    rest, half = magnitude & (1 << drop) - 1, (1 << drop) >> 1
    digits = magnitude >> drop
    digits = digits + ((rest > half) | (rest == half) & (half > 0) & (digits & 1 == 1))
    value = np.ldexp(digits.astype(float), np.maximum(unit, grid).astype(int))
    if flush and result != "f16":
        value = np.where(value < 2.0**least, 0, value)
    with np.errstate(over="ignore"):
        short = value.astype(np.float16).view(np.uint16) if result == "f16" else None
        raw = value.astype(np.float32).view(u32) if short is None else short
    raw = raw.astype(i64)
    raw = np.where((total < 0) & (raw != 0), raw | form.sign, raw)
    return raw >> 16 if result == "bf16" else raw


def _special(x: Numbers, y: Numbers, z: Numbers, result: str, finite: np.ndarray) -> np.ndarray:
    form = FORMATS[result]
    invalid = form.sign | form.top | form.quiet
    infinite = x.infinite | y.infinite
    signs = x.negative ^ y.negative
    up = (infinite & ~signs).any(axis=-1)
    down = (infinite & signs).any(axis=-1)
    zero_times = (x.infinite & (y.digits == 0) | y.infinite & (x.digits == 0)).any(axis=-1)
    up_all, down_all = up | z.infinite & ~z.negative, down | z.infinite & z.negative
    found = np.where(up_all, form.top, np.where(down_all, form.sign | form.top, finite))
    found = np.where(up_all & down_all, invalid, found)
    found = np.where(z.nan, z.raw | form.quiet, found)
    found = np.where(zero_times | up & down, invalid, found)
    return np.where((x.nan | y.nan).any(axis=-1), FACTOR_NAN[result], found)
