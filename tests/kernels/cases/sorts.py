"""Sorting and merging."""

from __future__ import annotations

import numpy as np

from kernels.case import Launch, blocks, case

Random = np.random.Generator


@case("sort")
def sort_bitonic(rng: Random) -> Launch:
    keys = rng.integers(0, 2**32, (3, 256)).astype("u4")
    keys[1] = rng.permutation(256)
    keys[2, :] = keys[2, 0]
    keys[0, 3:5] = 0, 2**32 - 1

    def carried(places: np.ndarray) -> None:
        np.testing.assert_array_equal(np.take_along_axis(keys, places.astype(int), 1), wanted)
        np.testing.assert_array_equal(np.sort(places, 1), np.tile(np.arange(256), (3, 1)))

    wanted = np.sort(keys, 1)
    places = np.zeros(keys.shape, "u2")
    return Launch([keys.copy(), places], **blocks(768, 256), expected={0: wanted, 1: carried})


@case("sort")
def sort_odd_even(rng: Random) -> Launch:
    keys = rng.integers(-(2**15), 2**15, (4, 90)).astype("i2")
    keys[1] = np.arange(90, 0, -1)
    keys[2] //= 8192
    return Launch([keys], **blocks(180, 45), expected={0: np.sort(keys, 1)})


def _digits(keys: np.ndarray, shift: int) -> np.ndarray:
    return keys >> np.uint32(shift) & np.uint32(15)


def _counts(keys: np.ndarray, shift: int) -> np.ndarray:
    digits = _digits(keys, shift).astype(int)
    return np.stack([np.bincount(row, minlength=16) for row in digits], 1).astype("i4")


@case("sort")
def radix_count(rng: Random) -> Launch:
    keys = rng.integers(0, 2**32, (5, 128)).astype("u4")
    return Launch(
        [keys, np.full((16, 5), -1, "i4"), np.int32(12), np.int32(5)],
        **blocks(keys.size, 128),
        expected={1: _counts(keys, 12)},
    )


@case("sort")
def radix_scatter(rng: Random) -> Launch:
    keys = rng.integers(0, 2**32, (5, 128)).astype("u4")
    counts = _counts(keys, 28).ravel()
    starts = (counts.cumsum() - counts).astype("i4")
    order = np.argsort(_digits(keys.ravel(), 28), kind="stable")
    return Launch(
        [keys, starts, np.zeros(keys.size, "u4"), np.int32(28), np.int32(5)],
        **blocks(keys.size, 128),
        expected={2: keys.ravel()[order]},
    )


@case("sort")
def merge_path(rng: Random) -> Launch:
    a, b = (np.sort(rng.integers(-50, 50, n)).astype("i2") for n in (130, 217))
    both = np.concatenate([a, b])
    marked = both.astype("i4") + np.repeat([0, 100000], [len(a), len(b)]).astype("i4")
    wanted = marked[np.argsort(both, kind="stable")]
    return Launch(
        [a, b, np.zeros(len(both), "i4"), np.int32(len(a)), np.int32(len(b))],
        **blocks(-(-len(both) // 5), 48),
        expected={2: wanted},
    )
