"""Floats of eight bits: conversions and products."""

from __future__ import annotations

import numpy as np
from chosen_targets import chosen

from kernels.case import Launch, blocks, case
from kernels.cases.matrices import K, M, N, product, whole

Random = np.random.Generator
TARGETS = chosen("fnuz", "ocp")
ITEMS = 192


def _in_format(x: np.ndarray, fraction: int, how=np.round) -> np.ndarray:
    """The values of a format with that many fraction bits; NumPy rounds halves to even."""
    unit = 2.0 ** (np.frexp(x)[1] - 1 - fraction)
    return (how(x / unit) * unit).astype("f4")


@case("builtins", host=False, targets=TARGETS)
def convert_fp8(rng: Random) -> Launch:
    """Only numbers that are normal in both gfx942's formats and OCP's, whose biases differ by
    one."""
    x = (
        rng.uniform(1, 2, (ITEMS, 2))
        * 2.0 ** rng.integers(-6, 7, (ITEMS, 2))
        * rng.choice([-1, 1], (ITEMS, 2))
    )
    x[:8] = np.array([1.0625, 1.1875, 1.125, 1.375, -1.0625, -1.1875, -1.125, 96])[:, None]
    x = x.astype("f4")
    noise = rng.integers(-(2**31), 2**31, ITEMS).astype("i4")
    noise[::3], noise[1::3] = 0, -1
    fp8, bf8 = _in_format(x, 3), _in_format(x, 2)
    exact = np.stack([fp8[:, 0], fp8[:, 1], fp8[:, 1], bf8[:, 0], bf8[:, 1], bf8[:, 0]], 1)

    def rounds(found: np.ndarray) -> None:
        """No noise truncates, all ones round away from zero, anything between gives a neighbour."""
        np.testing.assert_array_equal(found[:, :6], exact)
        for column, fraction in ((0, 3), (1, 2)):
            value, got = x[:, column], found[:, 6 + column]
            down = _in_format(value, fraction, np.trunc)
            up = _in_format(value, fraction, lambda v: np.copysign(np.ceil(np.abs(v)), v))
            np.testing.assert_array_equal(got[::3], down[::3])
            np.testing.assert_array_equal(got[1::3], up[1::3])
            assert ((got == down) | (got == up)).all()

    return Launch([x, noise, np.zeros((ITEMS, 8), "f4")], **blocks(ITEMS, 64), expected={2: rounds})


@case("matrix", host=False, targets=TARGETS)
def gemm_fp8(rng: Random) -> Launch:
    """fp8 has four significant bits."""
    return whole(rng, 15, "f4", "f4")


@case("matrix", host=False, targets=TARGETS)
def gemm_bf8(rng: Random) -> Launch:
    """bf8, here for A, has three."""
    a, b = rng.integers(-7, 8, (M, K)), rng.integers(-15, 16, (K, N))
    out = np.zeros((M, N), "f4")
    return product(a.astype("f4"), b.astype("f4"), out, (a @ b).astype("f4"))


@case("matrix", host=False, targets=chosen("CDNA4"))
def gemm_scaled(rng: Random) -> Launch:
    a, b = rng.integers(-15, 16, (M, K)), rng.integers(-7, 8, (K, N))
    rows, columns = (rng.integers(-9, 10, n) for n in (M, N))
    wanted = np.ldexp((a @ b).astype("f4"), (rows[:, None] + columns).astype("i4"))
    launch = product(a.astype("f4"), b.astype("f4"), np.zeros((M, N), "f4"), wanted)
    launch.arguments.extend((scales + 127).astype("u1") for scales in (rows, columns))
    return launch
