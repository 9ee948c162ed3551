"""Attention of one query of each sequence by mma.sync, on the device cpu, judged by torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fly.kernels import paged_attention
from fly.kernels.attention.decoding import warp_decode
from fly_kernels.attention.test_attention_paged import BRAIN, CASES, HALF, inputs, reference
from fly_kernels.judging import judge, tensor


@pytest.fixture(params=["sm_90a", "sm_80"])
def nvidia(request, monkeypatch):
    monkeypatch.setenv("FLY_TARGET", request.param)
    monkeypatch.setenv("FLY_DEVICE", "cpu")


@pytest.fixture
def hopper(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_DEVICE", "cpu")


def check(case: Any, change: Any = lambda own: own, scale: float | None = None):
    own, places = inputs(*case)
    own = change(own)
    found = paged_attention(*own, *places, scale)
    judge(found, lambda *own: reference(*own, *places, scale=scale), *own)


@pytest.mark.heavy
@pytest.mark.parametrize("case", CASES, ids=str)
def test_pages(case, hopper):
    check(case)


@pytest.mark.heavy
def test_pieces(nvidia):
    """Sequences of several pieces, the last ones of few keys, which some warps have none of."""
    length = warp_decode.KEYS
    check(([length, length + 1, 2 * length - 40, 3], 6, 2, 16, 64, HALF))


@pytest.mark.heavy
@pytest.mark.parametrize("heads", [8, 9, 16, 32])
def test_heads_that_share_keys(heads, hopper):
    check(([70, 9], heads, 1, 16, 64, BRAIN))


@pytest.mark.heavy
def test_wide_heads(hopper):
    check(([70, 33], 16, 1, 16, 256, BRAIN))


@pytest.mark.heavy
def test_scale_and_strides(hopper):
    keys = tensor(9, (5, 16, 2, 128), HALF, 1.0)[..., 64:]
    case = ([20, 5], 2, 2, 16, 64, HALF)
    check(case, lambda own: [own[0], keys, own[2]], -0.5)


@pytest.mark.heavy
def test_keys_and_values_of_a_page_beside_each_other(hopper):
    """As caches of pages × 2 × page size × heads × d are."""

    def change(own):
        both = torch.stack(own[1:], 1)
        return [own[0], both[:, 0], both[:, 1]]

    check(([300, 17], 4, 2, 16, 64, HALF), change)


@pytest.mark.heavy
def test_a_sequence_has_the_same_bits_beside_any_other(hopper):
    own, (tables, lengths) = inputs([1100, 17], 2, 1, 16, 64, HALF)
    beside = paged_attention(*own, tables, lengths)
    alone = paged_attention(own[0][:1], *own[1:], tables[:1], lengths[:1])
    assert torch.equal(beside[:1], alone)


@pytest.mark.heavy
def test_numbers_that_are_not_finite(hopper):
    """A score of infinity leaves a NaN, as in torch; one of -infinity leaves its key out."""
    own, places = inputs([40, 40], 2, 1, 16, 64, HALF)
    page = int(places[0][0, 1])
    own[0][:] = own[0].abs()
    own[1][page, 3, 0] = float("-inf")
    found = paged_attention(*own, *places)
    judge(found, lambda *own: reference(*own, *places), *own)
