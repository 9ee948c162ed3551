"""Functions of f32 that LLVM's NVPTX code generation does not expand: exponentials and logarithms.

LLVM lowers exp2 to ex2.approx, which has an error of 2 ULP, and rejects the others. These formulas
keep the errors that docs/fly-opt-py.md states for every target. With the fast-math flag `afn`, the
hardware's approximations are used instead (`APPROXIMATIONS`).

Coefficients are Chebyshev interpolants; tests/fly_opt/backends/nvidia/test_formulas.py recomputes
them and measures the errors.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log2, nan

from fly_dialect.bindings import ir

from fly_opt.ir.intrinsics import call
from fly_opt.passes.math.number import Number, fma, polynomial, where

# 2^23 + 2^22: a float near it has a spacing of 1, so that adding it to a number rounds that to an
# integer, which the low bits of the sum hold.
ROUNDING, ROUNDING_BITS = 12582912.0, 0x4B400000
ONE_BITS = 127 << 23  # of 1.0

# Beyond these e^x and 2^x are 0 and infinity.
EXP_RANGE = (-105.0, 89.0)
EXP2_RANGE = (-151.0, 129.0)
# log 2 as the sum of two f32, the first with 15 bits: its product with an exponent is exact.
LN2 = (0.693145751953125, 1.4286068203094173e-06)
# (e^r - 1 - r) / r² as a polynomial for |r| <= log(2)/2.
EXPONENTIAL = (
    0.5000000115470018,
    0.1666657684599399,
    0.041666170284794454,
    0.008363202971576944,
    0.0013951773944671916,
)
# (2^r - 1) / r as a polynomial for |r| <= 1/2.
POWER = (
    0.6931472067028343,
    0.24022650922285238,
    0.05550327226668047,
    0.009618056678956894,
    0.0013400428178172593,
    0.00015461444574035835,
)
# (log(1 + f) - f) / f² as a polynomial for f from -1/3 to 1/3.
LOGARITHM = (
    -0.5000000036450564,
    0.33333333670734316,
    -0.24999837266278055,
    0.19999849370106976,
    -0.16678195777591578,
    0.14296384741760365,
    -0.12217620935919472,
    0.10849824981110721,
    -0.12745526261409887,
    0.1162998565308186,
)
TWO_THIRDS_BITS = 0x3F2AAAAB
SMALLEST_NORMAL = 2.0**-126

# The base's 1/log(b) and log(2)/log(b), each as the sum of two f32. The first part of the latter
# has 15 bits.
NATURAL = ((1.0, 0.0), LN2)
BINARY = ((1.4426950216293335, 1.9259629911266175e-08), (1.0, 0.0))
DECIMAL = (
    (0.4342944920063019, -1.0103050052231683e-08),
    (0.301025390625, 4.605038981195214e-06),
)


def exp(x: Number) -> Number:
    return _scaled(_clamped(x, EXP_RANGE), log2(2.718281828459045), _exponential)


def exp2(x: Number) -> Number:
    return _scaled(_clamped(x, EXP2_RANGE), 1.0, _power)


def _exponential(x: Number, k: Number) -> Number:
    rest = fma(-k, LN2[1], fma(-k, LN2[0], x))
    return polynomial(rest, (1.0, 1.0, *EXPONENTIAL))


def _power(x: Number, k: Number) -> Number:
    return polynomial(x - k, (1.0, *POWER))


def _clamped(x: Number, limits: tuple[float, float]) -> Number:
    """Limits x to a range; a NaN stays one."""
    for name, limit in zip(("maximum", "minimum"), limits, strict=True):
        x = Number(call(f"llvm.{name}.f32", x.value.type, [x.value, x.like(limit).value]))
    return x


def _scaled(x: Number, factor: float, rest: Callable[[Number, Number], Number]) -> Number:
    """Returns rest(x, k)·2^k, where k is factor·x rounded. It multiplies by 2^k in two steps: the
    first product is exact, and a subnormal result is rounded once."""
    total = fma(x, factor, ROUNDING)
    value = rest(x, total - ROUNDING)
    k = _integer("subi", _bits(total), ROUNDING_BITS)
    half = _integer("shrsi", k, 1)
    return value * _power_of_two(half) * _power_of_two(_integer("subi", k, half))


def log(x: Number) -> Number:
    return _logarithm(x, NATURAL)


def log2_(x: Number) -> Number:
    return _logarithm(x, BINARY)


def log10(x: Number) -> Number:
    return _logarithm(x, DECIMAL)


def _logarithm(x: Number, base: tuple[tuple[float, float], tuple[float, float]]) -> Number:
    """Computes k·log 2 + log m for x = m·2^k with m from 2/3 to 4/3, divided by the base's
    logarithm. The greatest part of log m, m - 1, is exact and added with its rounding error."""
    (high, low), (step_high, step_low) = base
    small = x < SMALLEST_NORMAL
    bits = _bits(where(small, x * 2.0**24, x))
    exponent = _integer("andi", _integer("subi", bits, TWO_THIRDS_BITS), 0xFF800000)
    f = _float(_integer("subi", bits, exponent)) - 1
    k = _from_integer(_integer("shrsi", exponent, 23)) - where(small, x.like(24), 0)
    rest = polynomial(f, LOGARITHM) * (f * f)
    if high == 1:
        first, rest = f, rest
    else:
        first = f * high
        rest = fma(rest, high, fma(f, low, fma(f, high, -first)))
    whole = k * step_high
    # |whole| is 0 or at least |first|, as Dekker's sum needs.
    total = whole + first
    error = first - (total - whole)
    result = total + (error + fma(k, step_low, rest) if step_low else error + rest)
    special = where(x.equals(0), -inf, where(x < 0, nan, x))
    return where((x > 0) & (x < inf), result, special)


# -- bits ------------------------------------------------------------------------------------------


def _bits(x: Number) -> ir.Value:
    i32 = ir.IntegerType.get_signless(32)
    return ir.Operation.create("arith.bitcast", [i32], [x.value]).results[0]


def _float(bits: ir.Value) -> Number:
    return Number(ir.Operation.create("arith.bitcast", [ir.F32Type.get()], [bits]).results[0])


def _from_integer(value: ir.Value) -> Number:
    return Number(ir.Operation.create("arith.sitofp", [ir.F32Type.get()], [value]).results[0])


def _integer(name: str, a: ir.Value, b: ir.Value | int) -> ir.Value:
    if isinstance(b, int):
        number = ir.IntegerAttr.get(a.type, b - (b >> 31 << 32))
        b = ir.Operation.create("arith.constant", [a.type], [], {"value": number}).results[0]
    return ir.Operation.create(f"arith.{name}", [a.type], [a, b]).results[0]


def _power_of_two(k: ir.Value) -> Number:
    """Returns 2^k for an i32 within the range of normal floats."""
    return _float(_integer("addi", _integer("shli", k, 23), ONE_BITS))


FUNCTIONS: dict[str, Callable[[Number], Number]] = {
    "math.exp": exp,
    "math.exp2": exp2,
    "math.log": log,
    "math.log2": log2_,
    "math.log10": log10,
}


# -- approximations --------------------------------------------------------------------------------


def _approximate_power(x: Number) -> Number:
    """ex2.approx.ftz.f32: an error of 2 ULP; subnormals are 0."""
    return Number(call("llvm.nvvm.ex2.approx.ftz.f", x.value.type, [x.value]))


def _approximate_log2(x: Number) -> Number:
    """lg2.approx.ftz.f32: an absolute error of 2^-22 near 1; subnormals are 0."""
    return Number(call("llvm.nvvm.lg2.approx.ftz.f", x.value.type, [x.value]))


def _hardware(name: str) -> Callable[[Number], Number]:
    """An intrinsic that LLVM lowers to one approximate instruction if it has the flag `afn`."""

    def function(x: Number) -> Number:
        fast = ir.Attribute.parse("#llvm.fastmath<afn>")
        return Number(call(f"llvm.{name}.f32", x.value.type, [x.value], fast))

    return function


APPROXIMATIONS: dict[str, Callable[[Number], Number]] = {
    "math.exp": lambda x: _approximate_power(x * log2(2.718281828459045)),
    "math.exp2": _approximate_power,
    "math.log": lambda x: _approximate_log2(x) * (1 / log2(2.718281828459045)),
    "math.log2": _approximate_log2,
    "math.log10": lambda x: _approximate_log2(x) * (1 / log2(10)),
    "math.sin": _hardware("sin"),
    "math.cos": _hardware("cos"),
    "math.tanh": _hardware("tanh"),
}
