"""Products with preshuffled matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fly_common.errors import UsageError

from fly.kernels import matmul_preshuffled, preshuffle
from fly_kernels.judging import judge, tensor

CASES = [
    # a, N, type
    ((64, 64), 64, torch.float16),
    ((70, 50), 62, torch.float16),
    ((33, 129), 35, torch.bfloat16),
    ((1, 96), 130, torch.bfloat16),
    ((130, 160), 1, torch.float16),  # an odd number of steps
    ((2, 3, 24), 40, torch.float32),
    ((100,), 16, torch.float32),
    ((5, 30), 16, torch.float64),
    ((0, 16), 8, torch.float16),
    ((5, 0), 7, torch.float16),
    ((5, 8), 0, torch.float32),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_product(target, case):
    shape, n, dtype = case
    a, b = tensor(1, shape, dtype), tensor(2, (shape[-1], n), dtype)
    bias = tensor(3, (n,), dtype)
    made = matmul_preshuffled(a, preshuffle(b), n, bias, activation="relu")
    judge(made, lambda a, b, bias: (a @ b + bias).relu(), a, b, bias)


def test_strict(strict, target):
    a, b = tensor(1, (9, 40), torch.float16), tensor(2, (40, 12), torch.float16)
    judge(matmul_preshuffled(a, preshuffle(b), 12), torch.matmul, a, b)


def test_integers_of_eight_bits(target):
    a, b = [torch.randint(-128, 128, shape).to(torch.int8) for shape in ((20, 200), (200, 36))]
    assert torch.equal(
        matmul_preshuffled(a, preshuffle(b.T.contiguous().T), 36).long(), a.long() @ b.long()
    )


def test_shuffled_matrices_that_are_views(target):
    """Of any strides, and anywhere in memory: the kernel reads adjacent elements."""
    a, b = tensor(1, (9, 70), torch.float16), tensor(2, (70, 40), torch.float16)
    shuffled = preshuffle(b)
    apart = shuffled.new_full((*shuffled.shape[:-1], 2 * shuffled.shape[-1]), 7)
    apart[..., ::2] = shuffled
    turned = shuffled.transpose(0, 1).contiguous().transpose(0, 1)
    odd = shuffled.new_full((shuffled.numel() + 3,), 7)[3:].view(shuffled.shape).copy_(shuffled)
    for view in (apart[..., ::2], turned, odd):
        judge(matmul_preshuffled(a, view, 40), lambda a, _: a @ b.to(a.dtype), a, view)
    flipped = np.flip(np.flip(shuffled.numpy(), 1).copy(), 1)
    made = torch.from_numpy(matmul_preshuffled(a.numpy(), flipped, 40))
    judge(made, torch.matmul, a, b)


def test_order_of_elements(target):
    """Blocks of 16 columns by 16 bytes of K, on all targets: what is shuffled for one suits all."""
    b = np.arange(64 * 32, dtype=np.float32).reshape(64, 32).astype(np.float16)
    shuffled = preshuffle(b)
    assert shuffled.shape == (2, 8, 16, 8)
    for column, k in ((0, 0), (17, 5), (31, 63), (3, 40)):
        assert shuffled[column // 16, k // 8, column % 16, k % 8] == b[k, column]


def test_torch_checks_the_operators(target):
    a, b = tensor(1, (3, 8), torch.float16), tensor(2, (8, 5), torch.float16)
    torch.library.opcheck(preshuffle.torch, (b,))
    torch.library.opcheck(matmul_preshuffled.torch, (a, preshuffle(b), 5))


@pytest.mark.heavy
def test_compiled_by_torch(target):
    compiled = torch.compile(lambda a, b: matmul_preshuffled(a, preshuffle(b), 5), fullgraph=True)
    a, b = tensor(1, (3, 8), torch.float32), tensor(2, (8, 5), torch.float32)
    judge(compiled(a, b), torch.matmul, a, b)


A = np.zeros((4, 128), np.float16)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: preshuffle(A[0]), "b is K × N, and has 1 dimensions"),
        (
            lambda: matmul_preshuffled(A, preshuffle(A.T[:32]), 4),
            "b has shape (2, 8, 16, 8), not (2, 16, 16, 8), as preshuffle makes it of 128 × 4",
        ),
        (
            lambda: matmul_preshuffled(A.astype("f4"), preshuffle(A.T), 4),
            "a is of float32 and b of",
        ),
        (
            lambda: matmul_preshuffled(A, preshuffle(A.T), 4, A[0, :5]),
            "bias has shape (5,), and b has 4 columns",
        ),
    ],
)
def test_refused(monkeypatch, call, said):
    monkeypatch.setenv("FLY_TARGET", "gfx942")
    with pytest.raises(UsageError) as error:
        call()
    assert str(error.value).startswith(said)
