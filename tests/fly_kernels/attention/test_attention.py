"""Attention and its gradients, of sequences of one length."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from fly_common.errors import UsageError

from fly.kernels import flash_attention, flash_attention_backward
from fly_kernels.attention_by_torch import both, inputs, reference
from fly_kernels.judging import gradients, judge, tensor

HALF, BRAIN = torch.float16, torch.bfloat16
# Batches, heads, kv_heads, queries, keys, d, type, causal.
SHAPES = [
    (1, 2, 1, 70, 90, 64, HALF, False),
    (1, 2, 1, 70, 75, 64, HALF, True),
    (1, 1, 1, 128, 128, 128, BRAIN, True),  # whole tiles
    (1, 1, 1, 150, 200, 64, HALF, True),  # waves that see other tiles than their neighbours
    (2, 1, 1, 33, 40, 128, BRAIN, False),
    (1, 1, 1, 90, 35, 64, HALF, True),  # queries that see no key
    (1, 4, 2, 1, 77, 64, HALF, True),
    (1, 1, 1, 5, 1, 128, BRAIN, False),
    (1, 1, 1, 130, 3, 64, HALF, False),
    (2, 2, 1, 3, 0, 64, HALF, False),
    (1, 1, 1, 0, 4, 64, HALF, True),
    (0, 1, 1, 4, 4, 64, HALF, False),
    (1, 3, 3, 17, 16, 64, HALF, True),
]


@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_forward_and_backward(target, case):
    *sizes, dtype, causal = case
    own = inputs(*sizes, dtype)
    judge(flash_attention(*own, causal), lambda *own: reference(*own, causal), *own)
    judge(
        gradients(lambda *own: both(*flash_attention(*own, causal)), *own),
        lambda *own: gradients(lambda *own: both(*reference(*own, causal)), *own),
        *own,
    )


@pytest.mark.heavy
def test_strict(strict, target):
    test_forward_and_backward(target, (1, 2, 1, 3, 5, 64, HALF, True))


@pytest.mark.parametrize("scale", [0.0, -0.3, 2.0])
def test_scale(target, scale):
    own = inputs(1, 1, 1, 20, 30, 64, HALF)
    judge(flash_attention(*own, scale=scale), lambda *own: reference(*own, False, scale), *own)
    judge(
        gradients(lambda *own: flash_attention(*own, scale=scale)[0], *own),
        lambda *own: gradients(lambda *own: reference(*own, False, scale)[0], *own),
        *own,
    )


@pytest.mark.parametrize("growth", [-40, 5, 40, 400])
def test_scores_that_grow(target, growth):
    """From tile to tile, by less than sums are scaled for, and by more."""
    q, k, v = inputs(1, 1, 1, 40, 200, 64, HALF)
    k *= torch.linspace(min(1, 1 - growth / 8), max(1, growth / 8), 200)[:, None]
    judge(flash_attention(q, k, v), lambda *own: reference(*own, False), q, k, v)


def test_numbers_that_are_not(target):
    q, k, v = inputs(1, 1, 1, 40, 70, 64, HALF)
    q[..., 3, 7] = float("nan")
    out, lse = flash_attention(q, k, v)
    assert out.isnan().all(-1).flatten().nonzero().flatten().tolist() == [3]
    assert lse.isnan().flatten().nonzero().flatten().tolist() == [3]


def test_rows_that_overlap(target):
    """Rows that are the same, or not apart in memory, and single ones with any stride."""
    q, k, v = inputs(1, 1, 1, 40, 70, 64, HALF)
    memory = tensor(5, (1 << 12,), HALF, 1.0)
    for keys in (k[:, :, :1].expand(k.shape), memory.as_strided(k.shape, (0, 0, 32, 1))):
        judge(flash_attention(q, keys, v), lambda *own: reference(*own, False), q, keys, v)
    for step in (0, 1 << 40):
        single = memory.as_strided((1, 1, 1, 64), (64, 64, step, 1))
        judge(
            flash_attention(q, single, single)[0],
            lambda q, x: reference(q, x, x, False)[0],
            q,
            single,
        )


def test_strides(target):
    """Transposes of batch × length × heads × d, columns and rows apart, and odd addresses."""
    own = [tensor(seed, (2, 20, 2, 64), HALF, 1.0).transpose(1, 2) for seed in range(3)]
    out, _ = flash_attention(*own)
    judge(out, lambda *own: reference(*own, False)[0], *own)
    assert out.transpose(1, 2).is_contiguous()
    wide = tensor(4, (1, 1, 20, 200), HALF, 1.0)
    for view in (wide[..., 1:65], wide[..., 8:72], wide[..., :128:2], wide[:, :, ::3, :64]):
        judge(flash_attention(view, view, view)[0], lambda x: reference(x, x, x, False)[0], view)


def test_strides_of_sums(target):
    """Of those that the operator of the gradients is called with."""
    q, k, v = inputs(2, 2, 1, 40, 30, 64, HALF)
    out, lse = flash_attention(q, k, v)
    d_out, d_lse = tensor(7, out.shape, HALF, 1.0), tensor(8, lse.shape, torch.float32, 1.0)
    wanted = flash_attention_backward(d_out, d_lse, q, k, v, out, lse)
    turned = [x.transpose(0, 2).contiguous().transpose(0, 2) for x in (d_lse, lse)]
    apart = [x.repeat_interleave(3, -1)[..., ::3] for x in (d_lse, lse)]
    for d_sums, sums in (turned, apart):
        found = flash_attention_backward(d_out, d_sums, q, k, v, out, sums)
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)


@pytest.mark.parametrize(("dtype", "of_torch"), [(np.float16, HALF), (ml_dtypes.bfloat16, BRAIN)])
def test_numpy(target, dtype, of_torch):
    own = inputs(1, 2, 1, 20, 30, 64, of_torch)
    out, lse = flash_attention(*(one.float().numpy().astype(dtype) for one in own))
    assert isinstance(out, np.ndarray)
    found = torch.tensor(np.asarray(out).astype(np.float32)).to(of_torch), torch.tensor(lse)
    judge(found, lambda *own: reference(*own, False), *own)


def test_the_same_bits_in_each_run(target):
    own = inputs(1, 2, 1, 70, 70, 64, HALF)
    first, second = (gradients(lambda *own: flash_attention(*own)[0], *own) for _ in range(2))
    assert all(torch.equal(*both) for both in zip(first, second, strict=True))


def test_torch_checks_the_operators(target):
    """Gradcheck needs f64, which matrix instructions do not compute: gradients are compared
    above."""
    own = inputs(1, 2, 1, 5, 7, 64, HALF)
    out, lse = flash_attention(*own, True)
    torch.library.opcheck(flash_attention_backward.torch, (out, lse, *own, out, lse, True))
    own[0].requires_grad_()
    torch.library.opcheck(flash_attention.torch, (*own, True))


def test_compiled_by_torch(target):
    compiled = torch.compile(lambda q, k, v: flash_attention(2 * q, k, v)[0] + 1, fullgraph=True)
    for queries in (3, 5):
        own = inputs(1, 2, 1, queries, 7, 64, HALF)
        judge(compiled(*own), lambda q, k, v: reference(2 * q, k, v, False)[0] + 1, *own)


def array(*shape: int, dtype: Any = np.float16) -> Any:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (
            (array(1, 2, 3, 64), array(1, 2, 64), array(1, 2, 64)),
            "q, k and v are of one type and 4 dimensions, not "
            "float16(1, 2, 3, 64), float16(1, 2, 64), float16(1, 2, 64)",
        ),
        (
            (array(1, 1, 1, 64), array(1, 1, 1, 64, dtype="f4"), array(1, 1, 1, 64)),
            "q, k and v are of one type and 4 dimensions, not "
            "float16(1, 1, 1, 64), float32(1, 1, 1, 64), float16(1, 1, 1, 64)",
        ),
        (
            (array(1, 1, 1, 64, dtype="f4"),) * 3,
            "q is of float32, and must be of float16 or bfloat16",
        ),
        (
            (array(1, 1, 1, 80),) * 3,
            "heads are of 64 or 128 elements, not 80: pad q, k and v with 0",
        ),
        (
            (array(1, 3, 1, 64), array(1, 2, 1, 64), array(1, 2, 1, 64)),
            "the shapes of q, k and v do not fit: (1, 3, 1, 64), (1, 2, 1, 64), (1, 2, 1, 64)",
        ),
        (
            (array(1, 2, 1, 64), array(1, 2, 1, 64), array(1, 2, 2, 64)),
            "the shapes of q, k and v do not fit: (1, 2, 1, 64), (1, 2, 1, 64), (1, 2, 2, 64)",
        ),
    ],
)
def test_refused(target, own, said):
    with pytest.raises(UsageError) as error:
        flash_attention(*own)
    assert str(error.value) == said


def test_other_targets(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "gfx908")
    own = (array(1, 1, 1, 64),) * 3
    with pytest.raises(UsageError) as error:
        flash_attention(*own)
    said = "attention needs MFMA or WMMA of 16x16x16, which gfx908 lacks"
    assert str(error.value).startswith(said)
