"""The greatest elements of rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fly_common.errors import UsageError

from fly.kernels import top_k
from fly_kernels.judging import judge, tensor

SHAPES = [
    ((3, 1000), 5, torch.float32),
    ((2, 4096), 1, torch.float16),
    ((4, 3, 77), 8, torch.bfloat16),
    ((5, 7), 7, torch.float32),
    ((4, 1), 1, torch.float32),
    ((0, 5), 2, torch.float16),
    ((9,), 3, torch.int32),
    ((2, 300), 64, torch.float32),
    ((6, 130), 10, torch.int8),
    ((1, 20000), 4, torch.uint8),  # many ties
    ((2, 500), 3, torch.int16),
    ((3, 40), 40, torch.bool),
]


@pytest.mark.parametrize(("shape", "k", "dtype"), SHAPES, ids=str)
@pytest.mark.parametrize("largest", [True, False], ids=["largest", "least"])
def test_values_and_places(target, shape, k, dtype, largest):
    x = tensor(12, shape, dtype, 60.0)
    values, places = top_k(x, k, largest)
    order = torch.sort(x.double(), descending=largest, stable=True, dim=-1).indices[..., :k]
    assert (values.dtype, places.dtype) == (dtype, torch.int32)
    torch.testing.assert_close(places.long(), order)
    torch.testing.assert_close(values, x.gather(-1, order))


def test_numbers_that_are_no_numbers(target):
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([[0.0, -0.0, nan, -inf, inf, 1.0, -1.0, nan]])
    values, places = top_k(x, 8)
    assert places.tolist() == [[2, 7, 4, 5, 0, 1, 6, 3]]
    torch.testing.assert_close(values, x[:, places[0].long()], equal_nan=True)
    assert top_k(x, 3, largest=False)[1].tolist() == [[3, 6, 0]]


@pytest.mark.parametrize("kind", [np.int32, np.uint32])
def test_the_limits_of_integers(target, kind):
    limits = np.iinfo(kind)
    middle = limits.max // 2
    x = np.array([limits.max, limits.min, 3, middle, middle + 1, limits.min + 1], kind)
    for largest in (True, False):
        values, places = top_k(x, 6, largest)
        order = np.argsort(-x.astype(np.int64) if largest else x, kind="stable")
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(values, x[order])


def test_gradient(target):
    x = torch.randperm(60, generator=torch.Generator().manual_seed(2)).reshape(3, 20).float()

    def derivative(function, x):
        given = x.clone().requires_grad_()
        values, _ = function(given, 4)
        return torch.autograd.grad(values, given, tensor(3, (3, 4), values.dtype))

    judge(derivative(top_k, x), lambda x: derivative(torch.topk, x), x)
    torch.library.opcheck(top_k.torch, (x, 4))
    values, places = torch.compile(lambda x: top_k(x, 4), fullgraph=True)(x)
    torch.testing.assert_close(values, x.gather(-1, places.long()))


def test_numpy(target):
    x = np.random.default_rng(4).standard_normal((5, 30)).astype(np.float16)
    values, places = top_k(x[:, ::2], 3)
    np.testing.assert_array_equal(values, -np.sort(-x[:, ::2], 1)[:, :3])
    np.testing.assert_array_equal(values, np.take_along_axis(x[:, ::2], places, 1))


def test_strict(strict, target):
    test_values_and_places(target, (1, 140), 2, torch.float32, True)


@pytest.mark.parametrize(
    ("x", "k", "said"),
    [
        (np.zeros((2, 3), np.float32), 4, "k is 4, not from 1 to 3"),
        (np.zeros((2, 100), np.float32), 65, "k is 65, not from 1 to 64"),
        (np.zeros((), np.float32), 1, "k is 1, not from 1 to 0"),
        (np.zeros(9, np.float64), 1, "x is of float64, and must be of float16, bfloat16, float32"),
        (np.zeros(9, np.float32), 1.5, "top_k takes k as an integer, not 1.5"),
    ],
)
def test_refused(target, x, k, said):
    with pytest.raises(UsageError) as error:
        top_k(x, k)
    assert str(error.value).startswith(said)
