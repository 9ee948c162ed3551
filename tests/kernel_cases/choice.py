"""Random extents, types and tensors. A tensor's neighbours in memory are NaN or great numbers, so
that a kernel which reads beside it is noticed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeVar

import torch

T = TypeVar("T")
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SMALL_FLOATS = FLOATS[:3]
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
EDGES = (8, 16, 32, 64, 128, 256)  # of vectors, waves, tiles and blocks


class Choice:
    """Random decisions. Equal seeds make equal ones."""

    def __init__(self, seed: str):
        self.random = random.Random(seed)
        self.numbers = torch.Generator().manual_seed(self.random.getrandbits(60))

    def one(self, among: Sequence[T]) -> T:
        return self.random.choice(among)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def whole(self, least: int, most: int) -> int:
        return self.random.randint(least, most)

    def extent(self, most: int, least: int = 0) -> int:
        """From `least` to `most`: mostly small, or beside the edge of a tile."""
        kind = self.random.random()
        if kind < 0.1:
            number = least
        elif kind < 0.45:
            number = self.whole(1, 9)
        elif kind < 0.8:
            number = self.one(EDGES) * self.whole(1, 3) + self.whole(-1, 1)
        else:
            number = self.whole(1, most)
        return max(least, min(most, number))

    def split(self, total: int, parts: int) -> list[int]:
        """Numbers with a sum, some of them 0."""
        ends = sorted(self.one((0, total, self.whole(0, total))) for _ in range(parts - 1))
        return [b - a for a, b in zip([0, *ends], [*ends, total], strict=True)][:parts]

    def normal(
        self, shape: Sequence[int], dtype: torch.dtype, scale: float = 2.0, special: float = 0.0
    ) -> torch.Tensor:
        """Normally distributed numbers, anywhere in memory. `special` is the chance that some are
        NaN or infinite."""
        made = torch.randn(tuple(shape), generator=self.numbers, dtype=torch.float64) * scale
        if made.numel() and self.chance(special):
            flat = made.view(-1)
            for _ in range(self.whole(1, 3)):
                number = self.one((float("nan"), float("inf"), float("-inf")))
                flat[self.whole(0, len(flat) - 1)] = number
        made = made.to(dtype)
        if made.ndim and self.chance(0.05):  # all along a dimension are the same
            return made[_first(made.ndim, self.whole(0, made.ndim - 1))].expand(made.shape)
        return self.placed(made)

    def integers(
        self, shape: Sequence[int], dtype: torch.dtype, least: int, most: int
    ) -> torch.Tensor:
        """Integers from `least` to `most`, as far as the type has them, anywhere in memory."""
        limits = torch.iinfo(dtype)
        least, most = max(least, limits.min), min(most, limits.max)
        made = [self.whole(least, most) for _ in range(torch.Size(shape).numel())]
        if made and self.chance(0.5):
            made[-1], made[len(made) // 2] = least, most
        return self.placed(torch.tensor(made, dtype=dtype).reshape(tuple(shape)))

    def placed(self, x: torch.Tensor) -> torch.Tensor:
        """The same numbers: contiguous, transposed, apart, or at an odd address."""
        kind, rank = self.random.random(), x.ndim
        if kind < 0.4:
            return x.contiguous()
        order = [*range(rank)]
        if kind < 0.6:
            self.random.shuffle(order)
        steps, step = [0] * rank, 1
        for place, i in enumerate(reversed(order)):
            if kind > 0.8 and (place > 0 or self.chance(0.2)):
                step *= self.whole(1, 2)
            steps[i] = step
            step = step * max(1, x.shape[i]) + (self.whole(0, 8) if kind > 0.7 else 0)
        start = self.whole(0, 9) if kind > 0.5 else 0
        nothing = float("nan") if x.is_floating_point() else torch.iinfo(x.dtype).max
        memory = torch.full((start + step + 16,), nothing, dtype=torch.float64).to(x.dtype)
        view = memory.as_strided(x.shape, steps, start)
        view.copy_(x)
        return view


def _first(rank: int, dim: int) -> tuple[slice, ...]:
    return tuple(slice(0, 1) if i == dim else slice(None) for i in range(rank))


def listed(tensors: Sequence[Any]) -> str:
    """The types, shapes and strides of tensors."""
    return ", ".join(
        f"{str(one.dtype).removeprefix('torch.')}{tuple(one.shape)}:{one.stride()}"
        for one in tensors
    )
