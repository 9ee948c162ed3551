"""Steps that the encoder emits around operations with f16 results if MODE.FP16_OVFL may keep them
finite: one tests where all sources are finite, one replaces infinities there by the largest number.

`lowering.overflow` says when. Both only inspect bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Lanes
from fly_run.emulator.semantics.base.operation import Operation, rows, valu
from fly_run.emulator.semantics.base.small_float import FP16_OVFL
from fly_run.emulator.semantics.vector.floating.convert import pack
from fly_run.emulator.semantics.vector.floating.float import (
    MANTISSA,
    exponent_field,
    exponent_of_infinity,
    integer,
)
from fly_run.emulator.semantics.vector.packed import halves

Body = Callable[..., Value]


def operations() -> Iterator[Operation]:
    for element, short in (("half", "f16"), ("float", "f32")):
        types = f"i32 = {_three(element)}"
        yield _tests(f"fly_finite_{short}", types, _finite, 3)
        options = {"kinds": rows(1), "keeps_high": element == "half"}
        yield valu(f"fly_hold_{short}", f"{element} += i32", _held, chunk=16, **options)
    # For each half; the mask from `_finite` has 16 bits there.
    short = halves("half", lambda k, *values: _finite(k, *values).trunc("i16"))
    yield _tests("fly_finite_pk_f16", f"i32 = {_three('i32')}", short, 3)
    yield valu("fly_hold_pk_f16", "i32 += i32", halves("half", _held), chunk=16, kinds=rows(1))
    yield _tests("fly_finite_pair", "i32 = float, float", _finite_pair, 2)


def _tests(name: str, types: str, body: Callable[..., Any], sources: int) -> Operation:
    """An operation whose result, a mask for each lane, is in a temporary row."""
    return valu(name, types, body, chunk=16, kinds=rows(sources), everywhere=True)


def _three(element: str) -> str:
    return ", ".join([element] * 3)


def _finite(k: Lanes, *values: Value) -> Value:
    """Returns all ones where all sources are finite. If the immediate is not 0, zero does not count
    as finite either."""
    both = None
    infinite_zero = k.immediate().compare("ne", 0).splat(k.chunk)
    for value in values:
        bits = integer(value)
        zero = (bits << 1).compare("eq", 0)
        finite = exponent_field(value).compare("ne", exponent_of_infinity(value.element)) & ~(
            infinite_zero & zero
        )
        both = finite if both is None else both & finite
    assert both is not None
    return both.sext("i32")


def _finite_pair(k: Lanes, low: Value, high: Value) -> Value:
    """For each half of the result, tests its own source."""
    return pack(*(_finite(k, value).trunc("i16") for value in (low, high)))


def _held(k: Lanes, finite: Value, result: Value) -> Value:
    """Uses that the bits of infinity minus one are the largest number of the same sign."""
    bits = integer(result)
    infinite = (bits << 1).compare(
        "eq", exponent_of_infinity(result.element) << MANTISSA[result.element] + 1
    )
    mode = k.handler.wave.at(state.MODE).load("i32")
    holds = (mode & FP16_OVFL).compare("ne", 0).splat(k.chunk)
    mask = finite if finite.element == "i32" else integer(finite)
    chosen = mask.compare("ne", 0) & infinite & holds
    return chosen.select(bits - 1, bits).bits(result.element)
