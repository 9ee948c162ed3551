"""Prefix sums by many blocks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fly_common.errors import UsageError

from fly.kernels import prefix_sum
from fly_kernels.judging import judge, tensor

SIZES = [0, 1, 7, 256, 2048, 2049, 5000, 10_001, 20_480, 600_000]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("exclusive", [False, True])
def test_integers(target, size, exclusive):
    random = np.random.default_rng(size)
    kinds = (np.int32, np.int64) if size < 10_000 else (np.int32,)
    for kind in kinds:
        x = random.integers(np.iinfo(kind).min, np.iinfo(kind).max, size, kind)
        exact = np.cumsum(x, dtype=kind)
        np.testing.assert_array_equal(prefix_sum(x, exclusive), exact - x * exclusive)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [3, 2048, 5003])
def test_floats(target, size, dtype):
    x = tensor(size, (size,), dtype, 1.0)
    # Of f64 the exact result has roundings, too.
    judge(prefix_sum(x), lambda x: x.cumsum(0), x, roundings=50)
    assert torch.equal(prefix_sum(x), prefix_sum(x))
    judge(prefix_sum(x[::3], exclusive=True), lambda x: x.cumsum(0) - x, x[::3], roundings=50)


def test_torch_checks_the_operator(target):
    x = tensor(1, (9,), torch.float64).requires_grad_()
    for exclusive in (False, True):
        torch.library.opcheck(prefix_sum.torch, (x, exclusive))
        assert torch.autograd.gradcheck(lambda x, e=exclusive: prefix_sum(x, e), (x,))
    compiled = torch.compile(lambda x: prefix_sum(2 * x), fullgraph=True)
    judge(compiled(x), lambda x: (2 * x).cumsum(0), x)


def test_strict(strict, target):
    x = np.arange(300, dtype=np.int32)
    np.testing.assert_array_equal(prefix_sum(x), np.cumsum(x))


def test_refused(target):
    with pytest.raises(UsageError, match="takes a vector, not an array of 2 dimensions"):
        prefix_sum(np.zeros((2, 2), np.int32))
    with pytest.raises(UsageError, match="x is of bool, and must be of int8"):
        prefix_sum(np.zeros(2, bool))
