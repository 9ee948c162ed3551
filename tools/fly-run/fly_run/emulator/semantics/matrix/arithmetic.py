"""Exact models of the sums of matrix instructions, for 16 results at a time.

The arithmetic of AMD's matrix units is not documented. The models are those of Xie et al.,
"Bit-Accurate
Modeling of GPU Matrix Multiply-Accumulate Units" (arXiv 2511.10909), which the authors compared
with CDNA2 and CDNA3 hardware:

    fma     a chain of fused multiply-adds along k                        f32 and f64 (tables 6, 7)
    ftz P   products and sums of f32, subnormals flushed, each P products summed pairwise before
            C joins                                                   CDNA2 f16, bf16 (alg. 1, 2)
    tr L    L products are cut off 24 bits below their greatest exponent and summed; the sum and C
            are rounded down 31 bits below the greater exponent; the result is rounded once
                                                                  CDNA3 xf32, f16, bf16 (alg. 10)
    gtr L   the same with products of even and of odd k summed apart       CDNA3 fp8, bf8 (alg. 11)

The rounding details of the last two (which bits are truncated where) follow FPy's restatement of
the models (github.com/bksaiki/fpy), which its authors checked against the reference implementation.
`measured` models gfx1100 and gfx1201.
gfx950 has CDNA3's instructions and more; no model of it is published, so CDNA3's is used.
"""

from __future__ import annotations

from dataclasses import dataclass

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.matrix.formats import INFINITY, NAN

PRODUCT_BITS = 24  # F: fraction bits of a product below the greatest exponent
SUM_BITS = 31  # F2: fraction bits of the result before it is rounded to f32
SMALLEST = 2.0**-126  # the least normal f32
LEAST_EXPONENT = -126
FAR = 60  # at this distance, no bit of a product is left
OVERFLOW = 127  # from this exponent on a sum may be special


@dataclass(frozen=True)
class Term:
    """One k: significands and exponents of A's and B's elements (only values for `ftz`)."""

    a: Value
    b: Value
    a_exponent: Value | None = None
    b_exponent: Value | None = None


# -- CDNA2 -----------------------------------------------------------------------------------


def flush(number: Value, signed: bool = True) -> Value:
    """Flushes a subnormal f32 to zero, of the same sign or +0."""
    bits = number.bits("i32")
    small = number.function.intrinsic("llvm.fabs", number).compare("olt", SMALLEST)
    zero = (bits & 0x8000_0000).bits("float") if signed else number.like(0.0)
    return small.select(zero, number)


def sum_flushing(terms: list[Term], c: Value) -> Value:
    """Sums one block by `ftz`: len(terms) = P products, 2 or 4."""
    products = [flush(term.a * term.b) for term in terms]
    while len(products) > 1:
        pairs = zip(products[::2], products[1::2], strict=True)
        products = [flush(first + second) for first, second in pairs]
    return flush(c + products[0])


# -- CDNA3 -----------------------------------------------------------------------------------


def power(exponent: Value, element: str) -> Value:
    """Computes 2^exponent; the i32 exponent must be within the type's normal range."""
    if element == "float":
        return ((exponent + 127) << 23).bits("float")
    return ((exponent.sext("i64") + 1023) << 52).bits("double")


def greatest_of(values: list[Value]) -> Value:
    result = values[0]
    for value in values[1:]:
        result = result.function.intrinsic("llvm.smax", result, value)
    return result


def at_most(value: Value, limit: int) -> Value:
    return value.function.intrinsic("llvm.smin", value, value.like(limit))


def at_least(value: Value, limit: int) -> Value:
    return value.function.intrinsic("llvm.smax", value, value.like(limit))


def floor(value: Value) -> Value:
    return value.function.intrinsic("llvm.floor", value)


def _cut_sum(products: list[Value], exponents: list[Value], greatest: Value) -> Value:
    """Sums the products, each truncated towards zero, as i32 in units of 2^(greatest - 24)."""
    total = None
    for product, exponent in zip(products, exponents, strict=True):
        below = at_most(greatest - exponent, FAR)
        scaled = product * power(below.like(PRODUCT_BITS) - below, "float")
        digits = scaled.convert("fptosi", "i32")
        total = digits if total is None else total + digits
    assert total is not None
    return total


def sum_truncating(terms: list[Term], c: Value, grouped: bool) -> Value:
    """Sums one block of products and C by `tr` or, if `grouped`, by `gtr`."""
    f = c.function
    products = [term.a * term.b for term in terms]
    exponents = [exponent_of(term) for term in terms]
    c_exponent = (c.bits("i32").lshr(23) & 0xFF) - 127
    if grouped:
        # A subnormal C's exponent is one higher. This only matters if C is dropped; otherwise C is
        # a multiple of 2^-149, and the product bits lost are below the final rounding.
        c_exponent = at_least(c_exponent, LEAST_EXPONENT)
        halves = []
        for start in (0, 1):
            some = exponents[start::2]
            top = greatest_of(some)
            halves.append((_cut_sum(products[start::2], some, top), top))
        greatest = f.intrinsic("llvm.smax", halves[0][1], halves[1][1])
        digits = None
        for part, top in halves:
            # At most 2^28 in units that become larger: lost bits are rounded down.
            shifted = part.ashr(at_most(greatest - top, 31))
            digits = shifted if digits is None else digits + shifted
        assert digits is not None
    else:
        greatest = greatest_of(exponents)
        digits = _cut_sum(products, exponents, greatest)
    top = f.intrinsic("llvm.smax", greatest, c_exponent)
    normal = _join(digits, greatest, c, c_exponent, top, grouped)
    rare = f.intrinsic(
        "llvm.vector.reduce.or",
        top.compare("sge", OVERFLOW),
        result=f.constant("i1", 0),
    )
    return f.choose(
        rare, lambda: _with_specials(products, exponents, c, normal, grouped), lambda: normal
    )


def exponent_of(term: Term) -> Value:
    assert term.a_exponent is not None
    assert term.b_exponent is not None
    return term.a_exponent + term.b_exponent


def _join(
    digits: Value, greatest: Value, c: Value, c_exponent: Value, top: Value, grouped: bool
) -> Value:
    """Adds the products' sum, `digits` · 2^(greatest - 24), and C: both are rounded down below the
    greater exponent `top`, added, rounded down again and then rounded to f32. The numbers are
    integers in doubles, in units of 2^(top - 32)."""
    unit = SUM_BITS + 1
    far = at_most(top - greatest, 200)
    dot = digits.convert("sitofp", "double")
    dot = floor(dot * power(far.like(unit - PRODUCT_BITS) - far, "double"))
    addend = c.convert("fpext", "double") * power(top.like(PRODUCT_BITS) - top, "double")
    addend = floor(addend) * 2.0 ** (unit - PRODUCT_BITS)
    if grouped:
        dropped = (top - c_exponent).compare("sgt", PRODUCT_BITS + 1)
        addend = dropped.select(0.0, addend)
    total = dot + addend
    own = ((total.bits("i64").lshr(52) & 0x7FF).trunc("i32") - 1023) + (top - unit)
    own = at_least(own, LEAST_EXPONENT)
    # Now in units of 2^(own - 31).
    whole = floor(total * power(top - own - 1, "double"))
    return (whole * power(own - SUM_BITS, "double")).convert("fptrunc", "float")


def _with_specials(
    products: list[Value], exponents: list[Value], c: Value, normal: Value, grouped: bool
) -> Value:
    """Returns `normal` if nothing is special, otherwise the sum of the infinities and NaNs alone.
    In `tr` a product of at least 2^128 is infinite; in `gtr` products are never that large."""
    total = only_special(c)
    for product, exponent in zip(products, exponents, strict=True):
        large = product.like(0.0) if grouped else _infinite_from_2_to_128(product, exponent)
        total = total + is_special(product).select(product, large)
    result = total.is_nan().select(total.bits("i32").like(NAN), total.bits("i32")).bits("float")
    return is_special(total).select(result, normal)


def _infinite_from_2_to_128(product: Value, exponent: Value) -> Value:
    """Returns an infinity with the product's sign, or zero. Zero has an exponent that gives
    zero."""
    bits = product.bits("i32")
    carry = bits.lshr(30) & 1  # for 2 or more; significands are below 4
    infinite = ((bits & 0x8000_0000) | INFINITY).bits("float")
    return (exponent + carry).compare("sgt", OVERFLOW).select(infinite, 0.0)


def is_special(value: Value) -> Value:
    """Tests whether a float is infinite or NaN."""
    return (value - value).is_nan()


def only_special(value: Value) -> Value:
    return is_special(value).select(value, 0.0)
