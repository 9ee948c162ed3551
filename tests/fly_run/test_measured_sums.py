"""Sums of products in f32 as AMD measured them on gfx1201, against exact fractions.

What was measured, in words (rocjitsu's shared/gfx12_dot.h; a Radeon AI Pro R9700): products are
exact. Each two are rounded down to 24 bits below their greater exponent, where a factor's exponent
is that of its first digit, or of the first digit that its format has. The sums of two and C are
rounded down to one grid: 24 bits below the greatest exponent of a product, or 26 below that of C,
which is the coarser. Their sum is rounded to nearest even. C is dropped where it is less than one
unit of a grid that is coarser than 2^-126. A matrix product does four products at a time.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from .engine_support import compile_opencl, launch

FORMATS = {"f16": (10, 15), "bf16": (7, 127)}  # fraction bits, bias
TINY = 2.0**-149


def factor(bits: int, form: str) -> tuple[Fraction, int]:
    """The value and the exponent to align by."""
    width, bias = FORMATS[form]
    sign, field = bits >> 15, bits >> width & (1 << 15 - width) - 1
    exponent = max(field, 1) - bias
    digits = (bits & (1 << width) - 1) | (bool(field) << width)
    return Fraction((-1) ** sign * digits, 1 << width) * Fraction(2) ** exponent, exponent


def floored(value: Fraction, grid: int) -> Fraction:
    unit = Fraction(2) ** grid
    return math.floor(value / unit) * unit


def dot(a: list[int], b: list[int], c: float, form: str) -> np.float32:
    """One step: two or four finite products, and C."""
    if math.isinf(c):
        return np.float32(c)
    products = []
    for x, y in zip(a, b, strict=True):
        (value, exponent), (other, more) = factor(x, form), factor(y, form)
        products.append((value * other, exponent + more - 24 if value * other else -9999))
    lowest = math.frexp(c)[1] - 1 if c else -9999
    grid = max(max(lowest, -126) - 26, *(own for _, own in products))
    total = floored(Fraction(c), grid)
    if grid > -126 and abs(c) < Fraction(2) ** grid:
        total = Fraction(0)
    for first in range(0, len(products), 2):
        pair = products[first : first + 2]
        own = max(grid for _, grid in pair)
        total += floored(sum((floored(value, own) for value, _ in pair), Fraction(0)), grid)
    with np.errstate(over="ignore"):
        return np.float32(float(total))  # exact in f64, rounded once


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


@pytest.mark.parametrize("form", FORMATS)
def test_dot_products(form: str) -> None:
    rng = np.random.default_rng(5)
    n = 512
    a, b = (random_bits(rng, form, 2 * n) for _ in range(2))
    b[: n // 4] = a[: n // 4] ^ 0x8000  # what nearly cancels
    c, d = addends(rng, n), np.zeros(n, np.float32)
    source = f"""kernel void k(global uint *A, global uint *B, global float *C, global float *D) {{
      int t = INDEX;
      __asm volatile("v_dot2_f32_{form} %0, %1, %2, %3"
                     : "=v"(D[t]) : "v"(A[t]), "v"(B[t]), "v"(C[t])); }}"""
    launch(compile_opencl(source, "gfx1201", "-O1"), [a, b, c, d], n // 64, 64)
    pairs = zip(a.reshape(-1, 2).tolist(), b.reshape(-1, 2).tolist(), c.tolist(), strict=True)
    wanted = [dot(x, y, z, form) for x, y, z in pairs]
    np.testing.assert_array_equal(d, np.array(wanted, np.float32))


@pytest.mark.parametrize("form", FORMATS)
def test_matrix_products(form: str) -> None:
    rng = np.random.default_rng(6)
    a, b = (random_bits(rng, form, 256).reshape(16, 16) for _ in range(2))  # rows, k; columns, k
    c, d = addends(rng, 256).reshape(16, 16), np.zeros((16, 16), np.float32)
    element = {"f16": "half", "bf16": "short"}[form]
    # A lane has 8 of a row's 16: k 0 to 3 and 8 to 11, or the others; its C are 8 rows of a column.
    source = f"""
      typedef {element} v4 __attribute__((ext_vector_type(4)));
      typedef {element} v8 __attribute__((ext_vector_type(8)));
      typedef float f8 __attribute__((ext_vector_type(8)));
      kernel void k(global v4 *A, global v4 *B, global float *C, global float *D) {{
        int side = TID / 16, line = TID % 16;
        v8 a = (v8)(A[4 * line + side], A[4 * line + side + 2]);
        v8 b = (v8)(B[4 * line + side], B[4 * line + side + 2]);
        f8 c;
        for (int r = 0; r < 8; r++) c[r] = C[(8 * side + r) * 16 + line];
        c = __builtin_amdgcn_wmma_f32_16x16x16_{form}_w32_gfx12(a, b, c);
        for (int r = 0; r < 8; r++) D[(8 * side + r) * 16 + line] = c[r]; }}"""
    code = compile_opencl(source, "gfx1201", "-O1")
    launch(code, [a, b, c, d], 1, 32)
    for row, column in np.ndindex(16, 16):
        total = c[row, column]
        for k in range(0, 16, 4):
            factors = (side[k : k + 4].tolist() for side in (a[row], b[column]))
            total = dot(*factors, float(total), form)
        assert d[row, column] == total, (row, column)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100"])
def test_elsewhere_denormal_sums_are_flushed(target: str) -> None:
    """Of an addend and of the result, whatever MODE says; those of f16 are kept."""
    a = np.array([0x3C00, 0x3C00, 0x0001, 0x0001], np.uint32)
    b = np.array([0, 0x3C00, 0x0001, 0x3C00], np.uint32)
    c = np.array([TINY * 9, 2.0**-127, 0, -(2.0**-126)], np.float32)
    d = np.zeros(4, np.float32)
    source = """kernel void k(global uint *A, global uint *B, global float *C, global float *D) {
      int t = TID;
      __asm volatile("v_dot2_f32_f16 %0, %1, %2, %3"
                     : "=v"(D[t]) : "v"(A[t]), "v"(B[t]), "v"(C[t])); }"""
    launch(compile_opencl(source, target, "-O1"), [a, b, c, d], 1, 4)
    assert d.tolist() == [0, 1, 2.0**-48, 2.0**-24]
