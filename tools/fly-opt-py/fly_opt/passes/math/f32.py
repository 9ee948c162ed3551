"""Functions of f32 computed in f32: those that dominate in neural networks.

Each formula handles NaN, infinities and the sign of zero as IEEE 754 and C (Annex F) require.
Coefficients are Chebyshev interpolants; tests/fly_opt/passes/test_mathematics.py recomputes them
and measures the errors that docs/fly-opt-py.md states.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, pi

from fly_opt.passes.math.number import Number, either, fma, polynomial, where

# (tanh(x) - x) / x³ as a polynomial in x², for |x| <= 0.64.
TANH = (
    -0.3333333312343713,
    0.13333296352751664,
    -0.05395759512615173,
    0.02175570031554327,
    -0.00830169529333776,
    0.002246003629513375,
)
# (erf(x) - x) / x as a polynomial in x², for |x| <= 0.93.
ERF_NEAR = (
    0.12837916662064464,
    -0.3761263351714253,
    0.11283691519750282,
    -0.0268591514730911,
    0.005200368587992007,
    -0.0008134709340867497,
    8.334718638930435e-05,
)
# log(1 - erf(x)) as a polynomial in x, from 0.92 to 4, where erf is 1 in f32.
ERF_FAR = (
    0.0003204415379833847,
    -1.1302376163989407,
    -0.6318145166231116,
    -0.11009448085686953,
    0.02643101761720803,
    -0.004763575253072617,
    0.0005977434726031918,
    -4.6177912844574475e-05,
    1.6435696552881345e-06,
)
# (sin(r) - r) / r³ and (cos(r) - 1) / r² as polynomials in r², for |r| <= π/4: Taylor series.
SINE = tuple((-1) ** n / factorial(2 * n + 1) for n in range(1, 6))
COSINE = tuple((-1) ** n / factorial(2 * n) for n in range(1, 7))

# π/2 as the sum of three f32: exact enough for k·π/2 up to k = 2¹⁵ with 57 fraction bits.
HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
NEAR = 2.0**15  # up to here three terms suffice
# 2/π as integers of 28 bits; the first holds the bits from 2⁻¹ to 2⁻²⁸ (enough digits of the
# fraction to reduce f32's greatest exponent, 128, and 60 more).
TWO_OVER_PI = (
    0xA2F9836,
    0xE4E4415,
    0x29FC275,
    0x7D1F534,
    0xDDC0DB6,
    0x295993C,
    0x439041F,
)


def tanh(x: Number) -> Number:
    """Uses 1 - 2/(e^2x + 1) from 0.64 on."""
    a, square = abs(x), x * x
    near = fma(polynomial(square, TANH) * square, x, x)
    far = 1 - 2 / ((a + a).exp() + 1)
    return where(a < 0.64, near, far).with_sign_of(x)


def erf(x: Number) -> Number:
    """Uses 1 - e^P(x) from 0.92 on."""
    a = abs(x)
    near = fma(polynomial(x * x, ERF_NEAR), x, x)
    far = 1 - polynomial(where(a > 4, 4, a), ERF_FAR).exp()
    return where(a < 0.92, near, far).with_sign_of(x)


def sin(x: Number) -> Number:
    rest, quadrant = reduced(x)
    return where(x.equals(0), x, _of_quadrant(rest, quadrant))


def cos(x: Number) -> Number:
    """Computes sin(x + π/2)."""
    rest, quadrant = reduced(x)
    return _of_quadrant(rest, _modulo(quadrant + 1, 4))


def tan(x: Number) -> Number:
    rest, quadrant = reduced(x)
    sine, cosine = _sine(rest), _cosine(rest)
    turned = quadrant.equals(1) | quadrant.equals(3)
    result = where(turned, -cosine, sine) / where(turned, sine, cosine)
    return where(x.equals(0), x, result)


def reduced(x: Number) -> tuple[Number, Number]:
    """Returns (r, q) with x = r + q·π/2, up to whole turns: r within ±π/4, q from 0 to 3. Both are
    NaN if x is not finite."""

    def near() -> tuple[Number, Number]:
        k = (x * (2 / pi)).rounded()
        rest = x
        for part in HALF_PI:
            rest = fma(-k, part, rest)
        return rest, _modulo(k, 4)

    rest, quadrant = either(abs(x) < NEAR, (x, x), near, lambda: _far(x))
    return rest, quadrant


def _far(x: Number) -> tuple[Number, Number]:
    """Reduces by the digits of 2/π, in f64 (after Payne and Hanek): each partial product of 24 and
    28 bits is exact, and so is its remainder modulo 4."""
    wide = x.widened()
    turns = quadrants = wide.like(0)
    for index, digits in enumerate(TWO_OVER_PI):
        turns = turns + _modulo(wide * (digits * 2.0 ** (-28 * (index + 1))), 4)
        # The integer is subtracted at once, so that small remainders keep all their bits.
        whole = turns.rounded()
        turns, quadrants = turns - whole, quadrants + whole
    return (turns * (pi / 2)).narrowed(), _modulo(quadrants, 4).narrowed()


def _modulo(x: Number, divisor: int) -> Number:
    """x modulo a power of two, exactly."""
    return fma((x * (1 / divisor)).floor(), -divisor, x)


def _of_quadrant(rest: Number, quadrant: Number) -> Number:
    turned = quadrant.equals(1) | quadrant.equals(3)
    value = where(turned, _cosine(rest), _sine(rest))
    return where(quadrant >= 2, -value, value)


def _sine(rest: Number) -> Number:
    square = rest * rest
    return fma(polynomial(square, SINE) * square, rest, rest)


def _cosine(rest: Number) -> Number:
    square = rest * rest
    return fma(polynomial(square, COSINE), square, 1)


FUNCTIONS: dict[str, Callable[..., Number]] = {
    "math.tanh": tanh,
    "math.erf": erf,
    "math.sin": sin,
    "math.cos": cos,
    "math.tan": tan,
}
