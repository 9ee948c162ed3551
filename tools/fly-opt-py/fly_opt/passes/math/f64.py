"""Functions of f32 computed in f64 and rounded once.

In f64, short truncated series suffice: the truncation error is below 2⁻³⁰ of the result, so a
result is the nearest f32, or its neighbour if the exact value lies within 2⁻⁶ ulp of the midpoint
between two of them. Special values are those of C (Annex F).
"""

from __future__ import annotations

from collections.abc import Callable
from math import e, factorial, inf, log2, nan, pi, sqrt

from fly_opt.passes.math.number import Number, fma, polynomial, repeated, where

# log 2 as the sum of two f64, the first with 32 bits: its product with k is exact.
LN2_HIGH = float.fromhex("0x1.62e42feep-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
MOST = 200.0  # e^200 and e^-200 are outside the range of f32

# Taylor series of (e^r - 1 - r) / r² for |r| <= log(2)/2; of atanh(s)/s in s² for
# |s| <= (√2 - 1)/(√2 + 1); of atan(t)/t in t² for |t| <= tan(π/8).
EXPONENTIAL = tuple(1 / factorial(n + 2) for n in range(8))
LOGARITHM = tuple(1 / (2 * n + 1) for n in range(7))
ARC = tuple((-1) ** n / (2 * n + 1) for n in range(12))
TAN_EIGHTH = sqrt(2) - 1

# log(erfc(x)/t) + x² as a polynomial in t = 2/(2 + x), for x from 0 to 10.5, where erfc is 0 in
# f32: a Chebyshev interpolant, which tests/fly_opt/passes/test_mathematics.py recomputes.
ERFC = (
    -1.2655022968738665,
    0.9996605392650059,
    0.3802294498236791,
    0.0358063888772006,
    0.19797758731019924,
    -1.3180073603487417,
    3.351021375654107,
    -7.1499000267416655,
    10.599269758927282,
    -10.067808060345381,
    6.022517166732518,
    -2.17599515684416,
    0.4220905717818318,
    -0.03135993714400024,
)


def exponential(x: Number, less: float = 0) -> Number:
    """Computes e^x - less, where `less` is 0 or 1; with 1, accurate for small x. x is clamped to
    ±200."""
    x = where(x > MOST, MOST, where(x < -MOST, -MOST, x))
    k = (x * log2(e)).rounded()
    rest = fma(-k, LN2_LOW, fma(-k, LN2_HIGH, x))
    grown = fma(polynomial(rest, EXPONENTIAL), rest * rest, rest)
    power = x.like(1).times_power_of_two(k)
    return fma(grown, power, power - less)


def logarithm(u: Number, x: Number | None = None) -> Number:
    """Computes log u; more accurate near 1 if `x`, the exact u - 1, is given."""
    mantissa, exponent = u.mantissa(), u.exponent()
    low = mantissa < sqrt(0.5)
    mantissa = where(low, mantissa + mantissa, mantissa)
    exponent = where(low, exponent - 1, exponent)
    upper, lower = mantissa - 1, mantissa + 1
    if x is not None:
        near = (x > sqrt(0.5) - 1) & (x < sqrt(2) - 1)
        upper, lower = where(near, x, upper), where(near, x + 2, lower)
        exponent = where(near, 0, exponent)
    s = upper / lower
    series = polynomial(s * s, LOGARITHM) * (s + s)
    result = fma(exponent, LN2_HIGH, fma(exponent, LN2_LOW, series))
    result = where(u.equals(inf), inf, where(u.equals(0), -inf, result))
    return where(u < 0, nan, result)


def logarithm1p(x: Number) -> Number:
    """Computes log(1 + x)."""
    return where(x.equals(0), x, logarithm(x + 1, x))


def arc(y: Number, x: Number) -> Number:
    """Computes the angle of the point (x, y), from -π to π, respecting signed zeros and
    infinities."""
    high, wide = abs(y), abs(x)
    corner = high.equals(inf) & wide.equals(inf)
    high, wide = where(corner, 1, high), where(corner, 1, wide)
    steep = high > wide
    upper, lower = where(steep, wide, high), where(steep, high, wide)
    # atan(u/l) = π/4 + atan((u - l)/(u + l))
    beyond = upper > lower * TAN_EIGHTH
    t = where(beyond, upper - lower, upper) / where(beyond, upper + lower, lower)
    t = where(upper.equals(0) & lower.equals(0), 0, t)
    angle = fma(polynomial(t * t, ARC), t, where(beyond, x.like(pi / 4), 0))
    angle = where(steep, pi / 2 - angle, angle)
    left = x.like(1).with_sign_of(x) < 0
    return where(left, pi - angle, angle).with_sign_of(y)


def expm1(x: Number) -> Number:
    return where(x.equals(0), x, exponential(x, 1))


def sinh(x: Number) -> Number:
    grown = exponential(abs(x), 1)
    return ((grown + grown / (grown + 1)) * 0.5).with_sign_of(x)


def cosh(x: Number) -> Number:
    power = exponential(abs(x))
    return (power + 1 / power) * 0.5


def asinh(x: Number) -> Number:
    a = abs(x)
    square = a * a
    result = logarithm1p(a + square / ((square + 1).sqrt() + 1))
    return where(a < inf, result, a).with_sign_of(x)


def acosh(x: Number) -> Number:
    over = x - 1
    result = logarithm1p(over + (over * (over + 2)).sqrt())
    return where(over < 0, nan, result)


def atanh(x: Number) -> Number:
    a = abs(x)
    return (logarithm1p((a + a) / (1 - a)) * 0.5).with_sign_of(x)


def atan(x: Number) -> Number:
    return arc(x, x.like(1))


def asin(x: Number) -> Number:
    return arc(x, ((1 - x) * (x + 1)).sqrt())


def acos(x: Number) -> Number:
    return arc(((1 - x) * (x + 1)).sqrt(), x)


def erfc(x: Number) -> Number:
    a = abs(x)
    t = 2 / (a + 2)
    result = t * exponential(polynomial(t, ERFC) - a * a)
    return where(x < 0, 2 - result, result)


def cbrt(x: Number) -> Number:
    root = exponential(logarithm(abs(x)) * (1 / 3))
    return where(x.equals(0), x, root.with_sign_of(x))


def power(x: Number, y: Number) -> Number:
    """Computes x to the power y: IEEE 754's pow."""
    a = abs(x)
    result = exponential(y * logarithm(a))
    result = where(a.equals(1) & abs(y).equals(inf), 1, result)
    integral = y.floor().equals(y)
    half = y * 0.5
    odd = integral & ~half.floor().equals(half)
    left = x.like(1).with_sign_of(x) < 0
    result = where(left & odd, -result, result)
    result = where((x < 0) & (x > -inf) & ~integral, nan, result)
    return where(x.equals(1) | y.equals(0), 1, result)


def remainder(x: Number, y: Number) -> Number:
    """C's fmod, exact: x - n·y, where n is x/y truncated to an integer."""
    a, b = abs(x), abs(y)
    scale = b.exponent() + 28

    def less(rest: Number) -> Number:
        # A multiple of y such that the quotient has 29 bits: its product is exact in f64.
        above = rest.exponent() - scale
        step = b.times_power_of_two(where(above > 0, above, 0))
        left = fma(-(rest / step).floor(), step, rest)
        return where(left < 0, left + step, left)  # if the quotient was rounded up

    rest = repeated(lambda rest: (rest >= b) & (b > 0) & (a < inf), less, a)
    known = (a < inf) & (b > 0)  # false if an operand is NaN
    return where(known, rest, nan).with_sign_of(x)


def _in_f64(function: Callable[..., Number]) -> Callable[..., Number]:
    def rounded(*operands: Number) -> Number:
        return function(*(operand.widened() for operand in operands)).narrowed()

    return rounded


_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "math.expm1": expm1,
    "math.log1p": logarithm1p,
    "math.sinh": sinh,
    "math.cosh": cosh,
    "math.asinh": asinh,
    "math.acosh": acosh,
    "math.atanh": atanh,
    "math.atan": atan,
    "math.atan2": arc,
    "math.asin": asin,
    "math.acos": acos,
    "math.erfc": erfc,
    "math.cbrt": cbrt,
    "math.powf": power,
    "math.fpowi": power,
    "arith.remf": remainder,
}
FUNCTIONS = {name: _in_f64(function) for name, function in _FUNCTIONS.items()}
