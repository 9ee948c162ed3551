"""Sums of f16 and bf16 products on gfx1100 and gfx1201, for 16 results at a time.

AMD measured both (Radeon Pro W7900, Radeon AI Pro R9700) for its emulator rocjitsu: its
shared/gfx11_dot2.h and shared/gfx12_dot.h describe the findings, tests/fixtures/float_dot has the
measurements. `PYTHONPATH=tests python -m captures FILE` compares this module with the latter.

    complements   gfx1100: C and two products on one grid. Each magnitude is truncated to the grid;
                  a product whose sign differs from C's is then added as a ones' complement, so it
                  is one unit too low, even if it is zero. Subnormal factors of bf16, and addends
                  and results of f32, are flushed to zero.
    pairs         gfx1201: each pair of products is rounded down 24 bits below the greater exponent
                  and summed; these sums and C are rounded down to one grid and summed.

The grid is 24 bits below the greatest exponent of a product (the sum of its factors' exponents,
where a subnormal has its format's smallest) or 26 below C's, whichever is coarser. The sum is
rounded to nearest even, once: to f32; to f32 and then towards zero to bf16; or to f16, where C's
exponent is at least f16's smallest. An instruction with 16-bit results does so after each step, and
then respects MODE.FP16_OVFL.

Any NaN among the factors gives one fixed NaN; infinity times zero and infinities of both signs give
another; otherwise C's NaN is returned, made quiet.
"""

from __future__ import annotations

import math

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Handler
from fly_run.emulator.semantics.base.small_float import FP16_OVFL
from fly_run.emulator.semantics.matrix.arithmetic import (
    LEAST_EXPONENT,
    PRODUCT_BITS,
    Term,
    at_least,
    at_most,
    exponent_of,
    floor,
    greatest_of,
    is_special,
    only_special,
    power,
)

RESULTS = ("f32", "f16", "bf16")
C_BITS = 26  # of the grid: fraction bits of C
FRACTION, FIELD, BIAS = 23, 0xFF, 127  # of f32
NEVER = 600  # larger than any exponent; a number this far below another vanishes
LEAST_HALF, HALF_BITS, GREATEST_HALF = -14, 10, 65504.0
INVALID = 0xFFC0_0000  # infinity times zero, or minus infinity
# The result for a NaN factor: the low bits of 0xA3D, as many as the result holds.
FACTOR_NAN = {"f32": 0xFFC0_0A3D, "f16": 0xFFC7_A000, "bf16": 0xFFFD_0000}
QUIET = 0x0040_0000


def sum_complements(terms: list[Term], c: Value, result: str = "f32") -> Value:
    """Sums two products and C by `complements`, as f32 that is exact in `result`. All in i32:
    magnitudes are shifted to the grid."""
    bits = c.bits("i32")
    field = bits.lshr(FRACTION) & FIELD
    own = field - BIAS
    block = _Block(terms, c, result, field.compare("eq", FIELD).select(NEVER, own))
    digits = bits & ((1 << FRACTION) - 1) | 1 << FRACTION
    digits = field.compare("eq", 0).select(0, digits) << C_BITS - FRACTION
    sign = bits.ashr(31)
    total = _shifted(digits, block.grid + C_BITS - own)
    for product, exponent in zip(block.products, block.exponents, strict=True):
        size = product.function.intrinsic("llvm.fabs", product) * 2.0**PRODUCT_BITS
        units = _shifted(size.convert("fptosi", "i32"), block.grid + PRODUCT_BITS - exponent)
        total = total + (units ^ product.bits("i32").ashr(31) ^ sign)
    units = (total ^ sign) - sign
    if result == "f16":
        sum_ = _as_half(_rounded_to_half(units, block.grid))
    else:
        # Keep 24 digits at any magnitude; underflow is only detected afterwards.
        sum_ = _as_brain(_scaled(units, block.grid), result)
    return block.with_specials(sum_)


def sum_pairs(terms: list[Term], c: Value, result: str = "f32") -> Value:
    """Sums an even number of products and C by `pairs`. All but the last rounding uses integers in
    doubles, in units of 2^grid."""
    wide = c.convert("fpext", "double")
    block = _Block(terms, c, result, (wide.bits("i64").lshr(52) & 0x7FF).trunc("i32") - 1023)
    addend = wide * power(-block.grid, "double")
    # A coarse grid drops a small C; a fine one rounds it down, as it does products.
    small = c.function.intrinsic("llvm.fabs", addend).compare("olt", 1.0)
    dropped = small & block.grid.compare("sgt", block.least)
    total = dropped.select(0.0, floor(addend))
    for first in range(0, len(terms), 2):
        pair = block.exponents[first : first + 2]
        own = greatest_of(pair)
        digits = None
        for product, exponent in zip(block.products[first : first + 2], pair, strict=True):
            below = at_most(own - exponent, NEVER)
            scaled = product.convert("fpext", "double") * power(
                below.like(PRODUCT_BITS) - below, "double"
            )
            whole = floor(scaled)
            digits = whole if digits is None else digits + whole
        assert digits is not None
        moved = at_least(own - PRODUCT_BITS - block.grid, -NEVER)
        total = total + floor(digits * power(moved, "double"))
    exact = total * power(block.grid, "double")
    if result == "f16":
        return block.with_specials(_as_half(_to_half(exact)))
    # A result that underflows is +0.
    return block.with_specials(_as_brain(exact.convert("fptrunc", "float") + 0.0, result))


class _Block:
    """Products, their exponents and the grid: `i32`, the exponent of a unit. `own` is the exponent
    of C's first digit, NEVER or more if C is special."""

    def __init__(self, terms: list[Term], c: Value, result: str, own: Value) -> None:
        self.terms, self.c, self.result = terms, c, result
        self.least = LEAST_HALF if result == "f16" else LEAST_EXPONENT
        self.products = [term.a * term.b for term in terms]
        exponents = [exponent_of(term) for term in terms]
        # Exponents of zeros and special values are out of range.
        self.exponents = [at_most(at_least(exponent, -NEVER), NEVER) for exponent in exponents]
        self.greatest = greatest_of([own, *exponents])
        c_grid = at_least(own, self.least) - C_BITS
        self.grid = greatest_of([*(e - PRODUCT_BITS for e in self.exponents), c_grid])

    def with_specials(self, normal: Value) -> Value:
        """Returns `normal` if nothing is special, otherwise the result of infinities and NaNs."""
        f = normal.function
        rare = f.intrinsic(
            "llvm.vector.reduce.or",
            self.greatest.compare("sge", NEVER),
            result=f.constant("i1", 0),
        )
        return f.choose(rare, lambda: self._special_or(normal), lambda: normal)

    def _special_or(self, normal: Value) -> Value:
        total, strange = None, None
        for term, product in zip(self.terms, self.products, strict=True):
            part = only_special(product)
            total = part if total is None else total + part
            is_nan = term.a.is_nan() | term.b.is_nan()
            strange = is_nan if strange is None else strange | is_nan
        assert total is not None
        assert strange is not None
        whole = total + only_special(self.c)
        bits = is_special(whole).select(whole.bits("i32"), normal.bits("i32"))
        bits = whole.is_nan().select(bits.like(INVALID), bits)
        passed = self.c.is_nan() & ~total.is_nan()
        bits = passed.select(self.c.bits("i32") | QUIET, bits)
        return strange.select(bits.like(FACTOR_NAN[self.result]), bits).bits("float")


def _shifted(magnitude: Value, count: Value) -> Value:
    """Shifts a non-negative i32 right by `count`, which is at least 0."""
    return magnitude.lshr(at_most(count, 31))


def _scaled(units: Value, grid: Value) -> Value:
    """Computes units · 2^grid with f32's digits, to nearest even; underflow gives +0."""
    bits = units.convert("sitofp", "float").bits("i32")
    exponent = (bits.lshr(FRACTION) & FIELD) + grid
    small = exponent.compare("slt", 1) | units.compare("eq", 0)
    large = exponent.compare("sge", FIELD)
    infinite = bits & 0x8000_0000 | 0x7F80_0000
    moved = bits + (grid << FRACTION)
    return small.select(0, large.select(infinite, moved)).bits("float")


def _rounded_to_half(units: Value, grid: Value) -> Value:
    """Computes units · 2^grid with f16's digits, to nearest even, as an f32, whose exponent range
    suffices."""
    f = units.function
    size = f.intrinsic("llvm.abs", units, f.constant("i1", 0))
    # A magnitude that the conversion rounds up to a power of two is also one in f16.
    first = (size.convert("sitofp", "float").bits("i32").lshr(FRACTION) & FIELD) - BIAS + grid
    unit = greatest_of([at_least(first, LEAST_HALF) - HALF_BITS, grid])
    drop = at_most(unit - grid, 31)
    even = size.lshr(drop) & 1
    half = (drop.like(1) << drop).lshr(1)
    odd = drop.compare("eq", 0).select(0, half - 1 + even)
    digits = (size + odd).lshr(drop)
    signed = units.compare("slt", 0).select(-digits, digits)
    return _scaled(signed, unit)


def _as_brain(number: Value, result: str) -> Value:
    """Truncates an f32 to bf16's digits if that is the result."""
    return (number.bits("i32") & 0xFFFF_0000).bits("float") if result == "bf16" else number


def _to_half(number: Value) -> Value:
    """Rounds a double to nearest even in f16, as f32; underflow gives +0."""
    field = (number.bits("i64").lshr(52) & 0x7FF).trunc("i32")
    unit = at_least(field - 1023, LEAST_HALF) - HALF_BITS
    whole = number.function.intrinsic("llvm.roundeven", number * power(-unit, "double"))
    return (whole * power(unit, "double")).convert("fptrunc", "float") + 0.0


def _as_half(number: Value) -> Value:
    """Handles overflow of an f32 with f16's digits: infinity, or the largest number under
    MODE.FP16_OVFL."""
    f = number.function
    assert isinstance(f, Handler)
    held = (f.wave.at(state.MODE).load("i32") & FP16_OVFL).compare("ne", 0)
    limit = held.splat(number.lanes).select(number.like(GREATEST_HALF), math.inf)
    limit = f.intrinsic("llvm.copysign", limit, number)
    return f.intrinsic("llvm.fabs", number).compare("ogt", GREATEST_HALF).select(limit, number)
