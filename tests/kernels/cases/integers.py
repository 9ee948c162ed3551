"""Multi-word integers and integers of many widths."""

from __future__ import annotations

import math

import numpy as np

from kernels.case import Launch, blocks, case

Random = np.random.Generator
WORD = 2**64


def _long_edges(rng: Random, n: int) -> np.ndarray:
    """Random numbers of every magnitude, preceded by edge cases."""
    a = rng.integers(-(2**63), 2**63, n) >> rng.integers(0, 64, n)
    edges = [0, 1, -1, 2**63 - 1, -(2**63), 2**32, 2**32 - 1, -(2**32), 3, 10**18]
    a[: len(edges)] = edges
    return a


@case("integer")
def divide_long(rng: Random) -> Launch:
    n = 130
    a, b = _long_edges(rng, n), rng.permutation(_long_edges(rng, n))
    b[b == 0] = 7
    b[(a == -(2**63)) & (b == -1)] = -3  # the quotient would not fit: undefined in C
    wanted = np.zeros((n, 5), "u8")
    for i, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        q = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        u, v = x % WORD, y % WORD
        wanted[i] = [q % WORD, (x - q * y) % WORD, u // v, u % v, u * v >> 64]
    out = np.zeros((n, 5), "i8")
    return Launch([a, b, out, np.int32(n)], **blocks(n, 64), expected={2: wanted.view("i8")})


def _big(rng: Random, n: int) -> tuple[np.ndarray, list[int]]:
    """256-bit numbers: as words, lowest first, and as Python integers."""
    words = rng.integers(0, 2**32, (n, 8)).astype("u4")
    words[0], words[1], words[2, 1:] = 2**32 - 1, 0, 2**32 - 1
    return words, [int.from_bytes(row.tobytes(), "little") for row in words]


def _words(numbers: list[int], count: int) -> np.ndarray:
    data = b"".join(v.to_bytes(4 * count, "little") for v in numbers)
    return np.frombuffer(data, "u4").reshape(-1, count)


@case("integer")
def multiply_wide(rng: Random) -> Launch:
    n = 45
    (a, left), (b, right) = _big(rng, n), _big(rng, n)
    wanted = _words([x * y for x, y in zip(left, right, strict=True)], 16)
    out = np.zeros((n, 16), "u4")
    return Launch([a, b, out, np.int32(n)], **blocks(n, 64), expected={2: wanted})


@case("integer")
def add_wide(rng: Random) -> Launch:
    n = 75
    (a, left), (b, right) = _big(rng, n), _big(rng, n)
    b, right = b[::-1].copy(), right[::-1]
    top = 2**256
    pairs = list(zip(left, right, strict=True))
    wanted = {
        2: _words([x + y for x, y in pairs], 9),
        3: _words([(x - y) % top + (top if x < y else 0) for x, y in pairs], 9),
    }
    out = [np.zeros((n, 9), "u4") for _ in range(2)]
    return Launch([a, b, *out, np.int32(n)], **blocks(n, 64), expected=wanted)


@case("integer")
def number_theory(rng: Random) -> Launch:
    n = 100
    a, b = (rng.integers(0, 2**32, n) >> rng.integers(0, 31, n) for _ in range(2))
    a[0] = b[1] = b[2] = 0
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    gcd = np.array([math.gcd(x, y) for x, y in pairs], "u4")
    power = np.array([pow(x, y, (y >> 1) + 2) for x, y in pairs], "u4")
    out = [np.zeros(n, "u4") for _ in range(2)]
    return Launch(
        [a.astype("u4"), b.astype("u4"), *out, np.int32(n)],
        **blocks(n, 50),
        expected={2: gcd, 3: power},
    )


def _signed(v: int, bits: int) -> int:
    return (v + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def _clamp(v: int, low: int, high: int) -> int:
    return max(low, min(high, v))


@case("integer")
def bits(rng: Random) -> Launch:
    n = 110
    v = _long_edges(rng, n)
    counts, turned, saturated = [], [], []
    for x in (int(x) % WORD for x in v):
        w = x >> 17 & 0xFFFFFFFF
        text = f"{x:064b}"
        r = w & 63
        apart = _signed(x, 32) - _signed(x >> 32, 32)
        counts += [
            text.count("1"),
            64 - x.bit_length(),
            64 if x == 0 else (x & -x).bit_length() - 1,
            w.bit_count() - (32 - (w | 1).bit_length()),
            _signed(int.from_bytes(w.to_bytes(4, "little"), "big"), 32),
            _clamp(apart, -(2**31), 2**31 - 1),
        ]
        turned += [int(text[::-1], 2), (x << r | x >> (-w & 63)) % WORD]
        low, high = x & 0xFFFF, x >> 16 & 0xFFFF
        saturated += [
            _clamp(_signed(low, 16) + _signed(high, 16), -(2**15), 2**15 - 1),
            _signed(max(0, low - high), 16),
        ]
    wanted = {1: np.array(counts, "i4"), 2: np.array(turned, "u8"), 3: np.array(saturated, "i2")}
    out = [np.zeros_like(a) for a in wanted.values()]
    return Launch([v.view("u8"), *out, np.int32(n)], **blocks(n, 55), expected=wanted)
