"""Conversions between every pair of types, in every rounding mode and saturated, on the emulator
and the CPU, against rational numbers (`exact_numbers`)."""

# ruff: noqa: F821  (extents are named by strings)

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from fly_trace.values.dtypes import DTYPES

import fly
import fly.expr as fx

from .exact_numbers import FLOATS, INTEGERS, NAMES, greatest, rounded, wrapped
from .type_samples import LANES, loaded, memory, read, same, samples, stored

# A scalar on one target, and in `make heavy` all the rest.
WAYS = [
    pytest.param("scalar", "gfx942"),
    *(
        pytest.param("scalar", target, marks=pytest.mark.heavy)
        for target in ("gfx1100", "gfx1201", "sm_90a")
    ),
    pytest.param("vector", "gfx942", marks=pytest.mark.heavy),
]
MODES = ("to_nearest_even", "toward_zero", "downward", "upward")
HOW = ((None, False), (None, True), *((mode, False) for mode in MODES), ("upward", True))
CASES = [(b, mode, saturate) for b in NAMES for mode, saturate in HOW]


@fly.kernel
def convert_kernel(
    A: fx.Tensor, S: fx.Tensor, U: fx.Tensor, F: fx.Tensor, a: fx.Constexpr, form: fx.Constexpr
):
    x = loaded(A, a, 0, form)
    for k, (b, mode, saturate) in enumerate(CASES):
        stored(x.to(DTYPES[b], rounding=mode, saturate=saturate), k, S, U, F, form)


@fly.jit
def convert(
    A: fx.Tensor[fx.Uint8, "bytes"],
    S: fx.Tensor[fx.Int64, "n", LANES, 2],
    U: fx.Tensor[fx.Int64, "n", LANES, 2],
    F: fx.Tensor[fx.Float64, "n", LANES],
    a: fx.Constexpr,
    form: fx.Constexpr,
):
    threads = LANES // 2 if form == "vector" else LANES
    convert_kernel(A, S, U, F, a, form).launch(grid=1, block=threads)


def numbers(name: str, side: int) -> list:
    """As `samples`, with floats of all magnitudes, and some between two f16 or bf16."""
    found = samples(name, side)
    if name not in FLOATS:
        return found
    choose = random.Random(f"{name} {side}")
    for lane in range(64, LANES):
        size = min(choose.uniform(-40, 135), FLOATS[name][2] + 0.9)
        number = choose.choice((1, -1)) * 2.0**size
        if lane % 4 == 0:  # a tie of a narrower type
            number = rounded(number, "f16" if lane % 8 else "bf16") * (1 + 2.0**-9)
        elif lane % 4 == 1:
            number = math.floor(choose.uniform(-3000, 3000)) + 0.5
        found[lane] = rounded(number, name)
    return found


def expected(x, a: str, b: str, mode: str | None, saturate: bool):
    """The converted number, or None where the conversion is not defined."""
    if a == b:
        return x
    if b == "bool":
        return x != 0
    if b in FLOATS:
        found = rounded(x, b, mode or "to_nearest_even")
        if saturate and abs(found) > greatest(b):
            return math.copysign(float(greatest(b)), found)
        return found
    low, high = INTEGERS[b]
    if isinstance(x, float):
        if x != x or math.isinf(x):
            return (0 if x != x else low if x < 0 else high) if saturate else None
        to_integer = {"to_nearest_even": round, "downward": math.floor, "upward": math.ceil}
        whole = to_integer.get(mode, math.trunc)(Fraction(x))
        if not saturate and not low <= whole <= high:
            return None
        return min(max(whole, low), high)
    return min(max(int(x), low), high) if saturate else wrapped(int(x), b)


@pytest.mark.parametrize("a", NAMES)
@pytest.mark.parametrize(("form", "target"), WAYS)
def test_conversions(a: str, form: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLY_TARGET", target)
    n = len(CASES)
    S, U = np.zeros((n, LANES, 2), np.int64), np.zeros((n, LANES, 2), np.int64)
    F = np.zeros((n, LANES))
    convert(memory(numbers), S, U, F, a, form)
    wrong, compared = [], 0
    for k, (b, mode, saturate) in enumerate(CASES):
        for lane, x in enumerate(numbers(a, 0)):
            wanted = expected(x, a, b, mode, saturate)
            if wanted is None:
                continue
            compared += 1
            found = read(b, k, lane, S, U, F)
            if not same(found, wanted):
                how = f"{mode or ''}{' saturated' * saturate}"
                wrong.append(f"{a} {x!r} to {b} {how}: {found!r}, not {wanted!r}")
    assert not wrong, "\n".join([f"{len(wrong)} of {compared}", *wrong[:20]])
    assert compared > n * LANES // 2
