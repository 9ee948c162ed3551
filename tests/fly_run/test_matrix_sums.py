"""How matrix instructions sum at the ends of the exponents' range, where subnormals are flushed or
products overflow, and where addends are far apart or cancel: against the oracle's reading of the
published models (oracle/matrix_sums.py), bit for bit.
"""

from __future__ import annotations

import numpy as np
import pytest
from oracle import matrix_sums

from .matrix_square import SIDE, Case, decoded, multiply
from .matrix_support import LANES

WAVES = 12
CASES = [
    Case("gfx90a", "v_mfma_f32_16x16x16f16", "f16", 4),
    Case("gfx90a", "v_mfma_f32_16x16x16bf16_1k", "bf16", 4),
    Case("gfx90a", "v_mfma_f32_16x16x8bf16", "bf16", 2),
    Case("gfx942", "v_mfma_f32_16x16x8_xf32", "xf32", 2),
    Case("gfx942", "v_mfma_f32_16x16x16_f16", "f16", 4),
    Case("gfx942", "v_mfma_f32_16x16x16_bf16", "bf16", 4),
    Case("gfx942", "v_mfma_f32_16x16x32_fp8_fp8", "fp8", 8),
    Case("gfx942", "v_mfma_f32_16x16x32_bf8_bf8", "bf8", 8),
    Case("gfx950", "v_mfma_f32_16x16x32_fp8_fp8", "fp8", 8),
    Case("gfx950", "v_mfma_f32_16x16x32_bf8_bf8", "bf8", 8),
    Case("gfx950", "v_mfma_f32_16x16x32_f16", "f16", 8),
]
# Exponents: of a format's least and greatest normal number, and its bits of fraction.
RANGES = {"f16": (-14, 15, 10), "bf16": (-126, 127, 7), "xf32": (-126, 127, 10)}
RANGES |= {"fp8": (-6, 7, 3), "bf8": (-14, 14, 2)}


def numbers(
    rng: np.random.Generator, form: str, exponents: tuple[int, int], shape: tuple[int, ...]
) -> np.ndarray:
    """Codes: short and long fractions, either sign, some zeros, of exponents from the first to the
    last, as far as the format has them; below its least normal number are subnormals."""
    least, greatest, fraction = RANGES[form]
    low, high = np.clip(exponents, least - 1, greatest)
    exponent = rng.integers(low, high + 1, shape)
    digits = rng.integers(0, 1 << fraction, shape)
    digits = np.where(rng.random(shape) < 0.5, digits, digits >> fraction - 1 << fraction - 1)
    code = (exponent - least + 1 << fraction) + digits
    code = np.where(rng.random(shape) < 0.15, 0, code)
    width = {"f16": 16, "bf16": 16, "xf32": 19}.get(form, 8)
    code |= (rng.random(shape) < 0.5) * (code != 0) << width - 1
    return (code << 13 if form == "xf32" else code).astype(np.uint64)


# Exponents of A, of B and of C, and where C is added to: how far from a chosen product's negative.
# The products of the first two reach 2^-126 and 2^128 where a format has such.
POOLS = {
    "near the least": ((-64, -61), (-64, -62), (-128, -122)),
    "near the greatest": ((62, 64), (62, 64), (125, 127)),
    "far apart": ((-14, 15), (-14, 15), (-40, 34)),
    "farther apart": ((-120, 60), (-60, 66), (-140, 127)),
    "of one exponent": ((0, 0), (-3, -3), (-3, 1)),
    "subnormal factors": ((-200, -120), (60, 127), (-70, 10)),
}


def addends(rng: np.random.Generator, exponents: tuple[int, int], shape: tuple[int, ...]):
    """f32: short and long fractions, powers of two, zeros, and now and then what is no number."""
    exponent = rng.integers(exponents[0], exponents[1] + 1, shape)
    fraction = rng.choice([1.0, 1.5, 1.125, 2 - 2.0**-23, 0], shape)
    fraction = np.where(rng.random(shape) < 0.4, 1 + rng.random(shape), fraction)
    sign = rng.choice([1.0, -1.0], shape)
    c = (sign * np.ldexp(fraction, exponent)).astype(np.float32)
    return np.where(rng.random(shape) < 0.02, rng.choice([np.inf, -np.inf, np.nan], shape), c)


def cancelled(rng: np.random.Generator, c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """C: a tenth is the negative of a row's product, or its neighbour."""
    with np.errstate(over="ignore", invalid="ignore"):
        exact = -np.einsum("wik,wjk->wij", a, b).astype(np.float32)
        exact = np.where(rng.random(c.shape) < 0.5, exact, np.nextafter(exact, np.float32(1)))
    return np.where(rng.random(c.shape) < 0.1, exact, c).astype(np.float32)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_sums(case: Case, pool: str) -> None:
    rng = np.random.default_rng(list(f"{case} {pool}".encode()))
    shape = (WAVES, LANES, case.elements)
    codes = [numbers(rng, case.form, exponents, shape) for exponents in POOLS[pool][:2]]
    # Lane l has row l % 16, and of its k those from `elements` · (l // 16) on.
    a, b = (
        decoded(x, case.form, case.target)
        .reshape(WAVES, LANES // SIDE, SIDE, -1)
        .transpose(0, 2, 1, 3)
        .reshape(WAVES, SIDE, -1)
        for x in codes
    )
    c = cancelled(rng, addends(rng, POOLS[pool][2], (WAVES, SIDE, SIDE)), a, b)
    rows = c.view(np.uint32).reshape(WAVES, 4, 4, SIDE).transpose(0, 2, 1, 3)
    found = multiply(case, *codes, rows.reshape(WAVES, 4, LANES), "exact")
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = matrix_sums.sums(
            a[:, :, None],
            b[:, None],
            c,
            (case.form, case.form),
            case.target,
            case.mnemonic,
        )
    np.testing.assert_array_equal(found, wanted)
