"""The oracle's float arithmetic against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from oracle.arithmetic import floats
from oracle.probes.probe import EDGES

UNSIGNED = {"f16": np.uint16, "f32": np.uint32, "f64": np.uint64}


def values(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Edges, numbers near 1 and random bits."""
    dtype = UNSIGNED[kind]
    edges = np.array(EDGES[kind], np.uint64).astype(dtype)
    bits = rng.integers(0, np.iinfo(dtype).max, count, dtype, endpoint=True)
    near = (1 + rng.standard_normal(count) * 1e-3).astype(f"f{dtype().itemsize}").view(dtype)
    mixed = np.where(rng.random(count) < 0.3, rng.choice(edges, count), bits)
    return np.where(rng.random(count) < 0.3, near, mixed).view(f"f{dtype().itemsize}")


def rounded(exact: Fraction, dtype: type) -> np.floating:
    """The nearest float, ties to even, by comparing with the two neighbours exactly."""
    with np.errstate(all="ignore"):
        guess = dtype(floats.round_fraction(exact))
        up, down = (np.nextafter(guess, dtype(end)) for end in (np.inf, -np.inf))
    candidates = {guess, up, down}
    limit = np.finfo(dtype).max
    # Beyond half a step over the largest number it is infinite.
    step = Fraction(float(limit)) - Fraction(float(np.nextafter(limit, dtype(0))))
    if abs(exact) >= Fraction(float(limit)) + step / 2:
        return dtype(np.inf) if exact > 0 else dtype(-np.inf)

    def distance(candidate):
        even = int(candidate.view(UNSIGNED[f"f{8 * dtype().itemsize}"])) & 1
        return abs(Fraction(float(candidate)) - exact), even

    return min((c for c in candidates if np.isfinite(c)), key=distance)


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_fma(kind):
    rng = np.random.default_rng(5)
    a, b, c = (values(kind, 3000, rng) for _ in range(3))
    with np.errstate(all="ignore"):
        # Sums that nearly cancel are where a second rounding shows.
        c[:1000] = -(a[:1000] * b[:1000])
        result = floats.fma(a, b, c)
        plain = a * b + c
    dtype = a.dtype.type
    for x, y, z, got, loose in zip(a, b, c, result, plain, strict=True):
        if not (np.isfinite(x) and np.isfinite(y) and np.isfinite(z)):
            finite = np.isfinite(x) and np.isfinite(y)
            expected = z if finite else loose
            assert got == expected or (np.isnan(got) and np.isnan(expected)), (x, y, z)
            continue
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        if exact == 0:
            assert got == 0, (x, y, z)
        else:
            assert got == rounded(exact, dtype), (x, y, z)


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_ldexp(kind):
    rng = np.random.default_rng(6)
    x = values(kind, 1500, rng)
    x = x[np.isfinite(x)]
    power = rng.integers(-300, 300, len(x)).astype(np.int32)
    with np.errstate(all="ignore"):
        result = floats.ldexp(x, power)
    for number, shift, got in zip(x, power, result, strict=True):
        exact = Fraction(float(number)) * Fraction(2) ** int(shift)
        expected = rounded(exact, x.dtype.type) if exact else 0
        assert got == expected, (number, shift)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_minimum_and_maximum(kind):
    """Of two numbers the smaller, -0 below +0; a quiet NaN loses; in IEEE mode an sNaN wins."""
    dtype = np.dtype(f"f{int(kind[1:]) // 8}")
    zero = np.zeros(1, dtype)
    edges = np.array(EDGES[kind], np.uint64).astype(UNSIGNED[kind]).view(dtype)
    signalling = edges[floats.is_signalling(edges)][:1]
    quiet = edges[np.isnan(edges) & ~floats.is_signalling(edges)][:1]
    assert np.signbit(floats.minimum(zero, -zero, True))
    assert np.signbit(floats.minimum(-zero, zero, True))
    assert not np.signbit(floats.maximum(-zero, zero, True))
    assert floats.minimum(quiet, zero + 1, True) == 1
    assert floats.maximum(zero + 1, quiet, True) == 1
    assert np.isnan(floats.minimum(signalling, zero + 1, True))
    assert not floats.is_signalling(floats.minimum(signalling, zero + 1, True))
    assert floats.minimum(signalling, zero + 1, False) == 1


def test_toward_zero():
    x = np.array([65519.0, 65520.0, 1e30, -1e30, 1.0009, -1.0009, 1e-9, np.inf])
    with np.errstate(all="ignore"):
        got = floats.toward_zero(x, np.float16).astype(np.float64)
    expected = [65504.0, 65504.0, 65504.0, -65504.0, 1.0, -1.0, 0.0, np.inf]
    np.testing.assert_array_equal(got, expected)
