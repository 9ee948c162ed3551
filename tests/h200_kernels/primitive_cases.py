"""Inputs and expected results of the kernels in `primitives`, from NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from primitives.test_random import philox

from h200_kernels.case import Case, Values
from h200_kernels.primitives import BINS, BLOCK, ITEMS

LANES = 32


def warps(values: Values) -> Mapping[str, np.ndarray]:
    x = values["X"].reshape(-1, LANES)
    lane = np.arange(LANES)

    def all_lanes(numbers: np.ndarray) -> np.ndarray:
        return np.broadcast_to(numbers[:, None], x.shape)

    groups = x.reshape(-1, 8)
    before = np.hstack([np.full((len(x), 1), 5), x[:, :-1]])
    masks = 1 << lane.astype(np.int64)
    rows = (
        all_lanes(x.sum(1)),
        np.broadcast_to(groups.max(1)[:, None], groups.shape),
        x.cumsum(1),
        np.minimum.accumulate(before, 1),
        np.sort(x, 1),
        x[:, lane ^ 9],
        all_lanes(x[:, 7]),
        all_lanes(((x > 3) * masks).sum(1)),
        (((x & 3)[:, :, None] == (x & 3)[:, None, :]) * masks).sum(2),
        all_lanes((x > 3).sum(1)),
    )
    words = np.array([row.reshape(-1) for row in rows], np.int64)
    return {"Y": words.astype(np.uint32).view(np.int32)}


def blocks(values: Values) -> Mapping[str, np.ndarray]:
    x = values["X"]
    before = np.maximum.accumulate(np.hstack([[-1000], x[:-1]]))
    rows = (x.cumsum(), before, np.sort(x), x.reshape(BLOCK, ITEMS).T.reshape(-1))
    totals = [x.sum(), x.min(), *np.sort(x)[::-1][:8]]
    return {
        "Y": np.array(rows, np.int32),
        "totals": np.repeat(np.array(totals, np.int32)[:, None], BLOCK, 1),
        "bins": np.bincount(x & (BINS - 1), minlength=BINS).astype(np.int32),
    }


def words(values: Values) -> Mapping[str, np.ndarray]:
    counters = np.tile(np.arange(4), (len(values["Y"]), 1))
    counters[:, 0] = np.arange(len(counters))
    return {"Y": philox(counters, (4, 5))}


def numbers(seed: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-99, 100, count).astype(np.int32)


KERNELS = Path(__file__).with_name("primitives.py")
CASES = (
    Case(
        KERNELS,
        "warp_primitives",
        lambda: {"X": numbers(71, BLOCK), "Y": np.zeros((10, BLOCK), np.int32)},
        warps,
    ),
    Case(
        KERNELS,
        "block_primitives",
        lambda: {
            "X": numbers(72, BLOCK * ITEMS),
            "Y": np.zeros((4, BLOCK * ITEMS), np.int32),
            "totals": np.zeros((10, BLOCK), np.int32),
            "bins": np.zeros(BINS, np.int32),
        },
        blocks,
    ),
    Case(KERNELS, "random_words", lambda: {"Y": np.zeros((4 * BLOCK, 4), np.uint32)}, words),
)
