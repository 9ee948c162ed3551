"""Attention of sequences of various lengths, and its gradients."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest
import torch
from fly_common.errors import UsageError

from fly.kernels import flash_attention_varlen, flash_attention_varlen_backward
from fly_kernels.attention_by_torch import both, reference
from fly_kernels.judging import gradients, judge, tensor

HALF, BRAIN = torch.float16, torch.bfloat16
# Lengths of queries and of keys, heads, kv_heads, d, type, causal.
CASES = [
    ([70, 0, 5], [3, 17, 70], 2, 1, 64, HALF, False),
    ([70, 0, 5], [3, 17, 70], 2, 1, 64, HALF, True),
    ([64, 64], [64, 64], 1, 1, 128, BRAIN, True),
    ([1, 1, 1, 1], [9, 65, 0, 1], 4, 2, 64, HALF, True),
    ([33], [40], 1, 1, 128, BRAIN, True),
    ([0, 0, 3], [0, 4, 0], 1, 1, 64, HALF, False),
    ([3, 2], [130, 3], 2, 2, 64, HALF, True),
    ([20, 100], [20, 10], 1, 1, 64, HALF, True),
    ([], [], 1, 1, 64, HALF, False),
    ([0], [0], 1, 1, 64, HALF, True),
]


def starts(lengths: list[int]) -> torch.Tensor:
    return torch.tensor([*accumulate(lengths, initial=0)], dtype=torch.int32)


def one_by_one(lengths_q: list[int], lengths_k: list[int], causal: bool) -> Any:
    """A function of q, k and v that calls the reference for each sequence, and an empty one."""
    lists = [pairwise(starts([0, *one]).tolist()) for one in (lengths_q, lengths_k)]
    spans = [*zip(*lists, strict=True)]

    def function(q: Any, k: Any, v: Any) -> Any:
        outs, sums = [], []
        for of_q, of_k in spans:
            parts = [t[slice(*span)] for t, span in ((q, of_q), (k, of_k), (v, of_k))]
            out, lse = reference(*(part.transpose(0, 1)[None] for part in parts), causal)
            outs.append(out[0].transpose(0, 1))
            sums.append(lse[0])
        return torch.cat(outs), torch.cat(sums, 1)

    return function


def inputs(lengths_q, lengths_k, heads, kv_heads, d, dtype) -> list[torch.Tensor]:
    """q, k and v."""
    of_keys = (sum(lengths_k), kv_heads, d)
    shapes = ((sum(lengths_q), heads, d), of_keys, of_keys)
    return [tensor(seed, shape, dtype, 1.0) for seed, shape in enumerate(shapes)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_forward_and_backward(target, case):
    lengths_q, lengths_k, *sizes, causal = case
    own = inputs(lengths_q, lengths_k, *sizes)
    places = starts(lengths_q), starts(lengths_k)
    exact = one_by_one(lengths_q, lengths_k, causal)

    def transposed(out: Any, lse: Any) -> Any:
        return both(out.transpose(0, 1), lse)

    judge(flash_attention_varlen(*own, *places, causal), exact, *own)
    judge(
        gradients(lambda *own: transposed(*flash_attention_varlen(*own, *places, causal)), *own),
        lambda *own: gradients(lambda *own: transposed(*exact(*own)), *own),
        *own,
    )


@pytest.mark.heavy
def test_strict(strict, target):
    test_forward_and_backward(target, ([3, 0, 1], [2, 1, 5], 2, 1, 64, HALF, True))


def test_numpy(target):
    own = inputs([3, 4], [5, 6], 2, 1, 64, HALF)
    places = starts([3, 4]), starts([5, 6])
    out, lse = flash_attention_varlen(*(one.numpy() for one in (*own, *places)))
    assert out.flags.c_contiguous
    judge((torch.tensor(out), torch.tensor(lse)), one_by_one([3, 4], [5, 6], False), *own)


def test_strides_of_sums(target):
    """Of those that the operator of the gradients is called with."""
    own = *inputs([3, 34], [5, 26], 2, 1, 64, HALF), starts([3, 34]), starts([5, 26])
    out, lse = flash_attention_varlen(*own)
    d_out, d_lse = tensor(7, out.shape, HALF, 1.0), tensor(8, lse.shape, torch.float32, 1.0)
    wanted = flash_attention_varlen_backward(d_out, d_lse, *own, out, lse)
    turned = [x.t().contiguous().t() for x in (d_lse, lse)]
    found = flash_attention_varlen_backward(d_out, turned[0], *own, out, turned[1])
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)


def test_torch_checks_the_operators(target):
    own = *inputs([3, 4], [5, 6], 2, 1, 64, HALF), starts([3, 4]), starts([5, 6])
    out, lse = flash_attention_varlen(*own)
    torch.library.opcheck(flash_attention_varlen_backward.torch, (out, lse, *own, out, lse))
    own[0].requires_grad_()
    torch.library.opcheck(flash_attention_varlen.torch, (*own, True))


def test_compiled_by_torch(target):
    compiled = torch.compile(lambda *own: flash_attention_varlen(*own)[0] + 1, fullgraph=True)
    own = inputs([3, 4], [5, 6], 2, 1, 64, HALF)
    exact = one_by_one([3, 4], [5, 6], False)
    found = compiled(*own, starts([3, 4]), starts([5, 6]))
    judge(found, lambda *own: exact(*own)[0] + 1, *own)


@pytest.mark.parametrize(
    ("of_q", "of_k", "said"),
    [
        (np.zeros(3, "i4"), np.zeros(2, "i4"), "cu_seqlens_q has 3 elements, and cu_seqlens_k 2"),
        (
            np.zeros(3, "i8"),
            np.zeros(3, "i4"),
            "cu_seqlens are vectors of int32 with a first 0, not int64(3,)",
        ),
        (
            np.zeros(0, "i4"),
            np.zeros(0, "i4"),
            "cu_seqlens are vectors of int32 with a first 0, not int32(0,)",
        ),
    ],
)
def test_refused(target, of_q, of_k, said):
    own = [np.zeros((4, 1, 64), np.float16)] * 3
    with pytest.raises(UsageError) as error:
        flash_attention_varlen(*own, of_q, of_k)
    assert str(error.value) == said
