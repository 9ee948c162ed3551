"""Conversions of floating point of 16 bits or fewer: V_CVT_* of fp8, bf8, fp6, bf6, fp4, and
stochastic ones to f16 and bf16 (CDNA3 and CDNA4 ISA manuals).

The scaled and packed instructions consist of `fly_encode_X` (a value, its scale, and a random
number), and of decoding followed by `fly_scale_e8m0`; `lowering.convert` combines them. The target
determines the formats of fp8 and bf8 (`Target.float8`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fly_target.target import FNUZ, OCP

from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base import small_float
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, rows, valu
from fly_run.emulator.semantics.base.small_float import NAN, Format, decode, encode
from fly_run.emulator.semantics.vector.floating.float import scale

Body = Callable[..., object]
CHUNK = 16
# Steps whose results are temporaries, which other steps put into registers.
ASIDE: dict[str, Any] = {"chunk": CHUNK, "everywhere": True}
BYTES = {
    "fp8": {FNUZ: small_float.E4M3_FNUZ, OCP: small_float.E4M3},
    "bf8": {FNUZ: small_float.E5M2_FNUZ, OCP: small_float.E5M2},
}
NIBBLES = {"fp6": small_float.E2M3, "bf6": small_float.E3M2, "fp4": small_float.E2M1}


def operations() -> Iterator[Operation]:
    for name, meanings in BYTES.items():
        for meaning, form in meanings.items():
            traits = frozenset({meaning})
            for stem, types, body, options in _of_byte(form, scaled=meaning == OCP):
                full = f"{stem.replace('X', name)}@{meaning}"
                yield valu(full, types, body, chunk=CHUNK, traits=traits, **options)
    for name, form in NIBBLES.items():
        yield valu(f"fly_decode_{name}", "float = i32", _decode(form), kinds=("v",), **ASIDE)
        types = "i32 = float, i32"
        yield valu(f"fly_encode_{name}", types, _encode(form), kinds=rows(2), **ASIDE)
        types = "i32 = float, i32, i32"
        yield valu(f"fly_encode_sr_{name}", types, _encode_noisy(form), kinds=rows(3), **ASIDE)
    yield valu("fly_scale_e8m0", "float = float, i32", _scaled, chunk=CHUNK, kinds=rows(2))
    for name, form in (("f16", small_float.F16), ("bf16", small_float.BF16)):
        options = {"chunk": CHUNK, "kinds": rows(2), "keeps_high": True}
        yield valu(f"v_cvt_sr_{name}_f32", "i16 = float, i32", _round_noisy(form), **options)
    yield valu("v_prng_b32", "i32 = i32", _next_random, kinds=rows(1))
    for sign, low, high in (("i", -128, 127), ("u", 0, 255)):
        body, options = _shift_and_pack(low, high), {"kinds": rows(3), "keeps_high": True}
        yield valu(f"v_ashr_pk_{sign}8_i32", "i16 = i32, i32, i32", body, **options)


def _of_byte(form: Format, scaled: bool) -> Iterator[tuple[str, str, Body, dict[str, Any]]]:
    """X is the format's name. If no instruction has a scale, it is a constant."""
    yield "v_cvt_f32_X", "float = i32", _decode(form), {}
    options = {"keeps_high": True, "kinds": rows(2)}
    yield "v_cvt_pk_X_f32", "i16 = float, float", _pack(form), options
    noisy = "fly_encode_sr_X", "i32 = float, i32, i32", _encode_noisy(form)
    if scaled:
        options = {"everywhere": True, "kinds": rows(2)}
        yield "fly_encode_X", "i32 = float, i32", _encode(form), options
    yield *noisy, {"everywhere": True, "kinds": rows(3)}


def _decode(form: Format) -> Body:
    return lambda k, a: decode(a, form)


def _exponent(value: Value) -> Value:
    """Returns a scale, the exponent field of an f32 (E8M0)."""
    return value.lshr(23) & 255


def _encode(form: Format) -> Body:
    return lambda k, a, by: encode(k, a, form, _exponent(by))


def _encode_noisy(form: Format) -> Body:
    return lambda k, a, noise, by: encode(k, a, form, _exponent(by), noise)


def _round_noisy(form: Format) -> Body:
    def run(k: Lanes, a: Value, noise: Value) -> Value:
        return encode(k, a, form, noise=noise).trunc("i16")

    return run


def _pack(form: Format) -> Body:
    def run(k: Lanes, a: Value, b: Value) -> Value:
        return (encode(k, a, form) | (encode(k, b, form) << 8)).trunc("i16")

    return run


def _scaled(k: Lanes, a: Value, by: Value) -> Value:
    """Computes a · 2^(scale - 127), rounded once; a scale of 255 is NaN."""
    exponent = _exponent(by)
    result = scale(a, exponent - small_float.ONE)
    nan = a.function.constant("i32", NAN, k.chunk).bits("float")
    return exponent.compare("eq", 255).select(nan, result)


def _next_random(k: Lanes, a: Value) -> Value:
    """Advances a linear feedback shift register by one step."""
    return (a << 1) ^ a.compare("slt", 0).select(a.like(197), 0)


def _shift_and_pack(low: int, high: int) -> Body:
    """Two arithmetic shifts right, each saturated to a byte."""

    def run(k: Lanes, a: Value, b: Value, amount: Value) -> Value:
        f = a.function
        parts = []
        for value in (a, b):
            moved = value.ashr(amount & 31)
            least = f.intrinsic("llvm.smax", moved, moved.like(low))
            parts.append(f.intrinsic("llvm.smin", least, moved.like(high)) & 255)
        return (parts[0] | (parts[1] << 8)).trunc("i16")

    return run
