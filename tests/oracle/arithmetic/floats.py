"""Exact IEEE arithmetic that NumPy lacks: fused multiply-add, ldexp, roundings, NaN rules.

All functions take and return arrays of one float type unless their name says otherwise.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

BITS = {"f16": np.uint16, "f32": np.uint32, "f64": np.uint64}
FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
# Explicit mantissa bits and exponent bias.
MANTISSA = {np.dtype("f2"): 10, np.dtype("f4"): 23, np.dtype("f8"): 52}
BIAS = {np.dtype("f2"): 15, np.dtype("f4"): 127, np.dtype("f8"): 1023}
UNSIGNED = {np.dtype("f2"): np.uint16, np.dtype("f4"): np.uint32, np.dtype("f8"): np.uint64}
SIGNED = {np.dtype("f2"): np.int16, np.dtype("f4"): np.int32, np.dtype("f8"): np.int64}


def bits(x: np.ndarray) -> np.ndarray:
    return x.view(UNSIGNED[x.dtype])


def exponent(x: np.ndarray) -> np.ndarray:
    """Returns the biased exponent field, int64."""
    width = MANTISSA[x.dtype]
    return ((bits(x) >> width).astype(np.int64)) & (2 * BIAS[x.dtype] + 1)


def is_denormal(x: np.ndarray) -> np.ndarray:
    return (exponent(x) == 0) & (x != 0)


def flush(x: np.ndarray) -> np.ndarray:
    """Flushes denormals to zeros of their sign."""
    return np.where(is_denormal(x), np.copysign(x.dtype.type(0), x), x)


def quiet(x: np.ndarray) -> np.ndarray:
    """Makes signalling NaNs quiet, with their payload; other values are unchanged."""
    raw = bits(x)
    one = raw.dtype.type(1 << (MANTISSA[x.dtype] - 1))
    return np.where(np.isnan(x), raw | one, raw).view(x.dtype)


def is_signalling(x: np.ndarray) -> np.ndarray:
    one = UNSIGNED[x.dtype](1 << (MANTISSA[x.dtype] - 1))
    return np.isnan(x) & ((bits(x) & one) == 0)


def odd_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns a + b in float64, rounded to odd: exact, or the neighbour whose last bit is 1.

    A sum rounded in this way can be rounded again, to a type at least two bits narrower, without
    error (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)  # TwoSum: exact
    inexact = np.isfinite(total) & np.isfinite(error) & (error != 0)
    even = (total.view(np.int64) & 1) == 0
    outward = (error > 0) == (total > 0)
    step = np.where(outward, 1, -1) * (inexact & even)
    return (total.view(np.int64) + step).view(np.float64)


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Returns a * b + c with one rounding, to nearest even."""
    a, b, c = np.broadcast_arrays(a, b, c)
    if a.dtype == np.float64:
        return _fma_double(a, b, c)
    # The product of two f32 (or f16) is exact in f64, and no such sum leaves f64's normal range.
    product = a.astype(np.float64) * b.astype(np.float64)
    return odd_sum(product, c.astype(np.float64)).astype(a.dtype)


def _fma_double(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    # Boldo and Melquiond's algorithm is valid away from overflow and underflow. The other lanes
    # are few, and use exact fractions.
    def moderate(x, low, high):
        return (exponent(x) > 1023 + low) & (exponent(x) < 1023 + high)

    safe = moderate(a, -400, 400) & moderate(b, -400, 400)
    safe &= moderate(c, -900, 900) | (c == 0)
    split_a, split_b = a * 134217729.0, b * 134217729.0
    high_a, high_b = split_a - (split_a - a), split_b - (split_b - b)
    low_a, low_b = a - high_a, b - high_b
    up = a * b
    low = low_a * low_b - (((up - high_a * high_b) - low_a * high_b) - high_a * low_b)
    middle = c + low
    part = middle - c
    middle_error = (c - (middle - part)) + (low - part)
    top = up + middle
    part = top - up
    top_error = (up - (top - part)) + (middle - part)
    result = top + odd_sum(top_error, middle_error)
    if safe.all():
        return result
    result = np.where(safe, result, 0.0)
    for index in zip(*np.nonzero(~safe), strict=True):
        result[index] = _fma_one(float(a[index]), float(b[index]), float(c[index]))
    return result


def _fma_one(a: float, b: float, c: float) -> float:
    with np.errstate(all="ignore"):
        if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
            # Overflow of the product must not hide a finite product with an infinite c.
            finite = np.isfinite(a) and np.isfinite(b)
            return float(c if finite else np.float64(a) * np.float64(b) + np.float64(c))
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        if exact == 0:
            return float(np.float64(a) * np.float64(b) * 0 + np.float64(c)) if c == 0 else 0.0
        return round_fraction(exact)


def round_fraction(value: Fraction) -> float:
    """Rounds to float64, nearest even; overflow gives an infinity."""
    try:
        return value.numerator / value.denominator  # Python rounds integer division correctly
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def ldexp(x: np.ndarray, power: np.ndarray) -> np.ndarray:
    """Returns x * 2**power with one rounding."""
    power = np.clip(power.astype(np.int64), -3000, 3000).astype(np.int32)
    if x.dtype == np.float64:
        return np.ldexp(x, power)
    # f64 can represent any f32 scaled by ±400: only the conversion rounds. Beyond that the result
    # is 0 or infinite in any case.
    wide = np.ldexp(x.astype(np.float64), np.clip(power, -400, 400))
    return wide.astype(x.dtype)


def toward_zero(x: np.ndarray, dtype: type) -> np.ndarray:
    """Rounds float64 `x` toward zero to a narrower float; overflow gives the largest number."""
    result = x.astype(dtype)
    away = np.abs(result.astype(np.float64)) > np.abs(x)
    return np.where(away, (bits(result) - 1).astype(bits(result).dtype), bits(result)).view(dtype)


def minimum(a: np.ndarray, b: np.ndarray, ieee: bool) -> np.ndarray:
    """V_MIN: prefers a number to NaN, -0 is below +0; in IEEE mode returns a quieted sNaN."""
    return _extreme(a, b, ieee, np.where((a == 0) & (b == 0), np.signbit(a), a < b))


def maximum(a: np.ndarray, b: np.ndarray, ieee: bool) -> np.ndarray:
    return _extreme(a, b, ieee, np.where((a == 0) & (b == 0), np.signbit(b), a > b))


def _extreme(a, b, ieee: bool, first: np.ndarray) -> np.ndarray:
    result = np.where(first, a, b)
    result = np.where(np.isnan(a), b, np.where(np.isnan(b), a, result))
    if ieee:
        result = np.where(is_signalling(b), b, result)
        result = np.where(is_signalling(a), a, result)
    return quiet(result)


def minimum3(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """V_MINIMUM3 (CDNA4): IEEE 754-2019 minimum of all: NaN if any is NaN; -0 is below +0."""
    stacked = np.stack(np.broadcast_arrays(a, b, c))
    least = np.min(stacked, axis=0)
    negative_zero = ((stacked == 0) & np.signbit(stacked)).any(axis=0)
    least = np.where((least == 0) & negative_zero, -np.zeros_like(least), least)
    return quiet(np.where(np.isnan(stacked).any(axis=0), least.dtype.type(np.nan), least))


def maximum3(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return -minimum3(-a, -b, -c)


def median(a, b, c, ieee: bool) -> np.ndarray:
    """V_MED3: the minimum of the three if any is NaN."""
    top = maximum(maximum(a, b, ieee), c, ieee)
    result = np.where(
        bits(top) == bits(a),
        maximum(b, c, ieee),
        np.where(bits(top) == bits(b), maximum(a, c, ieee), maximum(a, b, ieee)),
    )
    lowest = minimum(minimum(a, b, ieee), c, ieee)
    return np.where(np.isnan(a) | np.isnan(b) | np.isnan(c), lowest, result)


CLASSES = ("sNaN", "qNaN", "-inf", "-norm", "-denorm", "-0", "+0", "+denorm", "+norm", "+inf")


def classify(x: np.ndarray) -> np.ndarray:
    """Returns V_CMP_CLASS's bit of each element, uint32."""
    negative = np.signbit(x)
    kind = np.full(x.shape, 8)
    kind = np.where(np.isinf(x), 9, kind)
    kind = np.where(is_denormal(x), 7, kind)
    kind = np.where(x == 0, 6, kind)
    kind = np.where(negative, 11 - kind, kind)
    kind = np.where(np.isnan(x), np.where(is_signalling(x), 0, 1), kind)
    return (np.uint32(1) << kind.astype(np.uint32)).astype(np.uint32)


def to_integer(x: np.ndarray, dtype: type) -> np.ndarray:
    """Truncates, clamps to the type's range; NaN gives 0."""
    info = np.iinfo(dtype)
    # float64 represents every bound of 32 bits or fewer exactly.
    wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300))
    return np.clip(wide, info.min, info.max).astype(np.int64).astype(dtype)


def divide_scale(s0, s1, s2):
    """V_DIV_SCALE: (result, VCC). s1 is the denominator, s2 the numerator, s0 is one of them.

    The manual's f32 text says `1 / 64'F(S1) == DENORM`; the branches are meant in the operation's
    own type, as in its f64 text. If both denormal conditions hold, its `ldexp(S0, 64)` would scale
    a denominator near the largest number to infinity; only scaling down can be undone by
    V_DIV_FMAS and gives the correct quotient.
    """
    kind = s0.dtype
    single = kind == np.float32
    step, far, tiny = (64, 96, 23) if single else (128, 768, 53)
    up = ldexp(s0, np.full(s0.shape, step))
    down = ldexp(s0, np.full(s0.shape, -step))
    inverse = kind.type(1) / s1
    ratio_denormal = _ratio_is_denormal(s2, s1)
    same1, same2 = bits(s0) == bits(s1), bits(s0) == bits(s2)
    gap = exponent(s2) - exponent(s1)
    conditions = [
        (s1 == 0) | (s2 == 0),
        gap >= far,
        is_denormal(s1),
        is_denormal(inverse) & ratio_denormal,
        is_denormal(inverse),
        ratio_denormal,
        exponent(s2) <= tiny,
    ]
    results = [
        np.full(s0.shape, np.nan, kind),
        np.where(same1, up, s0),
        up,
        np.where(same1, down, s0),
        down,
        np.where(same2, up, s0),
        up,
    ]
    flags = [False, True, False, True, False, True, False]
    shape = np.broadcast_shapes(s0.shape, s1.shape, s2.shape)
    conditions = [np.broadcast_to(condition, shape) for condition in conditions]
    result = np.select(conditions, [np.broadcast_to(r, shape) for r in results], s0)
    flag = np.select(conditions, [np.full(shape, f) for f in flags], False)
    return result, flag


def _ratio_is_denormal(n: np.ndarray, d: np.ndarray) -> np.ndarray:
    return is_denormal(n / d)


def divide_fmas(a, b, c, flag) -> np.ndarray:
    """V_DIV_FMAS: fma, scaled back if V_DIV_SCALE's flag is set; rounded once, after that.

    The early manuals' factor 2**32 does not undo either case of V_DIV_SCALE; the later ones' 2**±64
    (f64: 2**±128) by the quotient's size does. With two roundings, denormal quotients would be
    wrong in the last bit, which OpenCL's conformance tests don't allow.
    """
    shape = np.broadcast_shapes(a.shape, b.shape, c.shape, flag.shape)
    a, b, c, flag = (np.broadcast_to(x, shape) for x in (a, b, c, flag))
    single = a.dtype == np.float32
    step = 64 if single else 128
    power = np.where(exponent(c) > BIAS[c.dtype], step, -step)
    if single:
        exact = odd_sum(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))
        return np.ldexp(exact, np.where(flag, power, 0)).astype(a.dtype)
    plain = fma(a, b, c)
    result = np.where(flag, ldexp(plain, power), plain)
    for index in zip(*np.nonzero(flag & is_denormal(result)), strict=True):
        exact = Fraction(float(a[index])) * Fraction(float(b[index])) + Fraction(float(c[index]))
        result[index] = round_fraction(exact * Fraction(2) ** int(power[index]))
    return result


def divide_fixup(q, d, n) -> np.ndarray:
    """V_DIV_FIXUP: the quotient's special cases. Operands: quotient, denominator, numerator.

    A quotient that overflows between V_DIV_SCALE and here has become NaN (inf - inf); for operands
    that are numbers the result is infinity. The manual's text omits that case, IEEE doesn't.
    """
    kind = q.dtype
    negative = np.signbit(d) ^ np.signbit(n)
    sign = np.where(negative, kind.type(-1), kind.type(1))
    default = bits(np.full(q.shape, np.nan, kind)) | UNSIGNED[kind](1 << (8 * kind.itemsize - 1))
    limit = {2: -1000, 4: -150, 8: -1075}[kind.itemsize]
    with np.errstate(invalid="ignore"):
        cases = [
            (np.isnan(n), quiet(n)),
            (np.isnan(d), quiet(d)),
            ((d == 0) & (n == 0), default.view(kind)),
            (np.isinf(d) & np.isinf(n), default.view(kind)),
            ((d == 0) | np.isinf(n), sign * kind.type(np.inf)),
            (np.isinf(d) | (n == 0), sign * kind.type(0)),
            (exponent(n) - exponent(d) < limit, sign * kind.type(0)),
            (np.isnan(q), sign * kind.type(np.inf)),
        ]
    shape = np.broadcast_shapes(q.shape, d.shape, n.shape)
    return np.select(
        [np.broadcast_to(condition, shape) for condition, _ in cases],
        [np.broadcast_to(value, shape) for _, value in cases],
        np.copysign(q, sign),
    )
