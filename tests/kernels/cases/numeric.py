"""Floating-point kernels. Results must be bit-identical wherever NumPy rounds the same operations
in the same order; otherwise a bound is derived."""

from __future__ import annotations

import math

import numpy as np

from kernels.case import Launch, Near, blocks, case

Random = np.random.Generator
f4 = np.float32


def _escape(cx: np.ndarray, cy: np.ndarray) -> np.ndarray:
    """In the type of the arguments."""
    x, y, steps = np.zeros_like(cx), np.zeros_like(cx), np.zeros(cx.shape, "u2")
    alive = np.ones(cx.shape, bool)
    with np.errstate(all="ignore"):
        for _ in range(200):
            alive &= x * x + y * y <= 4
            steps += alive
            x, y = x * x - y * y + cx, 2 * x * y + cy
    return steps


@case("numeric")
def mandelbrot(rng: Random) -> Launch:
    width, height = 50, 36
    x0, y0, step = f4(-2.1), f4(-1.2), f4(0.0671)
    cx = (x0 + step * np.arange(width, dtype="f4"))[None].repeat(height, 0)
    cy = (y0 + step * np.arange(height, dtype="f4"))[:, None].repeat(width, 1)
    out = [np.zeros((height, width), "u2") for _ in range(2)]
    wanted = {0: _escape(cx, cy), 1: _escape(cx.astype("f8"), cy.astype("f8"))}
    return Launch([*out, np.int32(width), x0, y0, step], (4, 9, 1), (16, 4, 1), expected=wanted)


@case("numeric")
def nbody(rng: Random) -> Launch:
    n = 100
    bodies = rng.standard_normal((n, 4)).astype("f4")
    bodies[:, 3] = rng.random(n)
    wanted = np.zeros((n, 4), "f4")
    for body in np.concatenate(
        [bodies, np.zeros((28, 4), "f4")]
    ):  # the last tile's rest is massless
        d = body[:3] - bodies[:, :3]
        square = d[:, 0] * d[:, 0] + d[:, 1] * d[:, 1] + d[:, 2] * d[:, 2] + f4(0.01)
        root = f4(1) / np.sqrt(square)
        wanted[:, :3] += d * (body[3] * root * root * root)[:, None]
    wanted[:, 3] = bodies[:, 3]
    return Launch(
        [bodies, np.zeros((n, 4), "f4"), np.int32(n)], **blocks(n, 64), expected={1: wanted}
    )


def _price(spot, strike, years, rate, volatility):
    """Uses the error function of the C library."""
    root = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * years) / root
    below = np.vectorize(lambda x: math.erfc(-x / math.sqrt(2)) / 2)
    discounted = strike * np.exp(-rate * years)
    call = spot * below(d1) - discounted * below(d1 - root)
    return np.stack([call, call - spot + discounted], 1)


@case("numeric")
def black_scholes(rng: Random) -> Launch:
    n = 300
    spot, strike = (rng.uniform(5, 100, n).astype("f4") for _ in range(2))
    years = rng.uniform(0.1, 5, n).astype("f4")
    market = np.array((0.03, 0.25), "f4,f4")[()]
    wide = [a.astype("f8") for a in (spot, strike, years)]
    wanted = _price(*wide, *(float(v) for v in market))
    # The distribution is within 7.5e-8 and is rounded in f32 some 20 times; d1 is off by 20 half
    # ulps of at most |ln(20)| / (0.25 √0.1), which the density (below 0.4) makes into 1e-5.
    bound = (1.2e-5 * (wide[0] + wide[1]))[:, None]
    return Launch(
        [spot, strike, years, np.zeros((n, 2), "f4"), market, np.int32(n)],
        **blocks(n, 64),
        expected={3: Near(wanted, bound)},
    )


@case("numeric")
def newton(rng: Random) -> Launch:
    x = rng.uniform(0.5, 2, 130) * 2.0 ** rng.integers(-90, 90, 130)
    x[:4] = 1, 2, 4, 0.25
    wanted = np.stack([1 / x, 1 / np.sqrt(x)], 1)
    # The guess has 23 bits, a step doubles them: what is left are the last step's roundings.
    return Launch(
        [x, np.zeros((len(x), 2)), np.int32(len(x))],
        **blocks(len(x), 64),
        expected={1: Near(wanted, wanted * 2.0**-51)},
    )


@case("numeric")
def fft(rng: Random) -> Launch:
    lines = rng.standard_normal((3, 256, 2)).astype("f4")
    turns = np.exp(-2j * np.pi * np.arange(128) / 256)
    twiddles = np.stack([turns.real, turns.imag], 1).astype("f4")
    spectrum = np.fft.fft(lines.astype("f8") @ np.array([1, 1j]))
    wanted = np.stack([spectrum.real, spectrum.imag], -1)
    # Eight stages, in each at most six half ulps (twiddle, product, sum) of the spectrum's norm.
    norm = np.sqrt((lines.astype("f8") ** 2).sum((1, 2)) * 256)
    bound = (8 * 6 * 2.0**-24 * norm)[:, None, None]
    return Launch([lines, twiddles], **blocks(384, 128), expected={0: Near(wanted, bound)})


@case("numeric")
def dct(rng: Random) -> Launch:
    pixels = rng.integers(0, 256, (16, 24)).astype("u1")
    k = np.arange(8)
    basis = (
        np.cos((2 * k[None] + 1) * k[:, None] * np.pi / 16) * np.where(k, 0.5, 0.5**1.5)[:, None]
    )
    basis = basis.astype("f4")
    tiles = (pixels.astype("f4") - 128).reshape(2, 8, 3, 8).swapaxes(1, 2)
    rows, out = np.zeros_like(tiles), np.zeros_like(tiles)
    for n in range(8):
        rows += tiles[..., n, None] * basis[:, n]
    for n in range(8):
        out += rows[..., n, None, :] * basis[:, n, None]
    return Launch(
        [pixels, np.zeros((16, 24), "f4"), basis, np.int32(24)],
        (3, 2, 1),
        (8, 8, 1),
        expected={1: out.swapaxes(1, 2).reshape(16, 24)},
    )


@case("numeric")
def kmeans(rng: Random) -> Launch:
    n, k = 220, 6
    points = rng.standard_normal((n, 2)).astype("f4")
    centres = points[:k] + f4(0.1)
    d = points[:, None] - centres
    nearest = np.argmin(d[..., 0] * d[..., 0] + d[..., 1] * d[..., 1], 1).astype("u1")
    sums, counts = np.zeros((k, 2), "i8"), np.zeros(k, "i4")
    np.add.at(sums, nearest, (points * f4(65536)).astype("i8"))
    np.add.at(counts, nearest, 1)
    out = [np.zeros(n, "u1"), np.zeros_like(sums), np.zeros_like(counts)]
    return Launch(
        [points, centres, np.int32(k), *out, np.int32(n)],
        **blocks(n, 96),
        expected={3: nearest, 4: sums, 5: counts},
    )
