"""What each code of an element format is worth as a factor, in both arithmetics: codes alone among
zeros, times one; and zeros times anything."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.matrix import LANES

from .matrix_square import GROUPS, SIDE, Case, addend, bits_of, decoded, multiply

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


def nothing(case: Case, waves: int) -> np.ndarray:
    """A C of zeros."""
    return np.zeros((waves, 8 if case.form == "f64" else 4, LANES), np.uint32)


def all_alike(case: Case, waves: int, code: np.uint64) -> np.ndarray:
    return np.full((waves, LANES, case.elements), code, np.uint64)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_codes(case: Case, mode: str) -> None:
    """A row of A has one code, and zeros; each code is in each place of a register."""
    listed = codes_of(case.form)
    listed = np.resize(listed, -(-len(listed) // SIDE) * SIDE)
    places = min(case.elements, 96 // bits_of(case.form))  # three registers hold all of fp6
    codes, rows = np.tile(listed, places), np.arange(places * len(listed))
    waves = len(codes) // SIDE
    zero = code_of(0, case)
    a, b = all_alike(case, waves, zero), all_alike(case, waves, code_of(1, case))
    lane = rows % SIDE + SIDE * (rows // 3 % GROUPS)
    place = rows // len(listed) + rows // SIDE % (case.elements // places) * places
    a[rows // SIDE, lane, place] = codes
    found = multiply(case, a, b, nothing(case, waves), mode).reshape(len(codes), SIDE)
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
    c = np.resize(c, (1, SIDE, SIDE))
    for a, b in ((zeros, most), (most, zeros)):
        np.testing.assert_array_equal(multiply(case, a, b, addend(case, c), mode), c)


def test_a_subnormal_c_under_a_scaled_product() -> None:
    """By the model of 8-bit products C is dropped from 2^26 below them (a subnormal C counts as
    2^-126), and above that rounded down to their grid."""
    modifiers = "op_sel_hi:[0,0,0] cbsz:4 blgp:4"
    case = Case("gfx950", "v_mfma_scale_f32_16x16x128_f8f6f4", "fp4", 32, modifiers)
    a, b = all_alike(case, 2, code_of(0, case)), all_alike(case, 2, code_of(1, case))
    a[:, :SIDE, 0] = code_of(1, case)
    words = np.full((2, 2, LANES), 127, np.uint32)
    words[:, 0] = 127 - np.array([[101], [100]])
    c = np.full((2, SIDE, SIDE), -(2.0**-149), np.float32)
    found = multiply(case, a, b, addend(case, c), "exact", words)
    assert (found[0] == 2.0**-101 - 2.0**-125).all()
    assert (found[1] == 2.0**-100).all()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", ["bf8", "fp6", "fp4"])
def test_scales(form: str, mode: str) -> None:
    """From 2^-127 to 2^127, and NaN: of each row of A, where one element is none, and each column
    of B, which is ones. Fast arithmetic has each factor, scaled, as an f32."""
    code = ("fp8", "bf8", "fp6", "bf6", "fp4").index(form)
    modifiers = f"op_sel:[0,1,0] op_sel_hi:[1,1,0] cbsz:{code} blgp:{code}"
    case = Case("gfx950", "v_mfma_scale_f32_16x16x128_f8f6f4", form, 32, modifiers)
    scales = np.array([0, 1, 2, 60, 64, 100, 125, 126, 127, 128, 190, 195, 252, 253, 254, 255])
    values = decoded(codes_of(form), form, case.target)
    codes = codes_of(form)[np.isfinite(values) & (values != 0)]
    waves = len(codes)
    a, b = all_alike(case, waves, code_of(0, case)), all_alike(case, waves, code_of(1, case))
    a[np.arange(waves), :SIDE, np.arange(waves) % case.elements] = codes[:, None]
    # Of A the scale is in byte 2, of B in byte 3; elsewhere are others.
    rows = [np.tile(scales, GROUPS) << shift | ~(255 << shift) & 0x7F7F7F7F for shift in (16, 24)]
    words = np.broadcast_to(np.array(rows, np.uint32), (waves, 2, LANES))
    found = multiply(case, a, b, nothing(case, waves), mode, words)
    powers = np.where(scales == 255, np.nan, 2.0 ** (scales - 127.0))
    left = decoded(codes, form, case.target)[:, None] * powers
    with np.errstate(over="ignore"):
        if mode == "fast":
            left = left.astype(np.float32).astype(np.float64)
        wanted = (left[:, :, None] * powers).astype(np.float32)
    np.testing.assert_array_equal(found, wanted)
