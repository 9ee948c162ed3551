"""Sums of products as AMD measured them on gfx1100 and gfx1201, against exact fractions.

The rule, in words (found from rocjitsu's shared/gfx11_dot2.h and shared/gfx12_dot.h; a Radeon Pro
W7900, a Radeon AI Pro R9700): a grid is 24 bits below the greatest exponent of a product, where a
factor's exponent is that of its first digit, or of the first digit that its format has, or 26 below
that of C, which is the coarser.

gfx1100 adds two products to C at a time. All three are cut off to the grid, and a product with
another sign than C's, also a zero one, is one unit further from C's side. Subnormals of f32 and
bf16 are zero, in C, the factors and the result.

gfx1201 adds two (v_dot2) or four. Each two products are rounded down to a grid of their own and
summed; these sums and C are rounded down to the common one. C is dropped where it is less than one
unit of a grid that is coarser than the least normal number.

The sum is rounded to nearest even. Matrices with results of 16 bits have them after each step: of
bf16 the upper half of the f32, of f16 rounded by itself, with C's exponent at least f16's least.
The results here are the rule's; `python -m captures` compares with the hardware's.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from emulator_support.engine import compile_opencl, launch
from oracle.arithmetic import rdna_sums

FORMATS = {"f16": (10, 15), "bf16": (7, 127)}  # fraction bits, bias
TINY = 2.0**-149
LARGEST = 65504.0
NOWHERE = -9999
TARGETS = ("gfx1100", "gfx1201")


def factor(bits: int, form: str, flush: bool) -> tuple[int, Fraction, int]:
    """The sign, the magnitude and the exponent to align by."""
    width, bias = FORMATS[form]
    field = bits >> width & (1 << 15 - width) - 1
    exponent = max(field, 1) - bias
    digits = (bits & (1 << width) - 1) | (bool(field) << width)
    if flush and not field:
        digits = 0
    return bits >> 15, Fraction(digits, 1 << width) * Fraction(2) ** exponent, exponent


def first_digit(value: float | Fraction) -> int:
    return math.frexp(float(value))[1] - 1 if value else NOWHERE


def step(a: list[int], b: list[int], c: float, form: str, target: str, result: str) -> float:
    """Two or four finite products, and C: of a format `result`, as is what is returned."""
    if math.isinf(c):
        return c
    old = target == "gfx1100"
    if old and abs(c) < 2.0**-126:
        c = math.copysign(0, c)
    products = []
    for x, y in zip(a, b, strict=True):
        (sign, value, exponent), (other, more, further) = (
            factor(bits, form, old and form == "bf16") for bits in (x, y)
        )
        own = exponent + further - 24 if value * more else NOWHERE
        products.append((sign ^ other, value * more, own))
    least = -14 if result == "f16" else NOWHERE if old else -126
    grid = max(max(first_digit(c), least) - 26, *(own for _, _, own in products))
    if grid < -2000:
        return 0.0  # nothing but zeros
    total = (complements if old else pairs)(products, c, grid, max(least, -126))
    return rounded(total * Fraction(2) ** grid, result, old)


def pairs(products, c: float, grid: int, least: int) -> int:
    """In units of 2^grid."""
    unit = Fraction(2) ** grid
    total = math.floor(Fraction(c) / unit)
    if grid > least and abs(c) < unit:
        total = 0
    for first in range(0, len(products), 2):
        pair = products[first : first + 2]
        own = Fraction(2) ** max(grid for _, _, grid in pair)
        part = sum(math.floor((-value if sign else value) / own) for sign, value, _ in pair)
        total += math.floor(part * own / unit)
    return total


def complements(products, c: float, grid: int, least: int) -> int:
    """In units of 2^grid."""
    unit = Fraction(2) ** grid
    side = -1 if math.copysign(1, c) < 0 else 1
    total = math.floor(abs(Fraction(c)) / unit)
    for sign, value, _ in products:
        units = math.floor(value / unit)
        total += units if (-1) ** sign == side else -units - 1
    return side * total


def rounded(value: Fraction, result: str, flush: bool) -> float:
    """What is returned is never -0."""
    digits, least = (10, -14) if result == "f16" else (23, -126)
    exponent = first_digit(value)
    if not flush or result == "f16":
        exponent = max(exponent, least)
    unit = Fraction(2) ** (exponent - digits)
    number = float(round(value / unit) * unit)
    if flush and result != "f16" and abs(number) < 2.0**-126:
        number = 0.0
    with np.errstate(over="ignore"):
        number = np.float16(number) if result == "f16" else np.float32(number)
    if result == "bf16":
        number = (number.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return float(number) + 0.0


def random_bits(rng: np.random.Generator, form: str, count: int) -> np.ndarray:
    """Finite numbers, of which some are near each other, some subnormal, some zero."""
    width, _ = FORMATS[form]
    bits = rng.integers(0, 1 << 16, count).astype(np.uint16)
    near = rng.random(count) < 0.7
    middle = (1 << 14) - (1 << width) + rng.integers(0, 4 << width, count)
    bits = np.where(near, bits & 0x8000 | middle.astype(np.uint16), bits)
    bits[rng.random(count) < 0.1] &= 0x8000 | (1 << width) - 1
    special = bits >> width & (1 << 15 - width) - 1 == (1 << 15 - width) - 1
    return np.where(special, bits & 0x8000, bits).astype(np.uint16)


def addends(rng: np.random.Generator, count: int) -> np.ndarray:
    c = (rng.standard_normal(count) * 2.0 ** rng.integers(-30, 30, count)).astype(np.float32)
    c[:8] = 0, -0.0, TINY, -TINY, 2**-126, -1, 2.0**100, -(2.0**-120)
    return c


def dots(form: str, target: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    d = np.zeros(len(c), np.float32)
    source = f"""kernel void k(global uint *A, global uint *B, global float *C, global float *D) {{
      int t = INDEX;
      __asm volatile("v_dot2_f32_{form} %0, %1, %2, %3"
                     : "=v"(D[t]) : "v"(A[t]), "v"(B[t]), "v"(C[t])); }}"""
    launch(compile_opencl(source, target, "-O1"), [a, b, c, d], -(-len(c) // 64), min(len(c), 64))
    return d


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMATS)
def test_dot_products(form: str, target: str) -> None:
    rng = np.random.default_rng(5)
    n = 512
    a, b = (random_bits(rng, form, 2 * n) for _ in range(2))
    b[: n // 4] = a[: n // 4] ^ 0x8000  # what nearly cancels
    c = addends(rng, n)
    pairs = zip(a.reshape(-1, 2).tolist(), b.reshape(-1, 2).tolist(), c.tolist(), strict=True)
    wanted = [step(x, y, z, form, target, "f32") for x, y, z in pairs]
    found = dots(form, target, a, b, c)
    np.testing.assert_array_equal(found.view(np.uint32), np.array(wanted, "f4").view(np.uint32))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("short", [False, True], ids=["f32", "short"])
def test_matrix_products(form: str, target: str, short: bool) -> None:
    rng = np.random.default_rng(6)
    a, b = (random_bits(rng, form, 256).reshape(16, 16) for _ in range(2))  # rows, k; columns, k
    c = addends(rng, 256).reshape(16, 16)
    result = form if short else "f32"
    if result == "f16":
        c = np.clip(c, -60000, 60000).astype(np.float16)
    elif result == "bf16":
        c = (c.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    found = matrix(a, b, c, form, target)
    count = 2 if target == "gfx1100" else 4
    for row, column in product(range(16), range(0, 16, 3)):
        total = number(c[row, column], result)
        for k in range(0, 16, count):
            factors = (side[k : k + count].tolist() for side in (a[row], b[column]))
            total = step(*factors, total, form, target, result)
        assert number(found[row, column], result) == total, (row, column)


def number(value: np.generic, result: str) -> float:
    if result == "bf16":
        return float((np.uint32(value) << np.uint32(16)).view(np.float32))
    return float(value)


def matrix(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, form: str, target: str, first: str = ""
) -> np.ndarray:
    """D, of C's type; `first` is executed before."""
    d = np.zeros_like(c)
    result = "f32" if c.dtype == np.float32 else form
    element = {"f32": "float", "f16": "half", "bf16": "short"}[result]
    source = f"""
      typedef {"half" if form == "f16" else "short"} ab;
      typedef {element} cd;
      typedef ab v4 __attribute__((ext_vector_type(4)));
      typedef ab v8 __attribute__((ext_vector_type(8)));
      typedef ab v16 __attribute__((ext_vector_type(16)));
      typedef cd c8 __attribute__((ext_vector_type(8)));
      typedef cd c16 __attribute__((ext_vector_type(16)));
    """
    name = f"__builtin_amdgcn_wmma_{result}_16x16x16_{form}_w32"
    if target == "gfx1201":
        # A lane has 8 of a row's 16: k 0 to 3 and 8 to 11, or the others; its C are 8 rows.
        source += f"""
          kernel void k(global v4 *A, global v4 *B, global cd *C, global cd *D) {{
            __asm volatile("{first}");
            int side = TID / 16, line = TID % 16;
            v8 a = (v8)(A[4 * line + side], A[4 * line + side + 2]);
            v8 b = (v8)(B[4 * line + side], B[4 * line + side + 2]);
            c8 c;
            for (int r = 0; r < 8; r++) c[r] = C[(8 * side + r) * 16 + line];
            c = {name}_gfx12(a, b, c);
            for (int r = 0; r < 8; r++) D[(8 * side + r) * 16 + line] = c[r]; }}"""
    else:
        # A lane has all of a row, and every second row of C; 16 bits fill half a register.
        short = result != "f32"
        sums, stride, last = ("c16", 2, ", 0") if short else ("c8", 1, "")
        source += f"""
          kernel void k(global v16 *A, global v16 *B, global cd *C, global cd *D) {{
            __asm volatile("{first}");
            int side = TID / 16, line = TID % 16;
            {sums} c = 0;
            for (int r = 0; r < 8; r++) c[{stride} * r] = C[(2 * r + side) * 16 + line];
            c = {name}(A[line], B[line], c{last});
            for (int r = 0; r < 8; r++) D[(2 * r + side) * 16 + line] = c[{stride} * r]; }}"""
    launch(compile_opencl(source, target, "-O1"), [a, b, c, d], 1, 32)
    return d


# A's two elements, B's two (f16), C, and the rule's results on gfx1100 and gfx1201, and those of a
# chain of fused multiply-adds, which gfx90a has.
BELOW = 1 - 2.0**-24
TOLD_APART = [
    ((3, 5), (7, 1), 26.0, 52.0, 52.0, 52.0),  # all of one sign
    ((3, 5), (7, 1), -26.0, 2.0**-20, 0.0, 0.0),  # both products are a unit off
    ((-1, -0.0), (1, 1), 1.0, -(2.0**-23), 0.0, 0.0),  # and so is a zero
    ((1, -0.0), (1, 1), -3 * 2.0**-26, 1.0, 1.0, BELOW),  # C is below the grid
    ((1, -(2.0**-13)), (1, 2.0**-12), 0.0, BELOW, BELOW, 1.0),  # a product is
]


@pytest.mark.parametrize(("a", "b", "c", "gfx1100", "gfx1201", "chain"), TOLD_APART)
def test_own_cases(a, b, c, gfx1100: float, gfx1201: float, chain: float) -> None:
    halves = [np.array(side, np.float16) for side in (a, b)]
    raw = [side.view(np.uint16) for side in halves]
    for target, wanted in (("gfx1100", gfx1100), ("gfx1201", gfx1201), ("gfx90a", chain)):
        addend = np.array([c], np.float32)
        assert dots("f16", target, raw[0], raw[1], addend)[0] == wanted
        if target != "gfx90a":
            sides = [side.tolist() for side in raw]
            assert step(*sides, c, "f16", target, "f32") == wanted


SPECIAL = {
    "f16": (0, 0x8000, 0x0001, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0xFC00, 0x7C01, 0xFE00),
    "bf16": (0, 0x8000, 0x0001, 0x3F80, 0xBF80, 0x7F7F, 0x7F80, 0xFF80, 0x7F81, 0xFFC0),
    "f32": (0, 1 << 31, 1, 0x3F800000, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7F812345, 0xFFC12345),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMATS)
def test_special_dot_products(form: str, target: str) -> None:
    """Infinities and NaNs among zeros and ones, every bit of the result: as the oracle."""
    ends = [SPECIAL[form]] * 4 + [SPECIAL["f32"]]
    places = np.random.default_rng(7).permutation(10**4 * 9)[:8192]
    picked = np.unravel_index(places, [len(end) for end in ends])
    a0, a1, b0, b1, c = (np.array(end)[at] for end, at in zip(ends, picked, strict=True))
    a, b = (np.stack(side, 1).astype(np.uint16) for side in ((a0, a1), (b0, b1)))
    found = dots(form, target, a, b, c.astype(np.uint32).view(np.float32)).view(np.uint32)
    np.testing.assert_array_equal(found, rdna_sums.step(a, b, c, form, target, "f32"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", FORMATS)
def test_special_matrix_products(form: str, target: str) -> None:
    """The same with results of 16 bits: three factors of each matrix are special, and some of C."""
    rng = np.random.default_rng(8)
    a, b = (np.full((16, 16), SPECIAL[form][3], np.uint16) for _ in range(2))
    for side in (a, b):
        at = rng.integers(0, 256, 3)
        side.flat[at] = rng.choice(SPECIAL[form][5:], 3)
    c = np.where(rng.random((16, 16)) < 0.25, rng.choice(SPECIAL[form], (16, 16)), 0)
    c = c.astype(np.uint16)
    found = matrix(a, b, c.view(np.float16) if form == "f16" else c, form, target)
    # In the order of rdna_sums: as a lane holds k.
    order = np.arange(16)
    if target == "gfx1201":
        order = order.reshape(2, 2, 4).swapaxes(0, 1).ravel()
    sides = a[:, None, order], b[None, :, order]
    wanted = rdna_sums.matrix(*sides, c, form, target, form)
    np.testing.assert_array_equal(found.view(np.uint16), wanted)


@pytest.mark.parametrize(("target", "wanted"), [("gfx1100", -(2.0**-9)), ("gfx1201", 0.0)])
def test_overflow_within_a_matrix_product(target: str, wanted: float) -> None:
    """The first step's sum is too large; FP16_OVFL holds it, and the next step takes it away."""
    count = 2 if target == "gfx1100" else 4
    a, b = np.zeros((2, 16, 16), np.float16)
    a[:, :2], b[:, :2], a[:, count], b[:, count] = LARGEST, 2, -LARGEST, 1
    c = np.zeros((16, 16), np.float16)
    raw = [side.view(np.uint16) for side in (a, b)]
    assert (matrix(*raw, c, "f16", target) == np.inf).all()
    held = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1"
    assert (matrix(*raw, c, "f16", target, held) == wanted).all()


@pytest.mark.parametrize("target", TARGETS)
def test_constants_as_factors(target: str) -> None:
    """1.0 or the integer 1, times (1, 2), as measured (rocjitsu's gfx11_dot2_test.cpp): of f16 in
    the lower half alone, of bf16 and in VOPD in both. gfx1100 takes bf16's 1 for zero."""
    single = "v_dot2_f32_{form} v6, {one}, v8, 0"
    dual = "v_dual_dot2acc_f32_{form} v6, {one}, v8 :: v_dual_mov_b32 v7, 0"
    tiny = 3 * 2.0**-133 if target == "gfx1201" else 0.0
    wanted = {
        ("f16", "1.0", single): 1.0,
        ("f16", "1.0", dual): 3.0,
        ("f16", "1", single): 2.0**-24,
        ("f16", "1", dual): 3 * 2.0**-24,
        ("bf16", "1.0", single): 3.0,
        ("bf16", "1.0", dual): 3.0,
        ("bf16", "1", single): tiny,
        ("bf16", "1", dual): tiny,
    }
    pairs = {"f16": 0x4000_3C00, "bf16": 0x4000_3F80}
    body = "".join(
        f"""__asm volatile("v_mov_b32 v6, 0\\n v_mov_b32 v8, %1\\n"
              "{text.format(form=form, one=one)}\\n v_mov_b32 %0, v6"
              : "=v"(D[{number}]) : "v"({pairs[form]:#x}) : "v6", "v7", "v8");"""
        for number, (form, one, text) in enumerate(wanted)
    )
    d = np.zeros(len(wanted), np.float32)
    launch(compile_opencl(f"kernel void k(global float *D) {{ {body} }}", target, "-O1"), [d], 1, 1)
    assert d.tolist() == list(wanted.values())
