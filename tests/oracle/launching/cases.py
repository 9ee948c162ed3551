"""Whole kernels and their expected results: (source, launch, arguments, expectation by NumPy)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

f4, i4, u4 = np.float32, np.int32, np.uint32


@dataclass(frozen=True)
class Case:
    """`make(rng)`: the arguments. `expect(*arguments)`: {argument's index: array}. `exact`:
    compared bit for bit; otherwise within `relative` of each value or of 1e-6."""

    source: str
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    make: Callable
    expect: Callable
    relative: float = 0.0


def normal(rng, *shape):
    return rng.standard_normal(shape, f4)


EDGE32 = np.array(
    [
        *(0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.1754944e-38),
        *(1.1754942e-38, 3.4028235e38, -3.4028235e38, 1.7014118e38, 0.5, 3.0, 1e20, 1e-20),
        *(1 / 3, 16777217.0),
    ],
    f4,
)
EDGE64 = np.array(
    [
        *(0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324),
        *(2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308),
        *(8.98846567431158e307, 0.5, 3.0, 1e200, 1e-200),
    ],
)


def all_pairs(edges, rng, extra):
    """Returns every pair of edge values, then random ones over the whole exponent range."""
    left, right = (grid.ravel() for grid in np.meshgrid(edges, edges))
    unsigned = np.uint32 if edges.dtype == f4 else np.uint64
    raw = rng.integers(0, np.iinfo(unsigned).max, (2, extra), unsigned, endpoint=True)
    random = raw.view(edges.dtype)
    return np.concatenate([left, random[0]]), np.concatenate([right, random[1]])


def make_divide(rng):
    a, b = all_pairs(EDGE32, rng, 600)
    return [a, b, np.zeros_like(a), i4(len(a))]


def make_divide_double(rng):
    a, b = all_pairs(EDGE64, rng, 600)
    return [a, b, np.zeros_like(a), i4(len(a))]


def make_root(rng):
    a = np.abs(all_pairs(EDGE32, rng, 400)[0])
    b = np.abs(all_pairs(EDGE64, rng, 400)[0])
    n = min(len(a), len(b))
    return [a[:n], b[:n], np.zeros(n, f4), np.zeros(n), i4(n)]


def expect_integers(a, b, out, wide, n):
    d = (b | 1).astype(np.int64)
    a8 = a.astype(np.int64)
    ua, ud = a.view(u4), (b | 1).view(u4)
    quotient = np.trunc(a8 / d).astype(np.int64)  # exact: 31 bits
    top = 31 - np.frexp((ua | 1).astype(np.float64))[1].astype(np.int64) + 1
    out = np.stack(
        [
            quotient,
            a8 - quotient * d,
            ua // ud,
            ua % ud,
            a >> (b & 31),
            np.bitwise_count(ua).astype(np.int64) - top,
        ],
        axis=1,
    ).astype(i4)
    product = [abs(int(x) * 1000003) // abs(int(y)) for x, y in zip(a8, d, strict=True)]
    signs = np.where((a8 < 0) != (d < 0), -1, 1)
    shifted = b.astype(np.int64) << 20
    wide = np.stack([a8 * b + shifted, np.array(product) * signs], axis=1)
    return {2: out.ravel(), 3: wide.ravel()}


def expect_collatz(start, steps, n):
    values, counts = start.astype(np.int64), np.zeros_like(steps)
    while (values != 1).any():
        going = values != 1
        counts += going
        values = np.where(going, np.where(values % 2, 3 * values + 1, values // 2), 1)
    return {1: counts}


def make_widths(rng):
    n = 300
    outputs = [np.zeros(n, t) for t in ("u2", "u1", "f2", "i8", "f8")]
    inputs = [rng.integers(0, 256, n).astype("u1"), rng.integers(-32768, 32768, n).astype("i2")]
    return [*inputs, rng.integers(-128, 128, n).astype("i1"), *outputs, i4(n)]


def expect_widths(a, b, c, *rest):
    total = a.astype(i4) + b - c
    half = (total.astype(f4) * f4(0.37)).astype(np.float16)
    double = total.astype(np.float64) / 3.0 + c
    wide = (total.astype(np.int64) << 20) ^ b
    return {3: total.astype("u2"), 4: (total >> 3).astype("u1"), 5: half, 6: wide, 7: double}


def reduce_tree(x):
    part = x.reshape(-1, 256).copy()
    step = 128
    while step:
        part[:, :step] = part[:, :step] + part[:, step : 2 * step]
        step //= 2
    return part[:, 0]


def expect_softmax(x, out, columns):
    rows = x.reshape(-1, int(columns)).astype(np.float64)
    e = np.exp(rows - rows.max(axis=1, keepdims=True))
    return {1: (e / e.sum(axis=1, keepdims=True)).astype(f4).ravel()}


def expect_layernorm(x, gain, bias, out, columns, epsilon):
    rows = x.reshape(-1, int(columns)).astype(np.float64)
    mean, spread = rows.mean(axis=1, keepdims=True), rows.var(axis=1, keepdims=True)
    return {3: (((rows - mean) / np.sqrt(spread + epsilon)) * gain + bias).astype(f4).ravel()}


def expect_matmul(a, b, c, m, n, k):
    exact = a.reshape(m, k).astype(np.float64) @ b.reshape(k, n).astype(np.float64)
    return {2: exact.astype(f4).ravel()}


def expect_stencil(u, v, un, vn, width, height):
    def lap(x):
        left, right = np.roll(x, 1, 1), np.roll(x, -1, 1)
        return left + right + np.roll(x, 1, 0) + np.roll(x, -1, 0) - 4 * x

    a, b = (x.reshape(height, width).astype(np.float64) for x in (u, v))
    uvv = a * b * b
    new_u = a + 0.16 * lap(a) - uvv + 0.035 * (1 - a)
    new_v = b + 0.08 * lap(b) + uvv - 0.1 * b
    return {2: new_u.astype(f4).ravel(), 3: new_v.astype(f4).ravel()}


def make_atomics(rng):
    values = rng.integers(-(2**31), 2**31, 300).astype(i4)
    return [
        np.array([2**31 - 1], i4),
        *(np.zeros(1, u4), np.zeros(1, u4), np.zeros(1, f4), np.zeros(8, u4)),
        values,
        i4(300),
    ]


def expect_atomics(low, high, bits, total, order, values, n):
    seen = np.bitwise_or.reduce(np.uint32(1) << (values & 31).astype(u4))
    counts = np.bincount(np.arange(int(n)) & 7, minlength=8)
    # Each step doubles order[k] and adds one: a number of ones, all 32 in the end.
    ordered = np.array([(1 << min(int(c), 32)) - 1 for c in counts], u4)
    return {
        0: np.array([values.min()]),
        1: np.array([values.view(u4).max()]),
        2: np.array([seen]),
        3: np.array([n], f4),
        4: ordered,
    }


def expect_scratch(seed, out, n):
    result = np.zeros_like(out)
    for i in range(int(n)):
        s = int(seed[i])
        state = [(s + j) & 0xFFFFFFFF for j in range(8)]
        total = 0
        for j in range(8 + (i & 7)):
            at = i + j * (s & 7)
            state[at & 7] = (state[(at + 3) & 7] * 1664525 + 1013904223 + at) & 0xFFFFFFFF
            total += state[at & 7] >> 7
        result[i] = (total & 0xFFFFFFFF) ^ state[s & 7]
    return {1: result}


CASES = [
    Case(
        "elementwise.cl",
        "vector_add",
        (5, 1, 1),
        (256, 1, 1),
        lambda r: [normal(r, 1100), normal(r, 1100), np.zeros(1100, f4), i4(1100)],
        lambda a, b, c, n: {2: a + b},
    ),
    Case(
        "elementwise.cl",
        "saxpy",
        (3, 1, 1),
        (100, 1, 1),  # the last wave is partial
        lambda r: [normal(r, 250), normal(r, 250), f4(1.7), np.int64(250)],
        # The product of two f32 is exact in float64, and so is this sum except for one rounding.
        lambda x, y, alpha, n: {1: (np.float64(alpha) * x + y).astype(f4)},
        relative=1e-7,
    ),
    Case(
        "elementwise.cl",
        "collatz",
        (2, 1, 1),
        (128, 1, 1),
        lambda r: [r.integers(1, 2000, 200).astype(u4), np.zeros(200, u4), i4(200)],
        expect_collatz,
    ),
    Case(
        "elementwise.cl",
        "integers",
        (2, 1, 1),
        (192, 1, 1),
        lambda r: [
            *(r.integers(-(2**31), 2**31, 300).astype(i4) for _ in range(2)),
            *(np.zeros(1800, i4), np.zeros(600, np.int64), i4(300)),
        ],
        expect_integers,
    ),
    Case(
        "elementwise.cl",
        "divide",
        (4, 1, 1),
        (256, 1, 1),
        make_divide,
        lambda a, b, q, n: {2: a / b},
    ),
    Case(
        "elementwise.cl",
        "divide_double",
        (4, 1, 1),
        (256, 1, 1),
        make_divide_double,
        lambda a, b, q, n: {2: a / b},
    ),
    Case(
        "elementwise.cl",
        "root",
        (4, 1, 1),
        (256, 1, 1),
        make_root,
        lambda a, b, r, s, n: {2: np.sqrt(a), 3: np.sqrt(b)},
    ),
    Case("elementwise.cl", "widths", (3, 1, 1), (128, 1, 1), make_widths, expect_widths),
    Case(
        "rows.cl",
        "lds_reduce",
        (7, 1, 1),
        (256, 1, 1),
        lambda r: [normal(r, 1792), np.zeros(7, f4)],
        lambda x, out: {1: reduce_tree(x)},
    ),
    Case(
        "rows.cl",
        "softmax_lds",
        (3, 1, 1),
        (128, 1, 1),
        lambda r: [normal(r, 900), np.zeros(900, f4), i4(300)],
        expect_softmax,
        relative=1e-5,
    ),
    Case(
        "rows.cl",
        "softmax_shuffle",
        (3, 1, 1),
        (64, 1, 1),
        lambda r: [normal(r, 300), np.zeros(300, f4), i4(100)],
        expect_softmax,
        relative=1e-5,
    ),
    Case(
        "rows.cl",
        "layernorm",
        (3, 1, 1),
        (64, 1, 1),
        lambda r: [
            *(normal(r, 300), normal(r, 100), normal(r, 100), np.zeros(300, f4), i4(100)),
            f4(1e-5),
        ],
        expect_layernorm,
        relative=2e-5,
    ),
    Case(
        "tiles.cl",
        "transpose",
        (3, 2, 1),
        (16, 16, 1),
        lambda r: [normal(r, 20 * 40), np.zeros(800, f4), i4(20), i4(40)],
        lambda x, out, rows, columns: {1: x.reshape(20, 40).T.copy().ravel()},
    ),
    Case(
        "tiles.cl",
        "matmul",
        (2, 3, 1),
        (16, 16, 1),
        lambda r: [
            *(normal(r, 40 * 50), normal(r, 50 * 24), np.zeros(960, f4), i4(40), i4(24), i4(50)),
        ],
        expect_matmul,
        relative=1e-4,
    ),
    Case(
        "tiles.cl",
        "histogram",
        (4, 1, 1),
        (256, 1, 1),
        lambda r: [r.integers(0, 200, 3000).astype("u1"), np.zeros(256, u4), i4(3000)],
        lambda x, counts, n: {1: np.bincount(x, minlength=256).astype(u4)},
    ),
    Case("tiles.cl", "atomics", (2, 1, 1), (192, 1, 1), make_atomics, expect_atomics),
    Case(
        "tiles.cl",
        "stencil",
        (3, 5, 1),
        (16, 4, 1),
        lambda r: [
            *(r.random(40 * 18, f4), r.random(40 * 18, f4), np.zeros(720, f4), np.zeros(720, f4)),
            *(i4(40), i4(18)),
        ],
        expect_stencil,
        relative=1e-5,
    ),
    Case(
        "tiles.cl",
        "scratch",
        (2, 1, 1),
        (128, 1, 1),
        lambda r: [r.integers(0, 2**32, 200, u4), np.zeros(200, u4), i4(200)],
        expect_scratch,
    ),
    Case(
        "tiles.cl",
        "scratch_below",
        (2, 1, 1),
        (128, 1, 1),
        lambda r: [r.choice(np.array([-1, 4], i4), 200), np.zeros(200, i4), i4(200)],
        lambda index, out, n: {1: np.where(index < 0, 1, -1).astype(i4) * np.arange(200)},
    ),
]


def check(case: Case, arguments: list, results: list) -> None:
    """Compares results with the expectation. NaNs are equal to NaNs."""
    with np.errstate(all="ignore"):
        expected = case.expect(*arguments)
    for index, array in expected.items():
        got = results[index]
        if case.relative:
            np.testing.assert_allclose(got, array, rtol=case.relative, atol=case.relative)
        else:
            np.testing.assert_array_equal(got, array.reshape(got.shape))
            if got.dtype.kind == "f":  # distinguishes -0 from 0
                known = ~np.isnan(got)
                np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(array[known]))
