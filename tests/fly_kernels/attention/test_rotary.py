"""Rotary position embedding, and the update of caches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from fly_common.errors import UsageError

from fly.kernels import rotary_and_cache, rotary_embedding
from fly.kernels.attention import rotary, rotation
from fly.kernels.attention.rotary_cache import rotate_and_cache
from fly.kernels.attention.rotation import Rotation, width_for
from fly_kernels.judging import gradients, judge, tensor

HALF, BRAIN, FLOAT = torch.float16, torch.bfloat16, torch.float32
# The shape of x, pairs, type, interleaved.
CASES = [
    ((2, 3, 20, 64), 32, HALF, False),
    ((2, 3, 20, 64), 32, HALF, True),
    ((1, 2, 7, 128), 32, BRAIN, False),  # half of d
    ((1, 2, 7, 128), 32, BRAIN, True),
    ((9, 16), 8, FLOAT, True),
    ((2, 9, 48), 16, FLOAT, False),
    ((300, 16), 8, HALF, False),
    ((3, 1, 96), 48, FLOAT, False),
    ((2, 5, 32), 0, HALF, False),
    ((0, 5, 32), 16, HALF, False),
    ((2, 0, 32), 16, FLOAT, True),
]


def angles(positions: int, pairs: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """cos and sin."""
    turns = tensor(7, (positions, pairs), torch.float64)
    return [turns.cos().to(dtype), turns.sin().to(dtype)]


def rotated(x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    """By products of complex numbers."""
    wide = torch.promote_types(x.dtype, torch.float32)
    pairs = cos.shape[-1]
    head, tail = x[..., : 2 * pairs].to(wide), x[..., 2 * pairs :]
    x, y = (
        (head[..., ::2], head[..., 1::2]) if interleaved else (head[..., :pairs], head[..., pairs:])
    )
    turned = torch.complex(x, y) * torch.complex(cos.to(wide), sin.to(wide))
    parts = torch.stack([turned.real, turned.imag], -1 if interleaved else -2)
    return torch.cat([parts.flatten(-2).to(tail.dtype), tail], -1)


@pytest.mark.parametrize(("shape", "pairs", "dtype", "interleaved"), CASES, ids=str)
def test_forward_and_backward(target, shape, pairs, dtype, interleaved):
    x, turns = tensor(1, shape, dtype), angles(shape[-2], pairs, dtype)
    judge(rotary_embedding(x, *turns, interleaved), lambda *a: rotated(*a, interleaved), x, *turns)
    judge(
        gradients(lambda *a: rotary_embedding(*a, interleaved), x, *turns),
        lambda *a: gradients(lambda *a: rotated(*a, interleaved), *a),
        x,
        *turns,
    )


def test_strides(target):
    """A transpose of positions × heads × d, and odd columns."""
    turns = angles(5, 8, FLOAT)
    wide = tensor(1, (2, 5, 3, 40), HALF)
    for x in (wide[..., 16:32].transpose(1, 2), wide[..., 1:17].transpose(1, 2)):
        judge(rotary_embedding(x, *turns), lambda *a: rotated(*a, False), x, *turns)


def cache_arguments(tokens, heads, kv_heads, d, page, dtype, *, integers=torch.int64, pairs=None):
    """All arguments of rotary_and_cache: two tokens are not stored."""
    shapes = (tokens, heads, d), (tokens, kv_heads, d), (tokens, kv_heads, d)
    rows = [tensor(seed, shape, dtype) for seed, shape in enumerate(shapes)]
    pages = -(-tokens // page) + 1
    caches = [tensor(seed, (pages, page, kv_heads, d), dtype) for seed in (4, 5)]
    random = torch.Generator().manual_seed(6)
    positions = torch.randint(0, 50, (tokens,), generator=random, dtype=integers)
    slots = torch.randperm(pages * page, generator=random)[:tokens].to(integers)
    slots[1:3] = -1
    turns = angles(50, d // 2 if pairs is None else pairs, FLOAT)
    return [*rows, *turns, positions, *caches, slots]


def cached(q, k, v, cos, sin, positions, k_cache, v_cache, slots, interleaved):
    """The results of rotary_and_cache, and the caches afterwards."""
    turns = [one[positions.long()][:, None] for one in (cos, sin)]
    q, k = (rotated(one, *turns, interleaved) for one in (q, k))
    stored = slots >= 0
    for cache, rows in ((k_cache, k), (v_cache, v)):
        cache = cache.clone()
        cache.view(-1, *cache.shape[2:])[slots[stored].long()] = rows[stored]
        yield cache
    yield from (q, k)


CACHE_CASES = [
    (5, 2, 1, 64, 16, HALF),
    (20, 3, 3, 128, 16, BRAIN),
    (1, 1, 1, 16, 1, FLOAT),
    (0, 2, 1, 64, 16, HALF),
    (40, 8, 2, 64, 32, HALF),
    (7, 1, 1, 256, 5, HALF),
    (3, 40, 8, 128, 16, BRAIN),  # two blocks for a token
    (16, 2, 2, 32, 16, FLOAT),
    (33, 6, 3, 96, 16, BRAIN),
    (2, 5, 1, 48, 64, HALF),
]


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("case", CACHE_CASES, ids=str)
def test_caches(target, case, interleaved):
    own = cache_arguments(*case)
    exact = [one.clone() for one in own]
    results = rotary_and_cache(*own, interleaved)
    found = own[6], own[7], *results
    judge(found, lambda *own: tuple(cached(*own, interleaved)), *exact)


WIDTH_CASES = [
    ((5, 2, 1, 64, 16, HALF), None),
    ((3, 3, 2, 48, 4, BRAIN), 16),  # elements behind the pairs, and threads behind the heads
    ((2, 20, 5, 80, 3, FLOAT), 8),  # several blocks of q
    ((7, 1, 1, 256, 5, HALF), 0),
    ((3, 40, 8, 128, 16, BRAIN), 64),
]


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize(("case", "pairs"), WIDTH_CASES, ids=str)
def test_pairs_of_a_thread(target, monkeypatch, case, pairs, interleaved, width):
    """Few tokens have one a thread, and many eight."""
    monkeypatch.setattr(rotary, "width_for", lambda _: width)
    own = cache_arguments(*case, pairs=pairs)
    exact = [one.clone() for one in own]
    results = rotary_and_cache(*own, interleaved)
    found = own[6], own[7], *results
    judge(found, lambda *own: tuple(cached(*own, interleaved)), *exact)


def widths_taken(monkeypatch) -> list[int]:
    """The widths of later calls."""
    taken = []

    def launch(*given):
        taken.append(given[9].width)
        return rotate_and_cache(*given)

    monkeypatch.setattr(rotary, "rotate_and_cache", launch)
    return taken


def test_many_tokens_have_eight_pairs_a_thread(target, monkeypatch):
    """Each call chooses, also one that torch compiled for any number of tokens."""
    assert [width_for(2**19), width_for(2**19 + 1)] == [1, 8]
    monkeypatch.setattr(rotation, "HELD", 5 * 4 * 32 // 2)  # the threads of five tokens
    taken = widths_taken(monkeypatch)
    calls = rotary_and_cache, torch.compile(rotary_and_cache.torch, fullgraph=True, dynamic=True)
    for call in calls:
        for tokens in (5, 6, 4):
            own = cache_arguments(tokens, 2, 1, 32, 3, HALF)
            exact = [one.clone() for one in own]
            made = call(*own)
            judge((own[6], own[7], *made), lambda *own: tuple(cached(*own, False)), *exact)
    assert taken == 2 * [1, 8, 1]


@pytest.mark.parametrize("integers", [torch.int64, torch.int32])
def test_places_that_are_counted_in_64_bits(target, integers):
    """As in caches with 2^32 rows, which have no room here."""
    for width in (1, 8):
        own = cache_arguments(7, 2, 1, 32, 3, HALF, integers=integers)
        exact = [one.clone() for one in own]
        made = rotate_and_cache(*own, Rotation(32, 16, False, width), 64, wide=True)
        judge((own[6], own[7], *made), lambda *own: tuple(cached(*own, False)), *exact)


def test_strict(strict, target, monkeypatch):
    test_forward_and_backward(target, (2, 3, 32), 8, HALF, True)
    for width in (1, 8):
        test_pairs_of_a_thread(target, monkeypatch, (3, 5, 2, 48, 2, HALF), 16, False, width)
        test_pairs_of_a_thread(target, monkeypatch, (2, 2, 1, 32, 2, BRAIN), 16, True, width)


def test_numpy(target):
    own = cache_arguments(4, 2, 1, 32, 16, HALF, integers=torch.int32)
    exact = [one.clone() for one in own]
    arrays = [one.numpy() for one in own]
    results = rotary_and_cache(*arrays)
    found = tuple(map(torch.tensor, (arrays[6], arrays[7], *results)))
    judge(found, lambda *own: tuple(cached(*own, False)), *exact)


def test_torch_checks_the_operators(target):
    x, turns = tensor(1, (2, 3, 32), FLOAT, 1.0).requires_grad_(), angles(3, 8, FLOAT)
    torch.library.opcheck(rotary_embedding.torch, (x, *turns, True))
    torch.library.opcheck(rotary_embedding.torch, (x, turns[0].requires_grad_(), turns[1]))
    torch.library.opcheck(rotary_and_cache.torch, tuple(cache_arguments(4, 2, 1, 32, 16, HALF)))


def test_compiled_by_torch(target):
    def function(*own: Any) -> Any:
        q, k = rotary_and_cache(*own)
        return own[6] + 0, own[7] + 0, q + 0, rotary_embedding(k, *(one[:1] for one in own[3:5]))

    own = cache_arguments(4, 2, 1, 32, 16, HALF)
    exact = [one.clone() for one in own]

    def reference(*own: Any) -> Any:
        k_cache, v_cache, q, k = cached(*own, False)
        return k_cache, v_cache, q, rotated(k, own[3][:1], own[4][:1], False)

    judge(torch.compile(function, fullgraph=True)(*own), reference, *exact)


ZEROS = {"x": np.zeros((3, 32), "f4"), "cos": np.zeros((3, 8), "f4"), "sin": np.zeros((3, 8), "f4")}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"x": np.zeros((3, 32))},
            "x is of float64, and must be of float16, bfloat16 or float32",
        ),
        (
            {"sin": np.zeros((2, 8), "f4")},
            "cos and sin are of positions × pairs and of one type, not (3, 8) and (2, 8)",
        ),
        (
            {"x": np.zeros((3, 24), "f4")},
            "8 pairs of 24 elements: both numbers of elements are multiples of 16",
        ),
        (
            {"x": np.zeros((4, 32), "f4")},
            "x is of … × positions × d, and cos has 3 positions, not (4, 32)",
        ),
    ],
)
def test_refused(target, change, said):
    with pytest.raises(UsageError) as error:
        rotary_embedding(*(ZEROS | change).values())
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("place", "other", "said"),
    [
        (
            2,
            np.zeros((4, 1, 32), "f4"),
            "q, k, v and the caches are of one type, not float16, float16, float32, float16, "
            "float16",
        ),
        (
            8,
            np.zeros(3, "i8"),
            "the shapes of q, k, v, the caches, positions and slots do not fit: (4, 2, 32), "
            "(4, 1, 32), (4, 1, 32), (2, 16, 1, 32), (2, 16, 1, 32), (4,), (3,)",
        ),
        (
            6,
            np.zeros((2, 16, 1, 33), "f2")[..., 1:],
            "rows of k_cache are not at multiples of 16 bytes: make it contiguous",
        ),
    ],
)
def test_caches_refused(target, place, other, said):
    own = [one.numpy() for one in cache_arguments(4, 2, 1, 32, 16, HALF)]
    own[place] = other
    with pytest.raises(UsageError) as error:
        rotary_and_cache(*own)
    assert str(error.value) == said
