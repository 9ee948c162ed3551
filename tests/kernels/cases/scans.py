"""Scans, compaction, histograms, atomics."""

from __future__ import annotations

import numpy as np

from kernels.case import Launch, blocks, case

Random = np.random.Generator


@case("scan")
def scan_inclusive(rng: Random) -> Launch:
    a = rng.integers(-(2**31), 2**31, (5, 192)).astype("i4")
    return Launch([a, np.zeros_like(a)], **blocks(a.size, 192), expected={1: a.cumsum(1, "i4")})


@case("scan")
def scan_exclusive(rng: Random) -> Launch:
    a = rng.integers(-(2**62), 2**62, (3, 256))
    return Launch([a, np.zeros_like(a)], **blocks(384, 128), expected={1: a.cumsum(1) - a})


@case("scan")
def scan_segmented(rng: Random) -> Launch:
    a = rng.integers(-(2**15), 2**15, (4, 100)).astype("i2")
    heads = (rng.random(a.shape) < 0.08).astype("u1")
    heads[1], heads[2] = 0, 1
    out = np.zeros(a.shape, "i4")
    for row, flags, to in zip(a, heads, out, strict=True):
        total = 0
        for i, (value, head) in enumerate(zip(row, flags, strict=True)):
            total = int(value) if head else total + int(value)
            to[i] = total
    return Launch([a, heads, np.zeros_like(out)], **blocks(400, 100), expected={2: out})


@case("scan")
def compact(rng: Random) -> Launch:
    a = rng.integers(-(2**31), 2**31, (4, 256)).astype("i4")
    a[1] &= ~1
    a[2] |= 1
    out = np.full_like(a, -7)
    kept = [row[row & 1 == 1] for row in a]
    wanted = out.copy()
    for to, row in zip(wanted, kept, strict=True):
        to[: len(row)] = row
    counts = np.array([len(row) for row in kept], "i4")
    return Launch(
        [a, out, np.zeros(4, "i4")], **blocks(a.size, 256), expected={1: wanted, 2: counts}
    )


@case("histogram")
def histogram_bytes(rng: Random) -> Launch:
    n = 700  # quadruples; the last workgroup is not full
    a = np.minimum(rng.exponential(30, (n, 4)), 255).astype("u1")
    start = rng.integers(0, 9, 256).astype("u4")
    wanted = start + np.bincount(a.ravel(), minlength=256).astype("u4")
    return Launch([a, start, np.int32(n)], **blocks(n, 128), expected={1: wanted})


def _fold(a: np.ndarray, start: np.ndarray, unsigned: str) -> np.ndarray:
    """What the nine atomics leave of `start` (nine rows of seven)."""
    wanted = start.copy()
    for i, value in enumerate(a):
        c = wanted[:, i % 7]
        c[0] += value
        c[1] -= value
        c[2], c[3] = min(c[2], value), max(c[3], value)
        u, w = c.view(unsigned), value.view(unsigned)
        u[4], u[5] = min(u[4], w), max(u[5], w)
        c[6] &= value | 0x0F0F
        c[7] |= value & 0x1248
        c[8] ^= value
    return wanted


@case("histogram")
def atomic_integers(rng: Random) -> Launch:
    n = 150
    a = rng.integers(-(2**31), 2**31, n).astype("i4")
    narrow = rng.integers(-(2**31), 2**31, (9, 7)).astype("i4")
    wide = rng.integers(-(2**62), 2**62, (9, 7))
    big = a.astype("i8") << 21 ^ a
    with np.errstate(over="ignore"):
        wanted = {1: _fold(a, narrow.T.copy().T, "u4"), 2: _fold(big, wide.T.copy().T, "u8")}
    return Launch([a, narrow, wide, np.int32(n)], **blocks(n, 64), expected=wanted)


@case("histogram")
def atomic_floats(rng: Random) -> Launch:
    a = (rng.integers(-4000, 4000, (3, 32, 3)) / 8).astype("f4")
    total = a.sum((0, 1), "f8")
    return Launch(
        [a, np.ones(3, "f4"), np.full(3, 0.5)],
        **blocks(288, 96),
        expected={1: (1 + total).astype("f4"), 2: 0.5 + total},
    )


@case("histogram", portable=False, host=False)
def tickets(rng: Random) -> Launch:
    groups, size = 6, 50
    n = groups * size

    def everybody(order: np.ndarray) -> None:
        assert sorted(order) == list(range(n))

    def one_after_another(before: np.ndarray) -> None:
        assert len(set(before)) == groups
        assert 0 in before

    return Launch(
        [np.zeros(1, "i4"), np.zeros(1, "i4"), np.full(n, -1, "i4"), np.full(groups, -1, "i4")],
        **blocks(n, size),
        expected={
            0: np.full(1, n, "i4"),
            1: lambda owner: None,
            2: everybody,
            3: one_after_another,
        },
    )
