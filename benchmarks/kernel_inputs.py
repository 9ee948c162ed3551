"""The arguments of the calls in kernel_calls.py, at two sizes: what the emulator executes in
seconds, and what keeps a GPU busy."""

from __future__ import annotations

from dataclasses import dataclass

import torch


def normal(*shape: int, dtype: torch.dtype = torch.float16, seed: int = 0) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=random, dtype=torch.float64).to(dtype)


def integers(*shape: int, below: int) -> torch.Tensor:
    random = torch.Generator().manual_seed(1)
    return torch.randint(0, below, shape, generator=random, dtype=torch.int32)


@dataclass(frozen=True)
class Sizes:
    """How large the arguments are. `rows` are of 4096 elements; `edge` is that of square matrices;
    `heads` have 64 elements at each of `positions`; `tokens` are those of a mixture of experts, and
    `sequences` those whose next token is computed."""

    rows: int = 8
    elements: int = 32768
    edge: int = 256
    heads: int = 4
    positions: int = 256
    tokens: int = 64
    sequences: int = 1
    images: int = 1


SMALL = Sizes()
LARGE = Sizes(16384, 1 << 26, 4096, 64, 2048, 16384, 1024, 64)
Inputs = tuple[torch.Tensor, ...]


def rows(sizes: Sizes, seed: int = 0) -> torch.Tensor:
    return normal(sizes.rows, 4096, seed=seed)


VECTOR = normal(4096, seed=1)


def heads(sizes: Sizes) -> Inputs:
    shape = (1, sizes.heads, sizes.positions, 64)
    return tuple(normal(*shape, seed=seed) for seed in range(3))


def angles(positions: int) -> Inputs:
    return tuple(
        one(normal(positions, 32, dtype=torch.float64)).half() for one in (torch.cos, torch.sin)
    )


def square(sizes: Sizes) -> Inputs:
    return tuple(normal(sizes.edge, sizes.edge, seed=seed) for seed in range(2))


def ends(sizes: Sizes) -> torch.Tensor:
    """The ends of groups of `edge` rows, one of which is empty."""
    return torch.tensor([70, 70, 200, 256], dtype=torch.int32) * (sizes.edge // 256)


def experts(sizes: Sizes) -> Inputs:
    weights = (normal(8, 128, 128, seed=seed) / 12 for seed in (2, 3))
    return (normal(sizes.tokens, 128), normal(128, 8, seed=1), *weights)


def packed(sizes: Sizes) -> Inputs:
    """q, k and v of two sequences, and where these begin and end, twice."""
    places = torch.tensor([0, 100, 256], dtype=torch.int32) * (sizes.positions // 256)
    vectors = (normal(sizes.positions, sizes.heads, 64, seed=seed) for seed in range(3))
    return (*vectors, places, places)


def pages(sizes: Sizes) -> Inputs:
    """Queries of 8 heads, pages of keys and of values, the pages of each sequence, its length."""
    count = 16 * sizes.sequences
    table = torch.arange(count, dtype=torch.int32).view(sizes.sequences, 16)
    lengths = torch.full((sizes.sequences,), 250, dtype=torch.int32)
    cached = (normal(count, 16, 1, 64, seed=seed) for seed in range(2))
    return (normal(sizes.sequences, 8, 64, seed=5), *cached, table, lengths)


def next_tokens(sizes: Sizes) -> Inputs:
    """q, k and v of 4 tokens for each sequence, the angles, their positions, caches and slots."""
    count = sizes.sequences
    tokens = (normal(4 * count, 8, 64), *(normal(4 * count, 2, 64, seed=seed) for seed in (1, 2)))
    positions = torch.tensor([0, 7, 100, 255], dtype=torch.int32).repeat(count)
    caches = (normal(4 * count, 16, 2, 64, seed=seed) for seed in range(2))
    slots = torch.tensor([5, 20, 21, 63], dtype=torch.int32) + 64 * torch.arange(count)[:, None]
    return (*tokens, *angles(256), positions, *caches, slots.int().view(-1))
