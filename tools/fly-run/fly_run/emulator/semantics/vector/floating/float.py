"""Vector floating point: arithmetic, rounding, mantissa and exponent, division steps (CDNA3 ISA
manual, section 16.8).

f32 and f64 are computed by the host's IEEE operations and are correctly rounded. f16 is computed
in f32 and rounded once more, which is exact for add, subtract, multiply and square root
(24 ≥ 2·11 + 2 bits); for fma there is `_fused16`. Denormals follow MODE through the host's control
word, those of f16 through steps around an operation (`denormals`). The payload of a NaN result is
not specified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fly_run.emulator.irgen import AS_INTEGER, FLOATS, Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, rows, valu

Body = Callable[..., Any]

MANTISSA = {"half": 10, "float": 23, "double": 52}
BIAS = {"half": 15, "float": 127, "double": 1023}
SHORT = {"half": "f16", "float": "f32", "double": "f64"}


def operations() -> Iterator[Operation]:
    for element, short in SHORT.items():
        # f16 is computed in f32, so it processes half the lanes at a time.
        options = {"chunk": 16} if element != "float" else {}
        for name, (count, body) in ARITHMETIC.items():
            if name in ("sub", "subrev", "mac", "mad") and element == "double":
                continue
            types = f"{element} = {', '.join([element] * count)}"
            if name == "fmac" or name == "mac":
                types = f"{element} += {element}, {element}"
            keeps = element == "half" and name in ("fma", "mad", "mac")
            yield valu(f"v_{name}_{short}", types, of(element, body), keeps_high=keeps, **options)
        for name, body in EXACT.items():
            yield valu(f"v_{name}_{short}", f"{element} = {element}", body, chunk=16)
        exponent = "i16" if element == "half" else "i32"
        yield valu(f"v_ldexp_{short}", f"{element} = {element}, {exponent}", _ldexp, chunk=16)
        yield valu(f"v_frexp_mant_{short}", f"{element} = {element}", _frexp_mant, chunk=16)
        yield valu(
            f"v_frexp_exp_{'i16' if element == 'half' else 'i32'}_{short}",
            f"{exponent} = {element}",
            _frexp_exp,
            chunk=16,
        )
    # With a literal as multiplicand (mk) or addend (ak), in the assembler's operand order.
    for name, body in (("fma", fused), ("mad", _unfused)):
        for kind in ("mk", "ak"):
            # LLVM's names are v_fmamk_f32, v_madak_f32.
            types = "float = float, float, float"
            yield valu(f"v_{name}{kind}_f32", types, body, kinds=WITH_LITERAL[kind][:1])
    for kind in ("mk", "ak"):  # gfx1250
        types, kinds = "double = double, double, double", WITH_LITERAL[kind][:1]
        yield valu(f"v_fma{kind}_f64", types, fused, chunk=16, kinds=kinds)
    for kind in ("mk", "ak"):
        types = "half = half, half, half"
        options = {"keeps_high": True, "kinds": WITH_LITERAL[kind]}
        yield valu(f"v_mad{kind}_f16", types, _unfused, chunk=16, **options)
    # Kept from gfx8: these clear the high half of the register.
    for name, body in (("mad", _unfused), ("fma", of("half", fused))):
        types = "half = half, half, half"
        yield valu(f"v_{name}_legacy_f16", types, body, chunk=16, kinds=rows(3))
    yield valu("v_mad_legacy_f32", "float = float, float, float", _mad_legacy, kinds=rows(3))
    yield valu("v_mul_legacy_f32", "float = float, float", _multiply_legacy)
    for element, short in SHORT.items():
        body = of(element, _fract(element))
        yield valu(f"v_fract_{short}", f"{element} = {element}", body, chunk=16)


# The literal is a scalar, and the other second source a vector register (VOP2). If f16 denormals
# are flushed, all sources are copies in rows.
WITH_LITERAL = {"mk": ("vsv", "vvv"), "ak": ("vvs", "vvv")}


def of(element: str, body: Body) -> Body:
    """Returns the body for an element type: f16 goes through f32."""
    if element != "half":
        return body
    if body in (fused, _unfused):
        return _fused16 if body is fused else body

    def run(k: Lanes, *values: Value) -> Value:
        result = body(k, *(value.convert("fpext", "float") for value in values))
        assert isinstance(result, Value)
        return result.convert("fptrunc", "half")

    return run


def fused(k: Lanes, a: Value, b: Value, c: Value) -> Value:
    return k.handler.intrinsic("llvm.fma", a, b, c)


def sum_to_odd(a: Value, b: Value) -> Value:
    """Computes a + b rounded to odd: rounding it again, to less than half the bits, then does not
    suffer from double rounding (Boldo and Melquiond, "When double rounding is odd")."""
    total = a + b
    back = total - a
    error = (a - (total - back)) + (b - back)
    bits, error_bits = integer(total), integer(error)
    inexact = error.compare("one", 0.0)
    even = (bits & 1).compare("eq", 0)
    # The exact sum is beyond `total`, away from zero, if the error has its sign.
    alike = (bits ^ error_bits).lshr(FLOATS[total.element] - 1).compare("eq", 0)
    step = alike.select(bits.like(1), bits.like(-1))
    return (inexact & even).select(bits + step, bits).bits(total.element)


def _fused16(k: Lanes, a: Value, b: Value, c: Value) -> Value:
    """The product of two halves is exact in f32; the sum is rounded to odd there."""
    x, y, z = (value.convert("fpext", "float") for value in (a, b, c))
    return sum_to_odd(x * y, z).convert("fptrunc", "half")


def _unfused(k: Lanes, a: Value, b: Value, c: Value) -> Value:
    """v_mad, v_mac: rounds the product, then the sum. In f32 they flush denormal sources and
    results in any MODE (LLVM: FMAD is legal in f32 only if denormals are flushed)."""
    if a.element == "half":
        x, y, z = (value.convert("fpext", "float") for value in (a, b, c))
        product = (x * y).convert("fptrunc", "half").convert("fpext", "float")
        return (product + z).convert("fptrunc", "half")
    return _flushed(_flushed(a) * _flushed(b) + _flushed(c))


def _flushed(value: Value) -> Value:
    """Replaces a denormal by a zero of its sign."""
    sign = (integer(value) & (1 << 31)).bits(value.element)
    return exponent_field(value).compare("eq", 0).select(sign, value)


def _multiply_legacy(k: Lanes, a: Value, b: Value) -> Value:
    """A product where 0 times anything is 0."""
    zero = a.compare("oeq", 0.0) | b.compare("oeq", 0.0)
    return zero.select(0.0, a * b)


def _mad_legacy(k: Lanes, a: Value, b: Value, c: Value) -> Value:
    product = _multiply_legacy(k, _flushed(a), _flushed(b))
    return _flushed(product + _flushed(c))


ARITHMETIC: dict[str, tuple[int, Body]] = {
    "add": (2, lambda k, a, b: a + b),
    "sub": (2, lambda k, a, b: a - b),
    "subrev": (2, lambda k, a, b: b - a),
    "mul": (2, lambda k, a, b: a * b),
    "fma": (3, fused),
    "fmac": (2, fused),
    "mad": (3, _unfused),
    "mac": (2, _unfused),
}


def _rounding(name: str) -> Body:
    def run(k: Lanes, a: Value) -> Value:
        if a.element == "half":
            wide = a.convert("fpext", "float")
            return k.handler.intrinsic(f"llvm.{name}", wide).convert("fptrunc", "half")
        return k.handler.intrinsic(f"llvm.{name}", a)

    return run


EXACT: dict[str, Body] = {
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "trunc": _rounding("trunc"),
    "rndne": _rounding("roundeven"),
}


def integer(value: Value) -> Value:
    return value.bits(AS_INTEGER[value.element])


def is_nan(value: Value) -> Value:
    """Tests an f16 by its bits, which needs no conversion."""
    if value.element != "half":
        return value.is_nan()
    return (integer(value) & 0x7FFF).compare("ugt", 0x7C00)


def is_signaling(value: Value) -> Value:
    return is_nan(value) & (integer(value) & _quiet_bit(value)).compare("eq", 0)


def _quiet_bit(value: Value) -> int:
    return 1 << (MANTISSA[value.element] - 1)


def quieted(value: Value) -> Value:
    return (integer(value) | _quiet_bit(value)).bits(value.element)


def first_nan(result: Value, *sources: Value) -> Value:
    """`result`, or the first of the sources that is a NaN, made quiet. Which of two NaNs the host's
    instruction returns depends on the order of its operands, which LLVM may exchange."""
    for source in reversed(sources):
        result = is_nan(source).select(quieted(source), result)
    return result


def order(value: Value) -> Value:
    """Returns integers with the order of the floats, with -0 below +0."""
    bits = integer(value)
    width = FLOATS[value.element]
    return bits ^ bits.ashr(width - 1).lshr(1)


def _fract(element: str) -> Body:
    """Computes a - floor(a), at most the largest number below 1 of the result's type (ISA manual);
    NaN for infinity, as the difference is."""
    largest = 1.0 - 2.0 ** -(MANTISSA[element] + 1)

    def run(k: Lanes, a: Value) -> Value:
        result = a - k.handler.intrinsic("llvm.floor", a)
        return result.compare("ogt", largest).select(largest, result)

    return run


# -- mantissa and exponent --------------------------------------------------------------------


def exponent_field(value: Value) -> Value:
    width = FLOATS[value.element]
    mask = (1 << (width - 1 - MANTISSA[value.element])) - 1
    return integer(value).lshr(MANTISSA[value.element]) & mask


def exponent_of_infinity(element: str) -> int:
    """Returns the exponent field of infinities and NaNs."""
    return (1 << (FLOATS[element] - 1 - MANTISSA[element])) - 1


def _power_of_two(exponent: Value, element: str) -> Value:
    """Returns 2 to an exponent (an integer of the element's width) in the normal range."""
    return ((exponent + BIAS[element]) << MANTISSA[element]).bits(element)


def scale(value: Value, exponent: Value) -> Value:
    """Computes value · 2^exponent, correctly rounded: at most three multiplications, of which only
    the last can be inexact. `exponent` is any number of the element's integer type."""
    element = value.element
    bias, mantissa = BIAS[element], MANTISSA[element]
    f = value.function
    most = 3 * (bias + mantissa)
    e = f.intrinsic(
        "llvm.smin", f.intrinsic("llvm.smax", exponent, exponent.like(-most)), exponent.like(most)
    )
    # Scaling down, stop short of the denormals first, so that only the last factor rounds.
    for _ in range(2):
        up = f.intrinsic("llvm.smin", e, e.like(bias))
        step = f.intrinsic("llvm.smax", up, e.like(-(bias - 1 - mantissa - 1)))
        value = value * _power_of_two(step, element)
        e = e - step
    step = f.intrinsic("llvm.smin", f.intrinsic("llvm.smax", e, e.like(-(bias - 1))), e.like(bias))
    return value * _power_of_two(step, element)


def _ldexp(k: Lanes, a: Value, exponent: Value) -> Value:
    if a.element == "half":
        wide = scale(a.convert("fpext", "float"), exponent.sext("i32"))
        return wide.convert("fptrunc", "half")
    return scale(a, exponent.convert("sext", AS_INTEGER[a.element]))


def _normalised(value: Value) -> tuple[Value, Value]:
    """Returns the value with denormals scaled into the normal range, and the exponent to add. A
    denormal that MODE flushes becomes zero."""
    denormal = exponent_field(value).compare("eq", 0)
    shift = MANTISSA[value.element] + 1
    if value.element == "half":
        larger = (value.convert("fpext", "float") * float(1 << shift)).convert("fptrunc", "half")
    else:
        larger = value * float(1 << shift)
    bits = denormal.select(integer(larger), integer(value))
    zero = bits.like(0)
    return bits.bits(value.element), denormal.select(bits.like(-shift), zero)


def _is_zero(value: Value) -> Value:
    """True also for a denormal of f32 or f64 if MODE flushes sources: the host then compares it as
    zero, and its multiplication would treat it so (`_normalised`)."""
    return value.compare("oeq", 0.0)


def _is_finite(value: Value) -> Value:
    return exponent_field(value).compare("ne", exponent_of_infinity(value.element))


def _frexp_mant(k: Lanes, a: Value) -> Value:
    """Returns the mantissa in [0.5, 1), with the sign; infinity and NaN unchanged."""
    normal, _ = _normalised(a)
    width, mantissa = FLOATS[a.element], MANTISSA[a.element]
    sign = integer(a) & (1 << (width - 1))
    fraction = integer(normal) & ((1 << mantissa) - 1)
    bits = sign | fraction | ((BIAS[a.element] - 1) << mantissa)
    bits = _is_zero(a).select(sign, _is_finite(a).select(bits, integer(a)))
    return bits.bits(a.element)


def _frexp_exp(k: Lanes, a: Value) -> Value:
    """Returns the exponent for that mantissa; 0 for zero, infinity and NaN."""
    normal, adjust = _normalised(a)
    exponent = exponent_field(normal) - (BIAS[a.element] - 1) + adjust
    result = (_is_finite(a) & ~_is_zero(a)).select(exponent, exponent.like(0))
    return result.trunc("i32") if a.element == "double" else result
