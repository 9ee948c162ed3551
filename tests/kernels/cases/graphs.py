"""Compare-and-swap, locks."""

from __future__ import annotations

import numpy as np

from kernels.case import Launch, blocks, case

Random = np.random.Generator


@case("graph")
def bfs_step(rng: Random) -> Launch:
    n, level = 150, 2
    neighbours = [rng.integers(0, n, rng.integers(0, 6)) for _ in range(n)]
    starts = np.cumsum([0, *map(len, neighbours)]).astype("i4")
    levels = rng.choice([-1, 1, 2, 3], n, p=[0.6, 0.1, 0.2, 0.1]).astype("i4")
    wanted = levels.copy()
    for node in np.flatnonzero(levels == level):
        reached = neighbours[node]
        wanted[reached[wanted[reached] == -1]] = level + 1
    grown = np.array([(wanted != levels).sum()], "i4")
    flat = np.concatenate(neighbours).astype("i4")
    return Launch(
        [starts, flat, levels, np.zeros(1, "i4"), np.int32(level), np.int32(n)],
        **blocks(n, 64),
        expected={2: wanted, 3: grown},
    )


def _root(parents: np.ndarray, node: int) -> int:
    while parents[node] != node:
        node = parents[node]
    return int(node)


@case("graph", portable=False, host=False)
def union_find(rng: Random) -> Launch:
    """The trees depend on the order, but their roots do not."""
    n, m = 120, 80
    edges = rng.integers(0, n, (m, 2)).astype("i4")
    label = np.arange(n)
    for a, b in edges:
        low, high = sorted((label[a], label[b]))
        label[label == high] = low

    def same_sets(parents: np.ndarray) -> None:
        np.testing.assert_array_equal([_root(parents, i) for i in range(n)], label)

    return Launch(
        [edges, np.arange(n, dtype="i4"), np.int32(m)], **blocks(m, 40), expected={1: same_sets}
    )


@case("graph")
def atomic_product(rng: Random) -> Launch:
    """Powers of two and signs: exact in any order."""
    n = 100
    a = rng.choice([0.5, 2, -1, 1, -2, -0.5], n).astype("f4")
    narrow = np.array([1, 3, 5, 7], "f4")
    wide = np.array([1.5, -7.25])
    wanted = narrow.copy(), wide.copy()
    for i, value in enumerate(a):
        wanted[0][i & 3] *= value
        wanted[1][i & 1] *= value
    return Launch(
        [a, narrow.view("u4"), wide.view("u8"), np.int32(n)],
        **blocks(n, 32),
        expected={1: wanted[0].view("u4"), 2: wanted[1].view("u8")},
    )


@case("graph", portable=False, host=False)
def spin_lock(rng: Random) -> Launch:
    groups = 12
    total = 0
    for turn in range(groups):
        total = total * 31 + turn

    def everybody(order: np.ndarray) -> None:
        assert sorted(order) == list(range(groups))

    return Launch(
        [np.zeros(1, "i4"), np.zeros(2, "i8"), np.full(groups, -1, "i4")],
        **blocks(groups * 32, 32),
        expected={1: np.array([groups, total]), 2: everybody},
    )


@case("graph", host=False)
def hand_over(rng: Random) -> Launch:
    groups, value = 5, 1
    for group in reversed(range(groups)):
        value = (value * 1664525 + group) % 2**32
    return Launch(
        [np.array([groups - 1], "i4"), np.ones(1, "u4")],
        **blocks(groups * 32, 32),
        expected={0: np.array([-1], "i4"), 1: np.array([value], "u4")},
    )
