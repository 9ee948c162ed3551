"""Grids of two and three dimensions."""

from __future__ import annotations

import numpy as np

from kernels.case import Launch, case

Random = np.random.Generator


@case("grid")
def sobel(rng: Random) -> Launch:
    width, height = 45, 30
    image = (rng.integers(0, 256, (height, width, 4)) >> rng.integers(0, 7, 4)).astype("u1")
    p = np.lib.stride_tricks.sliding_window_view(image.astype("i4"), (3, 3), (0, 1))
    weights = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    gradient = abs((p * weights).sum((-2, -1))) + abs((p * weights.T).sum((-2, -1)))
    wanted = image.copy()
    wanted[1:-1, 1:-1] = np.minimum(gradient, 255)
    return Launch(
        [image, np.zeros_like(image), np.int32(width), np.int32(height)],
        (5, 5, 1),
        (10, 7, 1),
        expected={1: wanted},
    )


@case("grid")
def five_point(rng: Random) -> Launch:
    a = rng.standard_normal((29, 41))
    wanted = a.copy()
    wanted[1:-1, 1:-1] = 0.25 * (a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1])
    return Launch(
        [a, np.zeros_like(a), np.int32(41), np.int32(29)],
        (3, 8, 1),
        (16, 4, 1),
        expected={1: wanted},
    )


@case("grid")
def life(rng: Random) -> Launch:
    cells = (rng.random((24, 32)) < 0.35).astype("u1")
    wanted = cells.copy()
    for _ in range(7):
        turned = [np.roll(wanted, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)]
        around = sum(turned) - wanted
        wanted = ((around == 3) | ((around == 2) & (wanted == 1))).astype("u1")
    return Launch([cells, np.int32(7)], (1, 1, 1), (32, 24, 1), expected={0: wanted})


@case("grid")
def transpose(rng: Random) -> Launch:
    height, width = 50, 71
    a = rng.integers(0, 2**16, (height, width)).astype("u2")
    return Launch(
        [a, np.zeros((width, height), "u2"), np.int32(width), np.int32(height)],
        (3, 2, 1),
        (32, 8, 1),
        expected={1: np.ascontiguousarray(a.T)},
    )


@case("grid")
def places(rng: Random) -> Launch:
    grid, block = (2, 3, 4), (5, 3, 7)
    sizes = [g * b for g, b in zip(grid, block, strict=True)]
    z, y, x = np.indices(sizes[::-1])
    wanted = x % 5 | (y % 3) << 4 | (z % 7) << 8 | (x // 5) << 12 | (y // 3) << 16 | (z // 7) << 20
    lengths = np.array([b * 100 + s for s, b in zip(sizes, block, strict=True)], "i2")
    return Launch(
        [np.zeros(wanted.shape, "i4"), np.zeros((wanted.size, 3), "i2")],
        grid,
        block,
        expected={0: wanted.astype("i4"), 1: np.tile(lengths, (wanted.size, 1))},
    )
