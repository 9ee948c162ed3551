"""Dropout by counter-based random numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fly_common.errors import UsageError

from fly.kernels import dropout


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("shape", [(0,), (1,), (1023,), (1024,), (1025,), (30, 40), (3, 4, 5)])
def test_elements(target, shape, kind):
    x = torch.rand(shape, generator=torch.Generator().manual_seed(1)).add(0.5).to(kind)
    for p in (0.0, 0.25, 1.0):
        y = dropout(x, p, 7)
        kept = y != 0
        assert (y.dtype, y.shape) == (kind, x.shape)
        exact = (x.double() / (1 - p if p < 1 else 1))[kept]
        rounding = 2 * torch.finfo(kind).eps if p else 0.0
        torch.testing.assert_close(y[kept].double(), exact, rtol=rounding, atol=0)
        if p in (0.0, 1.0):
            assert kept.all() == (p == 0.0) or not x.numel()


def test_share_and_seeds(target):
    x = np.ones(40_000, np.float32)
    first = dropout(x, 0.3, 1)
    assert abs((first == 0).mean() - 0.3) < 0.01
    np.testing.assert_array_equal(dropout(x, 0.3, 1), first)
    for others in ((2, 0), (1, 1), (1 << 40, 0)):
        same = (dropout(x, 0.3, *others) == 0) == (first == 0)
        assert abs(same.mean() - (0.3**2 + 0.7**2)) < 0.02, "independent"
    np.testing.assert_array_equal(dropout(x[:100], 0.3, 1), first[:100])


def test_gradient(target):
    x = torch.rand(50, generator=torch.Generator().manual_seed(2)).add(1).requires_grad_()
    y = dropout(x, 0.4, 3, 5)
    (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y))
    torch.testing.assert_close(gradient, torch.where(y == 0, 0.0, 1 / 0.6))
    torch.library.opcheck(dropout.torch, (x, 0.4, 3))
    compiled = torch.compile(lambda x, seed: dropout(x, 0.4, seed, 5), fullgraph=True)
    torch.testing.assert_close(compiled(x, 3), y)


def test_gradcheck(target):
    x = torch.rand(50, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: dropout(x, 0.4, 3), (x,))


def test_strict(strict, target):
    test_elements(target, (30,), torch.float16)


def test_refused(target):
    with pytest.raises(UsageError, match=r"p is 1\.5, not from 0 to 1"):
        dropout(np.zeros(3, np.float32), 1.5, 0)
    with pytest.raises(UsageError, match="x is of int32, and must be of float16"):
        dropout(np.zeros(3, np.int32), 0.5, 0)
