"""The steps of a division: V_DIV_SCALE, V_DIV_FMAS, V_DIV_FIXUP (CDNA3 ISA manual, section 16.8).

Together with a reciprocal and a few fma they compute the correctly rounded quotient over the whole
range, which is how LLVM uses them.
"""

from __future__ import annotations

from collections.abc import Iterator

from fly_run.emulator.irgen import FLOATS, Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, rows, valu
from fly_run.emulator.semantics.vector.floating.float import (
    BIAS,
    MANTISSA,
    SHORT,
    exponent_field,
    integer,
    is_nan,
    quieted,
    scale,
    sum_to_odd,
)


def operations() -> Iterator[Operation]:
    for element, short in SHORT.items():
        if element != "half":
            three = f"{element}, {element}, {element}"
            types = f"{element}, mask = {three}"
            yield valu(f"v_div_scale_{short}", types, _div_scale, chunk=16, kinds=rows(3))
            # The mask from scaling is in VCC.
            types = f"{element} = {three}, mask"
            yield valu(f"v_div_fmas_{short}", types, _div_fmas, chunk=16, kinds=rows(3, 1))
        yield valu(
            f"v_div_fixup_{short}",
            f"{element} = {element}, {element}, {element}",
            _div_fixup,
            chunk=16,
            kinds=rows(3),
            keeps_high=element == "half",
        )
    types = "half = half, half, half"
    yield valu("v_div_fixup_legacy_f16", types, _div_fixup, chunk=16, kinds=rows(3))


def _div_scale(k: Lanes, source: Value, denominator: Value, numerator: Value):
    """V_DIV_SCALE: the source (denominator or numerator), scaled if intermediate results would
    leave the normal range; the mask tells V_DIV_FMAS to scale back.

    If 1/d and n/d are both denormal, the manual scales the denominator up, which overflows and
    can't give a correct quotient; here it is scaled down instead.
    """
    element = source.element
    single = element == "float"
    steps = 64 if single else 128
    up, down = (scale(source, integer(source).like(sign * steps)) for sign in (1, -1))
    exponent_d, exponent_n = exponent_field(denominator), exponent_field(numerator)
    zero = (integer(denominator) << 1).compare("eq", 0)
    zero = zero | (integer(numerator) << 1).compare("eq", 0)
    far = (exponent_n - exponent_d).compare("sge", 96 if single else 768)
    denormal_d = exponent_d.compare("eq", 0)
    tiny = _is_denormal(1.0 / denominator)
    tiny_quotient = _is_denormal(numerator / denominator)
    small_n = exponent_n.compare("sle", 23 if single else 53)
    is_denominator = integer(source).compare("eq", integer(denominator))
    is_numerator = integer(source).compare("eq", integer(numerator))

    # The manual's cases in reverse order, so that the first applicable one wins.
    result, flag = source, k.constant("i1", 0)
    for condition, value, scales in (
        (small_n, up, 0),
        (tiny_quotient, is_numerator.select(up, source), 1),
        (tiny, down, 0),
        (tiny & tiny_quotient, is_denominator.select(down, source), 1),
        (denormal_d, up, 0),
        (far, is_denominator.select(up, source), 1),
        (zero, source.like(float("nan")), 0),
    ):
        result = condition.select(value, result)
        flag = condition.select(k.constant("i1", scales), flag)
    return result, flag


def _is_denormal(value: Value) -> Value:
    width = FLOATS[value.element]
    magnitude = integer(value) & ((1 << (width - 1)) - 1)
    return magnitude.compare("ne", 0) & magnitude.compare("ult", 1 << MANTISSA[value.element])


def _div_fmas(k: Lanes, a: Value, b: Value, c: Value, scaled: Value) -> Value:
    """V_DIV_FMAS: fma, scaled by 2^±64 (2^±128) if V_DIV_SCALE says so. The quotient estimate `c`
    gives the direction: a scaled division is near the top or the bottom of the range.

    In f32 the sum is rounded once, after scaling; in f64 a denormal quotient is rounded twice.
    """
    fused = k.handler.intrinsic("llvm.fma", a, b, c)
    high = exponent_field(c).compare("ugt", BIAS[a.element])
    if a.element == "double":
        exponent = integer(a)
        amount = high.select(exponent.like(128), exponent.like(-128))
        return scaled.select(scale(fused, amount), fused)
    x, y, z = (value.convert("fpext", "double") for value in (a, b, c))
    total = sum_to_odd(x * y, z)
    factor = high.select(total.like(2.0**64), total.like(2.0**-64))
    return scaled.select((total * factor).convert("fptrunc", "float"), fused)


def _div_fixup(k: Lanes, quotient: Value, denominator: Value, numerator: Value) -> Value:
    """V_DIV_FIXUP: the special cases of a division; otherwise the quotient with the correct sign.

    A NaN quotient of finite numbers comes from an intermediate infinity: the division overflowed.
    The manual does not list this case, but without it such divisions would be wrong.
    """
    element = quotient.element
    width, mantissa = FLOATS[element], MANTISSA[element]
    sign_bit = 1 << (width - 1)
    infinity = ((1 << (width - 1 - mantissa)) - 1) << mantissa
    bits_d, bits_n = integer(denominator), integer(numerator)
    sign = (bits_d ^ bits_n) & sign_bit
    size_d, size_n = bits_d & (sign_bit - 1), bits_n & (sign_bit - 1)
    zero_d, zero_n = size_d.compare("eq", 0), size_n.compare("eq", 0)
    infinite_d, infinite_n = size_d.compare("eq", infinity), size_n.compare("eq", infinity)
    signed = lambda magnitude: (sign | magnitude).bits(element)  # noqa: E731
    result = ((integer(quotient) & (sign_bit - 1)) | sign).bits(element)
    result = is_nan(quotient).select(signed(sign.like(infinity)), result)
    if element != "half":
        gap = exponent_field(numerator) - exponent_field(denominator)
        underflow = gap.compare("slt", -(BIAS[element] + mantissa))
        result = underflow.select(signed(sign.like(0)), result)
    result = (infinite_d | zero_n).select(signed(sign.like(0)), result)
    result = (zero_d | infinite_n).select(signed(sign.like(infinity)), result)
    invalid = (zero_d & zero_n) | (infinite_d & infinite_n)
    # The hardware's NaN for 0/0 and inf/inf has the sign set.
    wrong = sign.like(sign_bit | infinity | (1 << (mantissa - 1))).bits(element)
    result = invalid.select(wrong, result)
    result = is_nan(denominator).select(quieted(denominator), result)
    return is_nan(numerator).select(quieted(numerator), result)
