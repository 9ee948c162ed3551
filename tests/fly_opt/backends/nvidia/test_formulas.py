"""Formulas for NVIDIA's targets: their coefficients, and their errors and special values, compiled
for the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
from fly_opt.backends.nvidia import formulas
from math_on_host import applied

PRECISE = Context(prec=45)
LOG2 = Decimal(2).ln(PRECISE)


@pytest.fixture(autouse=True)
def precise():
    """Sums and quotients of decimals have 45 digits."""
    with localcontext(PRECISE):
        yield


def interpolant(
    function: Callable[[Decimal], Decimal], low: float, high: float, count: int
) -> np.ndarray:
    """Returns the coefficients, lowest first, of the polynomial that equals `function` at the
    `count` Chebyshev nodes of an interval."""
    nodes = np.cos((np.arange(count) + 0.5) * np.pi / count)
    points = (low + high) / 2 + (high - low) / 2 * nodes
    values = [float(function(Decimal(float(point)))) for point in points]
    return np.polynomial.Polynomial.fit(points, values, count - 1).convert().coef


@pytest.mark.parametrize(
    ("found", "function", "bound"),
    [
        (formulas.EXPONENTIAL, lambda r: (r.exp() - 1 - r) / r**2, float(LOG2 / 2) * 1.0005),
        (formulas.LOGARITHM, lambda f: ((1 + f).ln() - f) / f**2, 1 / 3 + 1e-3),
    ],
)
def test_coefficients(found, function, bound):
    count = len(found)
    nodes = np.cos((np.arange(count) + 0.5) * np.pi / count) * bound
    if count % 2:
        nodes = nodes[np.arange(count) != count // 2]  # 0, where the quotient has no value
    values = np.array([float(function(Decimal(float(node)))) for node in nodes])
    np.testing.assert_allclose(np.polynomial.polynomial.polyval(nodes, found), values, rtol=1e-12)


def test_coefficients_of_the_power():
    expected = interpolant(lambda r: (LOG2 * r).exp(), -0.5, 0.5, 7)
    np.testing.assert_allclose(formulas.POWER, expected[1:], rtol=1e-7)


def test_sums_of_two_floats():
    def check(pair: tuple[float, float], exact: Decimal) -> None:
        assert all(float(np.float32(part)) == pytest.approx(part, rel=1e-9) for part in pair)
        assert abs(Decimal(pair[0]) + Decimal(pair[1]) - exact) < Decimal(2) ** -48

    check(formulas.LN2, LOG2)
    check(formulas.BINARY[0], 1 / LOG2)
    check(formulas.DECIMAL[0], 1 / Decimal(10).ln())
    check(formulas.DECIMAL[1], LOG2 / Decimal(10).ln())


def inputs() -> np.ndarray:
    random = np.random.default_rng(7)
    every = random.integers(0, 1 << 32, 60_000, dtype=np.uint32).view(np.float32)
    every = every[~np.isnan(every)]
    special = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 88.72283, 88.72284, -103.97]
    parts = (every, random.uniform(-105, 90, 60_000), random.uniform(0.4, 2.5, 60_000), special)
    return np.concatenate(parts).astype(np.float32)


def ulps(found: np.ndarray, exact: np.ndarray) -> float:
    """Returns the greatest error; asserts that special values are right."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        unit = 2.0 ** (np.maximum(np.floor(np.log2(np.abs(exact))), -126) - 23)
        error = np.abs(found.astype(np.float64) - exact) / unit
    special = ~np.isfinite(rounded) | (rounded == 0)
    near_zero = (np.abs(found) <= 2.0**-149) & (rounded == 0)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded)) | near_zero
    assert same[special].all()
    return float(error[~special].max())


@pytest.mark.parametrize(
    ("name", "reference", "most"),
    [
        ("exp", np.exp, 1),
        ("exp2", np.exp2, 1),
        ("log", np.log, 1),
        ("log2", np.log2, 1.1),
        ("log10", np.log10, 1.1),
        ("tanh", np.tanh, 1.5),
        ("erf", np.vectorize(math.erf, otypes=[float]), 1.1),
        ("sin", np.sin, 1.5),
        ("log1p", np.log1p, 0.51),
        ("cbrt", np.cbrt, 0.51),
        ("sinh", np.sinh, 0.51),
    ],
)
def test_errors(name, reference, most):
    x = inputs()
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.float64))
    assert ulps(applied(f"math.{name}", x), exact) <= most


def test_powers_and_remainders():
    """These use the parts of f64."""
    random = np.random.default_rng(8)
    x = np.exp(random.uniform(-30, 30, 20_000)).astype(np.float32)
    y = random.uniform(-3, 3, 20_000).astype(np.float32)
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) ** y.astype(np.float64)
    assert ulps(applied("math.powf", x, y), exact) <= 0.51
    x[:6] = [0, np.inf, np.nan, 5, -7, 1e38]
    y[:6] = [3, 2, 1, np.inf, 2, 1e-38]
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
    np.testing.assert_array_equal(applied("arith.remf", x, y), expected)
