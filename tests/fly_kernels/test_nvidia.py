"""Kernels that choose instructions by the target, compiled for an NVIDIA GPU, on the device cpu."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from fly_common.errors import InputError

from fly.kernels import moe_combine, paged_attention, rms_norm, rotary_embedding, softmax
from fly_kernels.attention.test_attention_paged import inputs, reference
from fly_kernels.attention.test_rotary import angles, rotated
from fly_kernels.judging import judge, tensor

HALF = torch.float16


@pytest.mark.heavy
def test_rows_and_attention(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_DEVICE", "cpu")
    x, weight = tensor(1, (3, 70), HALF), tensor(2, (70,), HALF)
    judge(rms_norm(x, weight), lambda x, w: F.rms_norm(x, (70,), w, 1e-6), x, weight)
    judge(softmax(x), lambda x: x.softmax(-1), x)
    places, shares = torch.tensor([2, 0, 1, 3], dtype=torch.int32), torch.rand(2, 2)
    rows = tensor(3, (4, 70), HALF)
    made = moe_combine(rows, places, places, shares)
    judge(made, lambda x: (x[places.long()].view(2, 2, 70) * shares[..., None]).sum(1).to(x), rows)
    turns = angles(3, 8, HALF)
    judge(rotary_embedding(x[:, :32], *turns), lambda *a: rotated(*a, False), x[:, :32], *turns)
    own, pages = inputs([20, 5], 2, 1, 16, 64, HALF)
    judge(paged_attention(*own, *pages), lambda *own: reference(*own, *pages), *own)


@pytest.mark.heavy
def test_more_sequences_than_a_grid_has_are_refused(monkeypatch):
    """A grid has 65535 blocks along z: nothing may run for some of the sequences."""
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_DEVICE", "cpu")
    count = 65536
    q, cache = torch.zeros(count, 1, 32, dtype=HALF), torch.zeros(1, 1, 1, 32, dtype=HALF)
    tables, lengths = (torch.zeros(count, dtype=torch.int32) for _ in range(2))
    with pytest.raises(InputError, match="65536 workgroups in z; sm_90a has 65535"):
        paged_attention(q, cache, cache, tables[:, None], lengths)
