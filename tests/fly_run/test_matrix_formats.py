"""What each code of an element format is worth as a factor, in both arithmetics: codes alone among
zeros, times one; and zeros times anything."""

from __future__ import annotations

import numpy as np
import pytest

from .matrix_square import GROUPS, SIDE, Case, bits_of, decoded, multiply
from .matrix_support import LANES

MODES = ("exact", "fast")
F32_EDGES = [
    *(0, 0x80000000, 1, 0x807FFFFF, 0x00800000, 0x3F800000, 0xBF801FFF, 0x3FFFE000, 0x3F802000),
    *(0x7F7FFFFF, 0xFF7FE000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F802000, 0x00802000, 0x2000),
]
F64_EDGES = [np.float64(x).view(np.uint64) for x in (0, -0.0, 1, -1.5, 2**-1060, 1e300, np.inf)]


CASES = [
    Case("gfx942", "v_mfma_f32_16x16x4_f32", "f32", 1),
    Case("gfx942", "v_mfma_f32_16x16x8_xf32", "xf32", 2),
    Case("gfx942", "v_mfma_f64_16x16x4_f64", "f64", 1),
    Case("gfx942", "v_mfma_i32_16x16x32_i8", "i8", 8),
    *(Case("gfx942", f"v_mfma_f32_16x16x16_{form}", form, 4) for form in ("f16", "bf16")),
    Case("gfx90a", "v_mfma_f32_16x16x16f16", "f16", 4, flushes=True),
    Case("gfx90a", "v_mfma_f32_16x16x16bf16_1k", "bf16", 4, flushes=True),
    Case("gfx90a", "v_mfma_f32_16x16x8bf16", "bf16", 2, flushes=True),
    *(
        Case(target, f"v_mfma_f32_16x16x32_{form}_{form}", form, 8)
        for target in ("gfx942", "gfx950")
        for form in ("fp8", "bf8")
    ),
    *(
        Case("gfx950", "v_mfma_f32_16x16x128_f8f6f4", form, 32, f"cbsz:{code} blgp:{code}")
        for code, form in enumerate(("fp8", "bf8", "fp6", "bf6", "fp4"))
    ),
]
FLOATS = [case for case in CASES if case.form not in ("i8", "f64")]


def codes_of(form: str) -> np.ndarray:
    """All codes of at most eight bits; of longer ones some of each exponent."""
    if form in ("f32", "xf32"):
        return np.array(F32_EDGES, np.uint64)
    if form == "f64":
        return np.array(F64_EDGES, np.uint64)
    width = bits_of(form)
    if width <= 8:
        return np.arange(1 << width, dtype=np.uint64)
    fraction = {"f16": 10, "bf16": 7}[form]
    low = [0, 1, 2, 5 << fraction - 3, (1 << fraction) - 2, (1 << fraction) - 1]
    heads = np.arange(1 << width - fraction, dtype=np.uint64) << np.uint64(fraction)
    return (heads[:, None] | np.array(low, np.uint64)).ravel()


def code_of(value: float, case: Case) -> np.uint64:
    """A code of a value that the format has."""
    codes = np.arange(1 << 16, dtype=np.uint64) if bits_of(case.form) == 16 else codes_of(case.form)
    return codes[decoded(codes, case.form, case.target) == value][0]


def addend(case: Case, waves: int) -> np.ndarray:
    return np.zeros((waves, 8 if case.form == "f64" else 4, LANES), np.uint32)


def all_alike(case: Case, waves: int, code: np.uint64) -> np.ndarray:
    return np.full((waves, LANES, case.elements), code, np.uint64)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_codes(case: Case, mode: str) -> None:
    """A row of A has one code, in one place, and zeros."""
    codes = np.resize(codes_of(case.form), -(-len(codes_of(case.form)) // SIDE) * SIDE)
    rows = np.arange(len(codes))
    waves = len(codes) // SIDE
    zero = code_of(0, case)
    a, b = all_alike(case, waves, zero), all_alike(case, waves, code_of(1, case))
    lane = rows % SIDE + SIDE * (rows // 3 % GROUPS)
    a[rows // SIDE, lane, rows // 5 % case.elements] = codes
    found = multiply(case, a, b, addend(case, waves), mode).reshape(len(codes), SIDE)
    wanted = decoded(codes, case.form, case.target)
    if case.flushes and mode == "exact":
        least = {"f16": 2.0**-14, "bf16": 2.0**-126}[case.form]
        wanted = np.where(np.abs(wanted) < least, 0, wanted)
    np.testing.assert_array_equal(found, np.broadcast_to(wanted[:, None], found.shape))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", FLOATS, ids=str)
def test_products_that_are_zero_leave_c(case: Case, mode: str) -> None:
    """However small C is, and however large the other factor."""
    values = decoded(codes_of(case.form), case.form, case.target)
    largest = codes_of(case.form)[np.argmax(np.where(np.isfinite(values), values, 0))]
    zeros, most = (all_alike(case, 1, code) for code in (np.uint64(0), largest))
    if (values == 0).sum() > 1:  # FNUZ formats have no -0
        zeros[:, ::3] = np.uint64(1 << bits_of(case.form) - 1)
    small = [2.0**-126, -1.5 * 2.0**-126, 3 * 2.0**-149, -(2.0**-140), 2.0**-100, 1 + 2.0**-23]
    c = np.array([*small, -3e38, np.inf, -np.inf, np.nan], np.float32)
    if case.flushes:
        c[np.abs(c) < 2.0**-126] = 2.0**-125
    c = np.resize(c, (1, 4, LANES))
    wanted = c.reshape(1, 4, 4, SIDE).transpose(0, 2, 1, 3).reshape(1, SIDE, SIDE)
    for a, b in ((zeros, most), (most, zeros)):
        np.testing.assert_array_equal(multiply(case, a, b, c.view(np.uint32), mode), wanted)
