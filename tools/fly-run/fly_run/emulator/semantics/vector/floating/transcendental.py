"""Reciprocal, square root, exponential, logarithm, sine and cosine.

f32 and f16 are evaluated in f64 by polynomials with an error below 2^-40, so the f32 result is
correctly rounded except for about one argument in 2^16, where it is off by one ulp. The
hardware's results are within 1 ulp of exact; they are not modelled bit by bit. f64 reciprocal, root
and reciprocal root are correctly rounded or within 1 ulp, more accurate than the hardware's, which
LLVM refines with Newton steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, valu

Body = Callable[[Lanes, Value], Value]
CHUNK = 16


def operations() -> Iterator[Operation]:
    for name, body in FUNCTIONS.items():
        yield valu(f"v_{name}_f32", "float = float", _in_double(body), chunk=CHUNK)
        yield valu(f"v_{name}_f16", "half = half", _in_double(body), chunk=CHUNK)
    # gfx1250
    yield valu("v_tanh_f32", "float = float", _in_double(tanh), chunk=CHUNK)
    yield valu("v_tanh_f16", "half = half", _in_double(tanh), chunk=CHUNK, keeps_high=True)
    for name in ("exp", "log"):
        # Low-precision versions, on hardware that still has them.
        body = _in_double(FUNCTIONS[name])
        yield valu(f"v_{name}_legacy_f32", "float = float", body, chunk=CHUNK)
    for name, body in DIRECT.items():
        for element, short in (("half", "f16"), ("float", "f32"), ("double", "f64")):
            yield valu(f"v_{name}_{short}", f"{element} = {element}", _direct(body), chunk=CHUNK)
    yield valu("v_rsq_f64", "double = double", FUNCTIONS["rsq"], chunk=CHUNK)
    yield valu("v_rcp_iflag_f32", "float = float", _direct(DIRECT["rcp"]), chunk=CHUNK)


def _in_double(body: Body) -> Body:
    def run(k: Lanes, a: Value) -> Value:
        wide = a.convert("fpext", "float") if a.element == "half" else a
        result = body(k, wide.convert("fpext", "double")).convert("fptrunc", "float")
        return result.convert("fptrunc", "half") if a.element == "half" else result

    return run


def _direct(body: Body) -> Body:
    def run(k: Lanes, a: Value) -> Value:
        if a.element != "half":
            return body(k, a)
        return body(k, a.convert("fpext", "float")).convert("fptrunc", "half")

    return run


def _horner(x: Value, coefficients: list[float]) -> Value:
    """Evaluates the polynomial with these coefficients, lowest first."""
    total = x.like(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = x.function.intrinsic("llvm.fma", total, x, x.like(coefficient))
    return total


def _special(k: Lanes, condition: Value, number: float, otherwise: Value) -> Value:
    return condition.select(otherwise.like(number), otherwise)


def _exp2(k: Lanes, x: Value) -> Value:
    """2^x: 2^n · e^(f·ln 2) with |f| ≤ 1/2, by a Taylor series to the 12th power (2^-43)."""
    f = k.handler
    # Outside these bounds the f32 result is infinite or zero; NaN passes through.
    bounded = f.intrinsic(
        "llvm.minnum", f.intrinsic("llvm.maxnum", x, x.like(-400.0)), x.like(400.0)
    )
    whole = f.intrinsic("llvm.rint", bounded)
    part = (bounded - whole) * math.log(2.0)
    series = _horner(part, [1.0 / math.factorial(n) for n in range(13)])
    exponent = whole.convert("fptosi", "i32").sext("i64")
    power = ((exponent + 1023) << 52).bits("double")
    return x.is_nan().select(x, series * power)


def _log2(k: Lanes, x: Value) -> Value:
    """log2: exponent + log2(m), m in [√½, √2), by the series of atanh((m-1)/(m+1)) (2^-45).

    An f32 is never denormal as f64, so the exponent field is always valid.
    """
    bits = x.bits("i64")
    exponent = (bits.lshr(52) & 0x7FF) - 1023
    mantissa = ((bits & ((1 << 52) - 1)) | (1023 << 52)).bits("double")
    large = mantissa.compare("ogt", math.sqrt(2.0))
    mantissa = large.select(mantissa * 0.5, mantissa)
    exponent = (exponent + large.zext("i64")).trunc("i32").convert("sitofp", "double")
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    series = _horner(square, [2.0 / math.log(2.0) / (2 * n + 1) for n in range(9)])
    result = k.handler.intrinsic("llvm.fma", ratio, series, exponent)
    result = _special(k, x.compare("oeq", float("inf")), float("inf"), result)
    result = _special(k, x.compare("oeq", 0.0), float("-inf"), result)
    result = _special(k, x.compare("olt", 0.0), float("nan"), result)
    return x.is_nan().select(x, result)


def _turns(cosine: bool) -> Body:
    """sin(2πx), cos(2πx): the argument is in turns. The nearest quarter turn is subtracted, which
    is exact, and the rest (|r| ≤ π/4) is evaluated by a Taylor series (2^-46)."""

    def run(k: Lanes, x: Value) -> Value:
        f = k.handler
        part = x - f.intrinsic("llvm.rint", x)
        quarter = f.intrinsic("llvm.rint", part * 4.0)
        angle = (part - quarter * 0.25) * (2.0 * math.pi)
        square = angle * angle
        sine = angle * _horner(square, [(-1) ** n / math.factorial(2 * n + 1) for n in range(8)])
        other = _horner(square, [(-1) ** n / math.factorial(2 * n) for n in range(8)])
        number = quarter.convert("fptosi", "i32") + (1 if cosine else 0)
        value = (number & 1).compare("ne", 0).select(other, sine)
        value = (number & 2).compare("ne", 0).select(-value, value)
        if not cosine:
            value = x.compare("oeq", 0.0).select(x, value)  # keeps -0
        infinite = f.intrinsic("llvm.fabs", x).compare("oeq", float("inf"))
        value = _special(k, infinite, float("nan"), value)
        return x.is_nan().select(x, value)

    return run


FUNCTIONS: dict[str, Body] = {
    "exp": _exp2,
    "log": _log2,
    "sin": _turns(cosine=False),
    "cos": _turns(cosine=True),
    "rsq": lambda k, x: 1.0 / k.handler.intrinsic("llvm.sqrt", x),
}

# |x| below this: a series; e^2x - 1 would lose digits.
SMALL = 0.125


def tanh(k: Lanes, x: Value) -> Value:
    """(e^2x - 1) / (e^2x + 1), and by the series x - x^3/3 + … near 0 (2^-48)."""
    f = k.handler
    square = x * x
    terms = [1, -1 / 3, 2 / 15, -17 / 315, 62 / 2835, -1382 / 155925, 21844 / 6081075]
    series = x * _horner(square, [float(term) for term in terms])
    # Beyond 22 the result is 1 in f32 already.
    bounded = f.intrinsic("llvm.minnum", f.intrinsic("llvm.fabs", x), x.like(40.0))
    power = _exp2(k, bounded * (2.0 / math.log(2.0)))
    size = (power - 1.0) / (power + 1.0)
    large = f.intrinsic("llvm.copysign", size, x)
    small = f.intrinsic("llvm.fabs", x).compare("olt", SMALL)
    return x.is_nan().select(x, small.select(series, large))


DIRECT: dict[str, Body] = {
    "rcp": lambda k, x: 1.0 / x,
    "sqrt": lambda k, x: k.handler.intrinsic("llvm.sqrt", x),
}
