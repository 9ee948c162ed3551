"""How matrix instructions sum at the ends of the exponents' range, where subnormals are flushed or
products overflow, and where addends are far apart or cancel: against the oracle's reading of the
published models (oracle/arithmetic/matrix_sums.py), bit for bit.
"""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.matrix import LANES
from oracle.arithmetic import matrix_sums

from .matrix_square import Case, addend, factor, multiply

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
    Case("gfx90a", "v_mfma_f32_4x4x4f16", "f16", 4),
    Case("gfx90a", "v_mfma_f32_4x4x4bf16_1k", "bf16", 4),
    Case("gfx90a", "v_mfma_f32_4x4x2bf16", "bf16", 2),
    Case("gfx942", "v_mfma_f32_4x4x4_16b_f16", "f16", 4),
    Case("gfx942", "v_mfma_f32_4x4x4_16b_bf16", "bf16", 4),
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
        exact = -np.einsum("wnik,wnjk->wnij", a, b).astype(np.float32)
        exact = np.where(rng.random(c.shape) < 0.5, exact, np.nextafter(exact, np.float32(1)))
    return np.where(rng.random(c.shape) < 0.1, exact, c).astype(np.float32)


def assert_sums(case: Case, codes: list[np.ndarray], c: np.ndarray) -> None:
    """C is float32[wave, block, row, column]. A zero's sign counts."""
    a, b = (factor(case, x) for x in codes)
    found = multiply(case, *codes, addend(case, c), "exact").reshape(c.shape)
    kinds = case.form, case.form
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = matrix_sums.sums(
            a[:, :, :, None], b[:, :, None], c, kinds, case.target, case.mnemonic
        )
    np.testing.assert_array_equal(found, wanted)
    zero = found == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_sums(case: Case, pool: str) -> None:
    rng = np.random.default_rng(list(f"{case} {pool}".encode()))
    shape = (WAVES, LANES, case.elements)
    codes = [numbers(rng, case.form, exponents, shape) for exponents in POOLS[pool][:2]]
    a, b = (factor(case, x) for x in codes)
    c = addends(rng, POOLS[pool][2], (*a.shape[:3], b.shape[2]))
    assert_sums(case, codes, cancelled(rng, c, a, b))


BRAIN = [case for case in CASES if case.form == "bf16"]
FLUSHING = [case for case in BRAIN if case.target == "gfx90a"]


def filled(case: Case, first: tuple[int, ...], others: int = 0) -> np.ndarray:
    """Codes of A or B of one wave: a row's first ones, and what follows them."""
    codes = np.full((1, LANES, case.elements), others, np.uint64)
    codes[:, : LANES if case.blocks > 1 else LANES // 4, : len(first)] = first
    return codes


def brain(exponent: int, sign: int = 0) -> int:
    return exponent + 127 << 7 | sign << 15


@pytest.mark.parametrize("case", FLUSHING, ids=str)
def test_a_flushed_zero_keeps_its_sign(case: Case) -> None:
    """C and the first product leave a negative subnormal; all other products are such ones too."""
    a = filled(case, (brain(-63),), brain(-63))
    b = filled(case, (brain(-63),), brain(-65, 1))
    c = np.full((1, case.blocks, case.side, case.side), -1.5 * 2.0**-126, np.float32)
    assert_sums(case, [a, b], c)
    assert_sums(case, [a, b ^ np.uint64(0x8000)], -c)


@pytest.mark.parametrize("case", [case for case in BRAIN if case not in FLUSHING], ids=str)
@pytest.mark.parametrize("sign", [0, 1])
def test_what_a_subnormal_sum_loses(case: Case, sign: int) -> None:
    """Half of the least subnormal and 2^-158, which is below the last grid."""
    a, b = (
        filled(case, (brain(-75), brain(-79))),
        filled(case, (brain(-75, sign), brain(-79, sign))),
    )
    assert_sums(case, [a, b], np.zeros((1, case.blocks, case.side, case.side), np.float32))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_sums_beside_the_middle_of_two_numbers(case: Case) -> None:
    """C is an odd or even number of units; of the products one is half a unit, as far as the format
    has such, and the others are next to nothing."""
    rng = np.random.default_rng(list(str(case).encode()))
    least, _, fraction = RANGES[case.form]
    shape = (WAVES, LANES, case.elements)
    sign = 1 << (18 if case.form == "xf32" else {"fp8": 7, "bf8": 7}.get(case.form, 15))

    def powers(exponents: np.ndarray) -> np.ndarray:
        code = (exponents - least + 1 << fraction) | sign * rng.integers(0, 2, shape)
        code = np.where(rng.random(shape) < 0.3, 0, code)
        return (code << 13 if case.form == "xf32" else code).astype(np.uint64)

    low = max(least, -14)
    near = rng.random(shape) < 0.15
    a = powers(np.where(near, 0, rng.integers(low, low + 3, shape)))
    b = powers(np.where(rng.random(shape) < 0.8, 0, rng.integers(low, 1, shape)))
    rows = factor(case, a).shape
    units = rng.integers(1 << 23, 1 << 24, (*rows[:3], rows[2])) * rng.choice([-1, 1])
    c = np.ldexp(units.astype(np.float32), rng.integers(-6, 2, units.shape))
    assert_sums(case, [a, b], c.astype(np.float32))
