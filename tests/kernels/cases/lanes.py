"""Lane communication. The kernels use at most 32 lanes, so that both wave sizes agree."""

from __future__ import annotations

import numpy as np

from kernels.case import Launch, blocks, case

Random = np.random.Generator
N = 320


def _values(rng: Random) -> np.ndarray:
    return rng.integers(-(2**31), 2**31, N).astype("i4")


@case("lanes", host=False)
def scan_wave(rng: Random) -> Launch:
    a = _values(rng)
    parts = a.reshape(-1, 32)
    sums = parts.cumsum(1, "i4")
    wanted = np.stack([sums, sums[:, -1:].repeat(32, 1)], -1)
    return Launch([a, np.zeros((N, 2), "i4")], **blocks(N, 64), expected={1: wanted.reshape(N, 2)})


@case("lanes", host=False)
def scan_dpp(rng: Random) -> Launch:
    a = _values(rng)
    wanted = a.reshape(-1, 160).cumsum(1, "i4").ravel()
    return Launch([a, np.zeros(N, "i4")], **blocks(N, 160), expected={1: wanted})


@case("lanes", host=False)
def dpp(rng: Random) -> Launch:
    """In groups of 32 lanes, `1000 + lane` differs between the wave sizes: one wave of 32."""
    a = _values(rng)[:32]
    lane = np.arange(32)
    old = 1000 + lane
    row, bank = lane // 16, lane % 16 // 4

    def moved(source: np.ndarray, within: np.ndarray, rows: int, banks: int, bound: bool):
        chosen = np.where(within, a[source % 32], 0 if bound else old)
        return np.where((rows >> row & 1 == 1) & (banks >> bank & 1 == 1), chosen, old)

    all_, i = np.ones(32, bool), lane % 16
    quad = lane & ~3
    base = lane & ~15
    wanted = [
        moved(quad + np.array([3, 2, 1, 0])[lane % 4], all_, 15, 15, False),
        moved(quad + np.array([0, 3, 2, 1])[lane % 4], all_, 5, 15, False),
        moved(lane + 3, i + 3 < 16, 15, 15, False),
        moved(lane + 3, i + 3 < 16, 15, 15, True),
        moved(lane - 5, i >= 5, 15, 6, False),
        moved(lane - 5, i >= 5, 15, 6, True),
        moved(base + (i - 7) % 16, all_, 15, 15, False),
        moved(base + 15 - i, all_, 15, 3, False),
        moved(base + (i ^ 7), all_, 10, 15, True),
        moved(base + 2, all_, 15, 15, False),
    ]
    return Launch(
        [a, np.zeros((32, 10), "i4")],
        **blocks(32, 32),
        expected={1: np.stack(wanted, 1).astype("i4")},
    )


@case("lanes", host=False)
def votes(rng: Random) -> Launch:
    a = _values(rng)
    a[64:96], a[96:128] = -1, 1
    parts = a.reshape(-1, 32)
    ballots = ((parts > 0) * (1 << np.arange(32))).sum(1).astype("u4")
    wanted = np.zeros((len(parts), 32, 4), "u4")
    for part, ballot, out in zip(parts, ballots.tolist(), wanted, strict=True):
        out[:, 0] = ballot
        out[:, 1] = [(ballot & ((1 << lane) - 1)).bit_count() for lane in range(32)]
        if ballot:
            out[:, 2] = part[(ballot & -ballot).bit_length() - 1].view("u4")
        out[:, 3] = np.where(part > 0, 1, 2**32 - 1)
    return Launch([a, np.zeros((N, 4), "u4")], **blocks(N, 64), expected={1: wanted.reshape(N, 4)})


@case("lanes", host=False)
def waterfall(rng: Random) -> Launch:
    a = rng.integers(0, 16, N).astype("i4")
    table = _values(rng)[:16]
    wanted = np.stack([table[a], a.reshape(-1, 32)[:, 5].repeat(32)], 1)
    return Launch([a, table, np.zeros((N, 2), "i4")], **blocks(N, 64), expected={2: wanted})


@case("lanes", host=False)
def swizzle(rng: Random) -> Launch:
    a = _values(rng)
    lane = np.arange(N)
    base = lane & ~31
    wanted = np.stack([a[lane ^ 16], a[base + ((lane & 7) ^ 3)], a[lane ^ 2], a[base + 31]], 1)
    return Launch([a, np.zeros((N, 4), "i4")], **blocks(N, 64), expected={1: wanted})
