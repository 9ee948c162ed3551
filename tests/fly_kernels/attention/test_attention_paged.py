"""Attention of one query of each sequence, over pages of keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from fly_common.errors import UsageError

from fly.kernels import paged_attention
from fly_kernels.judging import judge, tensor

HALF, BRAIN = torch.float16, torch.bfloat16
# Lengths, heads, kv_heads, page size, d, type.
CASES = [
    ([5, 16, 17], 2, 1, 16, 64, HALF),
    ([300], 4, 2, 16, 64, HALF),  # two pieces
    ([256, 1, 0, 257], 3, 3, 32, 128, BRAIN),
    ([0], 1, 1, 16, 64, HALF),
    ([], 2, 1, 16, 64, HALF),
    ([33, 70], 12, 1, 16, 64, HALF),  # by FMA, two waves of six heads
    ([65], 24, 1, 16, 64, BRAIN),  # two waves of twelve heads
    ([40], 8, 1, 64, 128, HALF),
    ([7], 11, 1, 16, 32, BRAIN),
    ([100], 2, 2, 128, 256, HALF),
    ([600, 20], 2, 2, 17, 32, HALF),
]


def inputs(lengths, heads, kv_heads, page, d, dtype) -> tuple[list[Any], list[Any]]:
    """q, the caches; the pages, in random order, and lengths."""
    pages = [-(-one // page) for one in lengths]
    most, count = max(pages, default=0) + 1, sum(pages) + 2
    order = torch.randperm(count, generator=torch.Generator().manual_seed(5)).to(torch.int32)
    tables = torch.full((len(lengths), most), -1, dtype=torch.int32)
    for i, one in enumerate(pages):
        tables[i, :one] = order[sum(pages[:i]) :][:one]
    cache = (count, page, kv_heads, d)
    shapes = ((len(lengths), heads, d), cache, cache)
    own = [tensor(seed, shape, dtype, 1.0) for seed, shape in enumerate(shapes)]
    return own, [tables, torch.tensor(lengths, dtype=torch.int32)]


def reference(q: Any, k: Any, v: Any, tables: Any, lengths: Any, scale: Any = None) -> Any:
    attention = torch.nn.functional.scaled_dot_product_attention
    out = torch.zeros_like(q)
    for i, length in enumerate(lengths.tolist()):
        pages = tables[i, : -(-length // k.shape[1])].long()
        keys, values = (one[pages].flatten(0, 1)[:length].transpose(0, 1)[None] for one in (k, v))
        query = q[i, :, None][None]
        out[i] = attention(query, keys, values, scale=scale, enable_gqa=True)[0, :, 0]
    return out


@pytest.mark.parametrize("case", CASES, ids=str)
def test_pages(target, case):
    own, places = inputs(*case)
    judge(paged_attention(*own, *places), lambda *own: reference(*own, *places), *own)


def test_strict(strict, target):
    test_pages(target, ([3, 1], 2, 1, 2, 32, HALF))


def test_scale_and_strides(target):
    own, places = inputs([20, 5], 2, 2, 16, 64, HALF)
    keys = tensor(9, (*own[1].shape[:-1], 128), HALF, 1.0)[..., 64:]
    own[1] = keys
    found = paged_attention(*own, *places, scale=-0.5)
    judge(found, lambda *own: reference(*own, *places, -0.5), *own)


def test_pages_that_do_not_follow_each_other(target):
    """These are not multiplied by matrix instructions."""
    own, places = inputs([300, 5], 4, 2, 16, 64, HALF)
    own[2] = own[2].repeat_interleave(2, 0)[::2]
    found = paged_attention(*own, *places)
    judge(found, lambda *own: reference(*own, *places), *own)


def test_a_sequence_has_the_same_bits_beside_any_other(target):
    own, (tables, lengths) = inputs([300, 17], 2, 1, 16, 64, HALF)
    beside = paged_attention(*own, tables, lengths)
    alone = paged_attention(own[0][:1], *own[1:], tables[:1], lengths[:1])
    assert torch.equal(beside[:1], alone)


def test_numpy(target):
    own, places = inputs([20, 5], 2, 2, 16, 64, HALF)
    found = paged_attention(*(one.numpy() for one in (*own, *places)))
    judge(torch.tensor(found), lambda *own: reference(*own, *places), *own)


def test_torch_checks_the_operator(target):
    own, places = inputs([20, 5], 2, 2, 16, 64, HALF)
    torch.library.opcheck(paged_attention.torch, (*own, *places))


def test_compiled_by_torch(target):
    compiled = torch.compile(lambda *own: paged_attention(*own) + 1, fullgraph=True)
    own, places = inputs([20, 5], 2, 2, 16, 64, HALF)
    judge(compiled(*own, *places), lambda *own: reference(*own, *places) + 1, *own)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({0: np.zeros((2, 2, 64), "f4")}, "q is of float32, and must be of float16 or bfloat16"),
        (
            {1: np.zeros((4, 16, 1, 64), "f4")},
            "q is float16, and the caches float32 and float16: convert them",
        ),
        ({3: np.zeros((2, 2), "i8")}, "block_tables is of int64, and must be of int32"),
        (
            {4: np.zeros(3, "i4")},
            "the shapes of q, the caches, block_tables and context_lens do not fit: "
            "(2, 2, 64), (4, 16, 1, 64), (4, 16, 1, 64), (2, 2), (3,)",
        ),
    ],
)
def test_refused(target, change, said):
    cache = np.zeros((4, 16, 1, 64), np.float16)
    own = [
        np.zeros((2, 2, 64), np.float16),
        cache,
        cache,
        np.zeros((2, 2), "i4"),
        np.zeros(2, "i4"),
    ]
    for i, other in change.items():
        own[i] = other
    with pytest.raises(UsageError) as error:
        paged_attention(*own)
    assert str(error.value) == said


def test_other_rows_are_refused(target):
    cache = np.zeros((4, 16, 1, 80), np.float16)
    with pytest.raises(UsageError) as error:
        paged_attention(cache[:2, 0], cache, cache, np.zeros((2, 2), "i4"), np.zeros(2, "i4"))
    assert str(error.value) == "heads are of 32, 64, 128 or 256 elements, not 80"
