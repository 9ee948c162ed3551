"""Products of groups of rows, and mixtures of experts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fly_common.errors import UsageError

from fly.kernels import (
    group_products,
    grouped_matmul,
    moe,
    moe_combine,
    moe_gather,
    moe_route,
    moe_sort,
)
from fly_kernels.judging import gradients, judge, tensor

GROUPS = [
    # ends of groups, K, N, type, whether each matrix of b is transposed in memory
    ((3, 3, 60, 70), 40, 24, torch.float16, False),
    ((32, 64), 64, 32, torch.float16, True),
    ((0, 0, 5), 17, 9, torch.bfloat16, False),
    ((200,), 8, 8, torch.bfloat16, True),
    ((1, 2, 3, 4, 5), 33, 50, torch.float32, False),
    ((10, 40), 30, 1, torch.float32, True),
    ((7, 9), 5, 6, torch.float64, False),
    ((40, 41), 1, 130, torch.float16, False),
    ((4, 4), 0, 3, torch.float32, False),
    ((0, 0), 4, 8, torch.float16, False),
    ((), 4, 8, torch.float16, False),
]


def grouped(a, b, ends):
    """The reference: group after group."""
    starts = [0, *ends[:-1]] if ends else []
    parts = [a[i:j] @ b[g] for g, (i, j) in enumerate(zip(starts, ends, strict=True))]
    return torch.cat(parts) if parts else a @ b.sum(0)


def operands(ends, k, n, dtype, transposed):
    rows = ends[-1] if ends else 0
    a = tensor(1, (rows, k), dtype, 1.0)
    shape = (len(ends), n, k) if transposed else (len(ends), k, n)
    b = tensor(2, shape, dtype, 1.0)
    return a, b.mT if transposed else b, torch.tensor(ends, dtype=torch.int32)


@pytest.mark.parametrize("case", GROUPS, ids=str)
def test_grouped(target, case):
    a, b, offsets = operands(*case)
    judge(grouped_matmul(a, b, offsets), lambda a, b: grouped(a, b, case[0]), a, b)
    judge(
        gradients(lambda a, b: grouped_matmul(a, b, offsets), a, b),
        lambda a, b: gradients(lambda a, b: grouped(a, b, case[0]), a, b),
        a,
        b,
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_rows_that_are_not_adjacent(target, dtype):
    """Groups start at any row, also where a row's elements are not aligned."""
    _, b, offsets = operands((3, 21, 40), 16, 8, dtype, False)
    a = tensor(1, (16, 40), dtype, 1.0).t()
    judge(grouped_matmul(a, b, offsets), lambda a, b: grouped(a, b, (3, 21, 40)), a, b)
    judge(
        group_products(a, a, offsets),
        lambda a: torch.stack([a[i:j].t() @ a[i:j] for i, j in ((0, 3), (3, 21), (21, 40))]),
        a,
    )


def test_strict(strict, target):
    a, b, offsets = operands((5, 9), 20, 8, torch.float16, False)
    judge(grouped_matmul(a, b, offsets), lambda a, b: grouped(a, b, (5, 9)), a, b)
    experts = torch.tensor([1, 0, 1], dtype=torch.int32)
    assert moe_sort(experts, 2)[0].tolist() == [1, 0, 2]
    moe_route(tensor(3, (1, 5), torch.float32), 2)


def test_each_group_has_its_own_matrix(target):
    a = torch.ones(64, 16, dtype=torch.float16)
    b = torch.arange(1, 5, dtype=torch.float16)[:, None, None].expand(4, 16, 8)
    ends = (1, 33, 34, 64)
    made = grouped_matmul(a, b, torch.tensor(ends, dtype=torch.int32))
    sizes = torch.tensor(ends).diff(prepend=torch.tensor([0]))
    assert torch.equal(made[:, 0], 16 * torch.arange(1.0, 5.0).repeat_interleave(sizes).half())


@pytest.mark.parametrize(("experts", "k"), [(8, 8), (12, 4), (300, 4), (70, 40)])
def test_routes_of_equal_and_infinite_logits(target, experts, k):
    inf, nan = float("inf"), float("nan")
    logits = torch.full((4, experts), -inf)
    logits[0, 2:6] = torch.tensor([0.0, -0.0, 1.0, 1.0])
    logits[1, 3] = -3.0
    logits[2, 5] = nan
    # Negative ones, of which the second is a signalling one.
    logits[3, 1:5] = torch.tensor([inf, -nan, 0.0, 2.0])
    logits[3, 5] = torch.tensor(0xFF800001 - 2**32, dtype=torch.int32).view(torch.float32)
    weights, chosen = moe_route(logits, k)
    rest = [i for i in range(experts) if i not in (2, 3, 4, 5)]
    assert chosen[0].tolist() == [4, 5, 2, 3, *rest][:k]
    assert chosen[1].tolist() == [3, *(i for i in range(experts) if i != 3)][:k]
    assert chosen[2].tolist() == [5, *(i for i in range(experts) if i != 5)][:k]
    assert weights[1].tolist() == [1.0] + [0.0] * (k - 1)
    assert weights[2].isnan().all()
    assert {*chosen[3].tolist()[:2]} == {2, 5}
    assert chosen[3].tolist()[2:5] == [1, 4, 3][: k - 2]


ROUTED = [
    # tokens, experts, k
    (5, 8, 2),
    (3, 100, 4),
    (1, 1, 1),
    (0, 4, 2),
    (70, 16, 1),
    (2, 64, 8),
    (9, 65, 3),
    (33, 7, 7),
    (4, 128, 6),
    (257, 3, 2),
    (70, 16, 3),
    (2, 256, 8),
    (3, 16, 9),
    (2, 300, 2),
    (3, 100, 40),
    (2, 1000, 1000),
    (2, 1023, 33),
]


@pytest.mark.parametrize(("tokens", "experts", "k"), ROUTED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_route(target, tokens, experts, k, dtype):
    order = tensor(1, (tokens, experts), torch.float32).argsort(1)  # no two logits are equal
    logits = order.to(dtype) / 16
    weights, chosen = moe_route(logits, k)
    best, places = logits.float().sort(dim=1, descending=True, stable=True)
    assert chosen.dtype == torch.int32
    assert torch.equal(chosen.long(), places[:, :k])
    judge(weights, lambda x: x[:, :k].softmax(1), best)

    def reference(x):
        return x.gather(1, places[:, :k]).to(torch.promote_types(dtype, torch.float32)).softmax(1)

    if dtype == torch.float32:
        judge(
            gradients(lambda x: moe_route(x, k)[0], logits),
            lambda x: gradients(reference, x),
            logits,
        )


SORTED = [(0, 3), (1, 1), (255, 4), (256, 4), (257, 64), (700, 16), (600, 1000), (3, 2), (64, 1)]
SORTED += [(2049, 5)]


@pytest.mark.parametrize(("n", "count"), SORTED)
def test_sort(target, n, count):
    experts = torch.randint(0, count, (n,), dtype=torch.int32)
    order, places, offsets = moe_sort(experts, count)
    wanted = torch.argsort(experts, stable=True)
    assert torch.equal(order.long(), wanted)
    assert torch.equal(places[wanted].long(), torch.arange(n))
    assert torch.equal(offsets.long(), torch.bincount(experts, minlength=count).cumsum(0))


def reference_moe(x, gate, w1, w2, k):
    best, experts = (x @ gate).topk(k)
    weights = best.softmax(1)
    # Gradients are 0 if there is no token.
    made = 0 * x + 0 * sum(one.sum() for one in (gate, w1, w2))
    for i in range(k):
        for token in range(len(x)):
            e = experts[token, i]
            hidden = torch.nn.functional.silu(x[token] @ w1[e])
            made[token] = made[token] + weights[token, i] * (hidden @ w2[e])
    return made


MIXTURES = [
    # tokens, elements of a token, experts, hidden elements, k
    (20, 16, 4, 24, 2),
    (3, 10, 6, 7, 1),
    (1, 8, 2, 8, 1),
    (0, 8, 4, 8, 2),
    (33, 32, 8, 16, 3),
    (40, 16, 3, 40, 1),
    (5, 64, 16, 8, 4),
    (2, 1, 2, 1, 2),
    (17, 24, 5, 33, 5),
    (12, 12, 64, 12, 2),
]


@pytest.mark.parametrize(("tokens", "d", "e", "h", "k"), MIXTURES)
def test_moe(target, tokens, d, e, h, k):
    shapes = ((tokens, d), (d, e), (e, d, h), (e, h, d))
    x, gate, w1, w2 = [tensor(i, shape, torch.float32, 0.5) for i, shape in enumerate(shapes)]
    judge(moe(x, gate, w1, w2, k), lambda *x: reference_moe(*x, k), x, gate, w1, w2)
    if (tokens, d, e, h, k) not in MIXTURES[::3]:  # those of the parts are compared above
        return
    judge(
        gradients(lambda *x: moe(*x, k), x, gate, w1, w2),
        lambda *x: gradients(lambda *x: reference_moe(*x, k), *x),
        x,
        gate,
        w1,
        w2,
    )


def test_moe_of_numpy(target):
    random = np.random.default_rng(5)
    shapes = ((4, 8), (8, 3), (3, 8, 6), (3, 6, 8))
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    made = moe(*arrays, 2)
    assert type(made) is np.ndarray
    exact = reference_moe(*[torch.tensor(x, dtype=torch.float64) for x in arrays], 2)
    np.testing.assert_allclose(made, exact, atol=1e-4)


@pytest.mark.heavy
def test_torch_checks_the_operators(target):
    a, b, offsets = operands((3, 4), 5, 6, torch.float64, False)
    a, b = a.requires_grad_(), b.requires_grad_()
    torch.library.opcheck(grouped_matmul.torch, (a, b, offsets))
    assert torch.autograd.gradcheck(
        lambda a, b: grouped_matmul(a, b, offsets, activation="gelu"), (a, b), fast_mode=True
    )
    torch.library.opcheck(group_products.torch, (a.detach(), a.detach(), offsets))
    logits = tensor(3, (3, 5), torch.float32).requires_grad_()
    torch.library.opcheck(moe_route.torch, (logits, 2))
    weights, experts = moe_route(logits.detach(), 2)
    torch.library.opcheck(moe_sort.torch, (experts, 5))
    order, places, _ = moe_sort(experts, 5)
    x = tensor(4, (3, 8), torch.float32).requires_grad_()
    torch.library.opcheck(moe_gather.torch, (x, order, places, 2))
    spread = moe_gather(x.detach(), order, places, 2).requires_grad_()
    torch.library.opcheck(moe_combine.torch, (spread, order, places, weights.requires_grad_()))


@pytest.mark.heavy
def test_compiled_by_torch(target):
    shapes = ((6, 8), (8, 3), (3, 8, 6), (3, 6, 8))
    arrays = [tensor(i, shape, torch.float32, 0.5) for i, shape in enumerate(shapes)]
    compiled = torch.compile(lambda *x: moe(*x, 2), fullgraph=True)
    judge(compiled(*arrays), lambda *x: reference_moe(*x, 2), *arrays)


X, CHOICES = np.zeros((4, 5), np.float32), np.zeros(4, np.int32)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: grouped_matmul(np.zeros((3, 4)), np.zeros((2, 4, 5)), np.zeros(3, np.int32)),
            "a, b and offsets are M × K, G × K × N and G long, not (3, 4), (2, 4, 5), (3,)",
        ),
        (
            lambda: group_products(np.zeros((3, 4)), np.zeros((2, 4)), np.zeros(3, np.int32)),
            "a and b are M × K and M × N of one type, not float64 (3, 4), float64 (2, 4)",
        ),
        (
            lambda: grouped_matmul(np.zeros((3, 4)), np.zeros((2, 4, 5)), np.zeros(2, np.int64)),
            "offsets is of int64, and must be of int32",
        ),
        (
            lambda: group_products(np.zeros((3, 4)), np.zeros((3, 4)), np.zeros(2, np.int64)),
            "offsets is of int64, and must be of int32",
        ),
        (lambda: moe_route(np.zeros((3, 4), "f4"), 5), "k is 5 and logits have shape (3, 4)"),
        (lambda: moe_sort(np.zeros(3, np.int32), 0), "there are 0 experts"),
        (lambda: moe_sort(np.zeros(3, np.int64), 2), "experts is of int64, and must be of int32"),
        (lambda: moe_route(np.zeros((3, 4)), 2), "logits is of float64, and must be of float16"),
        (lambda: moe_gather(X, CHOICES, CHOICES, 0), "k is 0, less than 1"),
        (
            lambda: moe_gather(X, CHOICES, CHOICES, 2),
            "the shapes of x, order and places do not fit 4 tokens and k = 2: (4, 5), (4,), (4,)",
        ),
        (
            lambda: moe_combine(X, CHOICES, CHOICES, np.zeros((3, 2), np.float32)),
            "the shapes of x, order and places do not fit 3 tokens and k = 2: (4, 5), (4,), (4,)",
        ),
        (
            lambda: moe_combine(X, CHOICES, CHOICES, np.zeros((4, 1))),
            "weights is of float64, and must be of float32",
        ),
        (lambda: moe(np.zeros(3), *[np.zeros((1, 1))] * 3, 1), "x is tokens × D, and has 1 dim"),
    ],
)
def test_refused(target, call, said):
    with pytest.raises(UsageError) as error:
        call()
    assert str(error.value).startswith(said)
