"""Products and attention on Hopper, by TMA and wgmma, on the device cpu, judged by torch in f64."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise

import pytest
import torch
import torch.nn.functional as F

from fly.kernels import (
    flash_attention,
    flash_attention_backward,
    flash_attention_varlen,
    flash_attention_varlen_backward,
    grouped_matmul,
    matmul,
    moe,
)
from fly.kernels.gemm import matrix_product
from fly.kernels.gemm.warpgroups import warpgroup_choices, warpgroup_schedule

BF16, F16, F32, FP8 = torch.bfloat16, torch.float16, torch.float32, torch.float8_e4m3fn


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_DEVICE", "cpu")
    torch.manual_seed(0)


def operand(shape, dtype, adjacent):
    """A batch of matrices, whose rows are adjacent, or else its columns."""
    rows, columns = shape[-2:]
    if adjacent:
        return torch.randn(shape).to(dtype)
    return torch.randn(*shape[:-2], columns, rows).to(dtype).mT


def judged(found, exact, size, dtype):
    """`size`: the sum of the magnitudes that were added."""
    rounding = {BF16: 2**-8, F16: 2**-11, F32: 2**-23}[found.dtype]
    inputs = 2**-10 if dtype == F32 else 2**-20
    error = (found.double() - exact).abs()
    assert (error <= rounding * exact.abs() + inputs * size + 1e-6).all()


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("m", "n", "k", "dtype", "rows", "columns", "options"),
    [
        (200, 264, 136, F16, True, True, {}),
        (64, 72, 264, BF16, False, False, {}),
        (201, 267, 139, BF16, True, False, {}),
        (64, 40, 2048, BF16, True, False, {"split_k": 4}),
        (33, 41, 97, F32, False, True, {"tf32": True}),
        (130, 80, 208, FP8, True, False, {"out_dtype": F32}),
        (65, 33, 127, FP8, False, True, {"out_dtype": BF16}),
        (1, 1, 1, BF16, True, True, {}),
    ],
)
def test_products(m, n, k, dtype, rows, columns, options):
    a, b = operand((m, k), dtype, rows), operand((k, n), dtype, columns)
    found = matmul(a, b, **options)
    exact = a.double() @ b.double()
    judged(found, exact, a.double().abs() @ b.double().abs(), dtype)


@pytest.mark.heavy
@pytest.mark.parametrize("tile", warpgroup_choices.TILES)
def test_tiles(tile, monkeypatch):
    """Small products would all have the smallest tile."""
    monkeypatch.setattr(warpgroup_choices, "TILES", {tile: 1.0})
    warpgroup_choices._plan.cache_clear()
    a, b = operand((150, 72), F16, True), operand((72, 264), F16, False)
    found = matmul(a, b, split_k=2)
    warpgroup_choices._plan.cache_clear()
    judged(found, a.double() @ b.double(), a.double().abs() @ b.double().abs(), F16)


@pytest.mark.heavy
@pytest.mark.heavy
@pytest.mark.parametrize("tile", warpgroup_choices.TILES)
def test_a_block_of_several_tiles(tile, monkeypatch):
    """Few steps along K between two tiles: the second one's results must not replace what TMA still
    reads of the first."""
    monkeypatch.setattr(warpgroup_choices, "TILES", {tile: 1.0})
    warpgroup_choices._plan.cache_clear()
    plan = warpgroup_choices.warpgroup_plan
    monkeypatch.setattr(
        matrix_product, "warpgroup_plan", lambda *given: plan(*given)._replace(blocks=1)
    )
    a, b = operand((200, 72), F16, True), operand((72, 520), F16, False)
    found = matmul(a, b, split_k=1)
    warpgroup_choices._plan.cache_clear()
    judged(found, a.double() @ b.double(), a.double().abs() @ b.double().abs(), F16)


def test_a_product_of_batches_with_an_epilogue():
    a, b = operand((2, 70, 40), BF16, True), operand((2, 40, 24), BF16, True)
    c, bias = torch.randn(2, 70, 24).bfloat16(), torch.randn(24).bfloat16()
    found = matmul(a, b, bias, c, activation="relu", alpha=0.5, beta=0.25, out_dtype=F32)
    exact = 0.5 * (a.double() @ b.double()) + 0.25 * c.double() + bias.double()
    judged(found, exact.relu(), a.double().abs() @ b.double().abs() + 4, BF16)


@pytest.mark.heavy
def test_zeros_of_the_padding_do_not_meet_infinity():
    """What lies beyond a row or a column must not become part of a sum."""
    a, b = operand((30, 17), BF16, True), operand((17, 9), BF16, True)
    a[3, 16], b[16, 4] = math.inf, math.nan
    found, exact = matmul(a, b), a.double() @ b.double()
    assert torch.equal(found.isnan(), exact.isnan())
    assert torch.equal(found.isinf(), exact.isinf())


@pytest.mark.heavy
def test_f32_is_not_rounded_unless_it_may_be():
    a, b = operand((16, 32), F32, True), operand((32, 16), F32, False)
    exact = a.double() @ b.double()
    assert (matmul(a, b) - exact).abs().max() < 1e-5
    assert 1e-5 < (matmul(a, b, tf32=True) - exact).abs().max() < 0.03


def to_tf32(x):
    """The nearest values with 10 bits of fraction, by f64: of two, the even one."""
    fraction, exponent = torch.frexp(x.double())
    return torch.ldexp((fraction * 2**11).round(), exponent - 11)


@pytest.mark.heavy
@pytest.mark.parametrize(("k", "adjacent"), [(64, True), (67, False)])
def test_operands_are_rounded_to_tf32_to_nearest(k, adjacent):
    """Truncated, a sum of positive products is too small by a share of about 6e-4. An odd k has
    rows that are copied first."""
    a, b = (1 + torch.rand(one) for one in ((40, k), (k, 24)))
    if not adjacent:
        a, b = a.T.contiguous().T, b.T.contiguous().T
    found = matmul(a, b, tf32=True).double()
    assert ((found / (to_tf32(a) @ to_tf32(b)) - 1).abs() < 2e-6).all()
    assert ((found / (a.double() @ b.double()) - 1).abs() < 2e-4).all()


@pytest.mark.heavy
def test_infinity_and_nan_stay_in_tf32():
    a, b = operand((30, 20), F32, True), torch.eye(20)
    a[3, 16], a[5, 2] = math.inf, -math.inf
    # A NaN all of whose set bits are among those that TF32 lacks.
    a[7, 4] = torch.tensor(0x7F800001, dtype=torch.int32).view(F32)
    b[b == 0] = 1e-3
    found, exact = matmul(a, b, tf32=True), a.double() @ b.double()
    assert torch.equal(found.isnan(), exact.isnan())
    assert torch.equal(found.isinf(), exact.isinf())


# Heads of queries and of keys, queries, keys, d, causal, type.
ATTENTION = [
    (1, 1, 128, 128, 64, False, BF16),
    (2, 1, 200, 300, 128, True, BF16),
    (2, 2, 300, 200, 64, True, F16),
    (1, 1, 1, 1, 64, True, F16),
    (3, 1, 70, 129, 128, False, F16),
]
LIMITS = {BF16: 0.02, F16: 0.003}  # of the error, as a share of the greatest result


def exact_attention(q, k, v, causal):
    """By torch in f64; differentiable."""
    k, v = (one.double().repeat_interleave(q.shape[1] // k.shape[1], 1) for one in (k, v))
    queries, keys = q.shape[2], k.shape[2]
    scores = q.double() @ k.mT / math.sqrt(q.shape[3])
    if causal:
        sees = torch.arange(keys)[None] <= torch.arange(queries)[:, None] + keys - queries
        scores = scores.masked_fill(~sees, -math.inf)
    return scores.softmax(-1).nan_to_num() @ v, scores.logsumexp(-1)


def same(found, exact, dtype):
    assert found.shape == exact.shape
    greatest = exact.abs().max() if exact.numel() else 0.0
    assert ((found.double() - exact).abs() <= LIMITS[dtype] * greatest + 1e-9).all()


@pytest.mark.heavy
@pytest.mark.parametrize(("heads", "own", "queries", "keys", "d", "causal", "dtype"), ATTENTION)
def test_attention(heads, own, queries, keys, d, causal, dtype):
    q = torch.randn(2, heads, queries, d).to(dtype)
    k, v = torch.randn(2, 2, own, keys, d).to(dtype)
    out, lse = flash_attention(q, k, v, causal=causal)
    exact, exact_lse = exact_attention(q, k, v, causal)
    assert torch.equal(lse.isneginf(), exact_lse.isneginf())
    assert (lse - exact_lse).nan_to_num().abs().max() < 1e-4
    assert (out - exact).abs().max() < LIMITS[dtype]


def weighted(out, lse, d_out, d_lse):
    """A number with these gradients of both results."""
    return (out * d_out).sum() + (torch.where(lse.isfinite(), lse, 0.0) * d_lse).sum()


def gradients_of(function, own, d_out, d_lse):
    """Those of q, k and v. A query that sees no key has none, where torch's is NaN."""
    own = [one.detach().clone().requires_grad_() for one in own]
    total = weighted(*function(*own), d_out.to(own[0].dtype), d_lse)
    return [one.nan_to_num() for one in torch.autograd.grad(total, own)]


@pytest.mark.heavy
@pytest.mark.parametrize(("heads", "own", "queries", "keys", "d", "causal", "dtype"), ATTENTION)
def test_gradients_of_attention(heads, own, queries, keys, d, causal, dtype):
    q, d_out = torch.randn(2, 2, heads, queries, d).to(dtype)
    k, v = torch.randn(2, 2, own, keys, d).to(dtype)
    d_lse = torch.randn(2, heads, queries)
    found = gradients_of(lambda *own: flash_attention(*own, causal), (q, k, v), d_out, d_lse)
    wide = [one.double() for one in (q, k, v)]
    exact = gradients_of(lambda *own: exact_attention(*own, causal), wide, d_out, d_lse.double())
    for one, right in zip(found, exact, strict=True):
        same(one, right, dtype)


@pytest.mark.heavy
def test_gradients_that_repeat_and_torchs_checks():
    """The gradient of a sum has strides of 0. Torch checks the operators' schemas, and that their
    shapes and strides are those that it was told."""
    q, k, v = torch.randn(3, 1, 2, 40, 64).to(F16)
    found = torch.autograd.grad(flash_attention(q.requires_grad_(), k, v)[0].sum(), q)[0]
    wide = q.detach().double().requires_grad_()
    exact = torch.autograd.grad(exact_attention(wide, k, v, False)[0].sum(), wide)[0]
    same(found, exact, F16)
    out, lse = flash_attention(q.detach(), k, v)
    given = (out, lse, q.detach(), k, v, out, lse)
    torch.library.opcheck(flash_attention_backward.torch, given)
    torch.library.opcheck(flash_attention.torch, (q, k, v))


@pytest.mark.heavy
@pytest.mark.parametrize("scale", [0.0, -0.3])
def test_scales_of_attention(scale):
    """A score that is hidden times 0 is not NaN."""
    q, d_out = torch.randn(2, 1, 3, 70, 128).to(F16)
    k, v = torch.randn(2, 1, 1, 129, 128).to(F16)
    own = [one.requires_grad_() for one in (q, k, v)]
    found = torch.autograd.grad(flash_attention(*own, scale=scale)[0], own, d_out)
    wide = [one.detach().double().requires_grad_() for one in own]
    scores = wide[0] @ wide[1].mT * scale
    right = torch.autograd.grad(scores.softmax(-1) @ wide[2], wide, d_out.double())
    for one, of in zip(found, right, strict=True):
        same(one, of, F16)


def packed(lengths):
    return torch.tensor([0, *accumulate(lengths)], dtype=torch.int32)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("of_q", "of_k", "heads", "own", "d", "causal", "dtype"),
    [
        ([70, 0, 5, 130], [3, 17, 70, 257], 2, 1, 64, True, F16),
        ([1, 150, 20], [9, 140, 0], 2, 2, 128, False, BF16),
        ([65, 100], [70, 10], 1, 1, 128, True, F16),
    ],
)
def test_packed_attention(of_q, of_k, heads, own, d, causal, dtype):
    """Sequences of which every second one is NaN: nothing of these may reach the others."""
    q, d_out = torch.randn(2, sum(of_q), heads, d).to(dtype)
    k, v = torch.randn(2, sum(of_k), own, d).to(dtype)
    d_lse = torch.randn(heads, sum(of_q))
    starts = packed(of_q), packed(of_k)
    spans = [[slice(*pair) for pair in pairwise(one.tolist())] for one in starts]
    for hidden in (None, 0, 1):
        given = [one.clone() for one in (q, k, v, d_out)]
        if hidden is not None:
            for number, pair in enumerate(zip(*spans, strict=True)):
                if number % 2 == hidden:
                    for tensor, which in zip(given, (0, 1, 1, 0), strict=True):
                        tensor[pair[which]] = math.nan
        made = [one.detach().requires_grad_() for one in given[:3]]
        out, lse = flash_attention_varlen(*made, *starts, causal)
        found = torch.autograd.grad((out, lse), made, (given[3], d_lse))
        for number, (at_q, at_k) in enumerate(zip(*spans, strict=True)):
            if number % 2 == hidden:
                continue
            parts = (q[at_q], k[at_k], v[at_k])
            wide = [one.double().transpose(0, 1)[None].requires_grad_() for one in parts]
            exact, exact_lse = exact_attention(*wide, causal)
            assert torch.equal(lse[:, at_q].isneginf(), exact_lse[0].isneginf())
            assert ((lse[:, at_q] - exact_lse[0]).nan_to_num().abs() < 1e-4).all()
            assert ((out[at_q].transpose(0, 1) - exact[0]).abs() < LIMITS[dtype]).all()
            d = d_out[at_q].transpose(0, 1)[None], d_lse[None, :, at_q].double()
            right = torch.autograd.grad(weighted(exact, exact_lse, *d), wide)
            for one, at, of in zip(found, (at_q, at_k, at_k), right, strict=True):
                same(one[at].transpose(0, 1), of[0].nan_to_num(), dtype)


@pytest.mark.heavy
def test_torch_checks_the_operators_of_packed_attention():
    q, k, v = torch.randn(3, 12, 1, 64).to(F16)
    starts = packed([5, 7])
    out, lse = flash_attention_varlen(q, k, v, starts, starts)
    given = (out, lse, q, k, v, starts, starts, out, lse)
    torch.library.opcheck(flash_attention_varlen_backward.torch, given)
    torch.library.opcheck(flash_attention_varlen.torch, (q.requires_grad_(), k, v, starts, starts))


@pytest.mark.heavy
@pytest.mark.parametrize(("queries", "keys"), [(3, 0), (0, 4)])
def test_attention_without_products(queries, keys):
    q, k = torch.randn(1, 2, queries, 64).to(F16), torch.randn(1, 1, keys, 64).to(F16)
    out, lse = flash_attention(q, k, k)
    assert (out == 0).all()
    assert lse.isneginf().all()
    assert (out.shape, lse.shape) == (q.shape, q.shape[:3])
    found = flash_attention_backward(out, lse, q, k, k, out, lse)
    assert [one.shape for one in found] == [q.shape, k.shape, k.shape]
    assert all((one == 0).all() for one in found)
    starts = packed([queries]), packed([keys])
    out, lse = flash_attention_varlen(q[0].transpose(0, 1), *[k[0].transpose(0, 1)] * 2, *starts)
    assert (out == 0).all()
    assert lse.isneginf().all()


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("ends", "k", "n", "columns", "options"),
    [
        ((3, 3, 60, 70), 40, 24, True, {}),
        ((0, 130, 130, 300), 72, 264, False, {"activation": "relu"}),
        ((5, 201), 33, 41, True, {}),  # rows that TMA can't store
        ((0, 0, 5), 16, 8, True, {"out_dtype": F32}),
    ],
)
@pytest.mark.parametrize("tile", [(128, 128), None])
def test_groups_of_rows(ends, k, n, columns, options, tile, monkeypatch):
    """Tiles at the end of a group leave the next group's rows, whoever is first. Those of 128 rows
    have warp groups without rows of their group."""
    if tile is not None:
        monkeypatch.setattr(warpgroup_choices, "TILES", {tile: 1.0})
    warpgroup_choices._plan.cache_clear()
    a, b = operand((ends[-1], k), BF16, True), operand((len(ends), k, n), BF16, columns)
    found = grouped_matmul(a, b, torch.tensor(ends, dtype=torch.int32), **options)
    warpgroup_choices._plan.cache_clear()
    starts = (0, *ends[:-1])
    parts = [
        (a[i:j].double(), b[g].double()) for g, (i, j) in enumerate(zip(starts, ends, strict=True))
    ]
    exact = torch.cat([x @ y for x, y in parts])
    size = torch.cat([x.abs() @ y.abs() for x, y in parts])
    judged(found, exact.relu() if "activation" in options else exact, size, BF16)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("blocks", "ends", "k", "n", "tile", "options"),
    [
        (3, (0, 130, 130, 300), 264, 264, (128, 128), {"activation": "relu"}),
        (3, (5, 201), 330, 41, (64, 128), {}),  # rows that TMA can't store
        (5, (0, 0, 5, 90), 500, 136, (64, 256), {"out_dtype": F32}),
        (7, (100, 210), 700, 296, (128, 256), {}),
        (40, (3, 60), 520, 24, (128, 128), {}),  # fewer steps than blocks
    ],
)
def test_tiles_of_groups_that_are_divided(blocks, ends, k, n, tile, options, monkeypatch):
    """The last turn's tiles, in parts of steps along K."""
    monkeypatch.setattr(warpgroup_choices, "TILES", {tile: 1.0})
    monkeypatch.setattr(warpgroup_schedule, "PART_STEPS", 0)
    monkeypatch.setattr(
        warpgroup_choices,
        "_grouped",
        lambda made, _: made._replace(grouped=True, least=1, blocks=blocks),
    )
    warpgroup_choices._plan.cache_clear()
    a, b = operand((ends[-1], k), BF16, True), operand((len(ends), k, n), BF16, True)
    found = grouped_matmul(a, b, torch.tensor(ends, dtype=torch.int32), **options)
    warpgroup_choices._plan.cache_clear()
    parts = [
        (a[i:j].double(), b[g].double())
        for g, (i, j) in enumerate(zip((0, *ends[:-1]), ends, strict=True))
    ]
    exact = torch.cat([x @ y for x, y in parts])
    size = torch.cat([x.abs() @ y.abs() for x, y in parts])
    judged(found, exact.relu() if "activation" in options else exact, size, BF16)


@pytest.mark.heavy
def test_a_mixture_of_experts():
    x, gate = operand((40, 32), F16, True), operand((32, 6), F16, True)
    w1, w2 = operand((6, 32, 48), F16, True) / 6, operand((6, 48, 32), F16, True) / 6
    found = moe(x, gate, w1, w2, 2)
    logits = (x.double() @ gate.double()).half().double()
    weights, experts = logits.topk(2)
    exact = torch.zeros(x.shape, dtype=torch.float64)
    for shares, chosen, row, out in zip(
        weights.softmax(-1), experts, x.double(), exact, strict=True
    ):
        for share, one in zip(shares, chosen, strict=True):
            out += share * (F.silu(row @ w1[one].double()) @ w2[one].double())
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=2e-2)
