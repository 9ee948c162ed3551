"""Convolutions by implicit matrix products."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fly_common.errors import UsageError

from fly.kernels import conv2d
from fly_kernels.judging import gradients, judge, tensor

CASES = [
    # x, weight, type, options, whether x has adjacent channels
    ((2, 8, 10, 9), (16, 8, 3, 3), torch.float16, {"padding": 1}, True),
    ((2, 8, 10, 9), (16, 8, 3, 3), torch.float16, {"padding": 1}, False),
    ((1, 3, 17, 12), (7, 3, 5, 3), torch.bfloat16, {"stride": 2, "padding": (2, 0)}, False),
    ((1, 3, 17, 12), (7, 3, 5, 3), torch.bfloat16, {"stride": (1, 3), "dilation": 2}, True),
    ((2, 12, 6, 6), (8, 3, 2, 2), torch.float32, {"groups": 4}, False),
    ((2, 16, 6, 6), (32, 8, 1, 1), torch.float32, {"groups": 2}, True),
    ((1, 6, 5, 7), (6, 1, 3, 3), torch.float32, {"groups": 6, "padding": 1}, False),
    ((3, 5, 1, 1), (4, 5, 1, 1), torch.float64, {}, False),
    ((1, 4, 3, 3), (2, 4, 3, 3), torch.float32, {"padding": 5, "dilation": (3, 2)}, False),
    ((0, 4, 5, 5), (8, 4, 3, 3), torch.float16, {}, False),
    ((1, 40, 12, 12), (33, 40, 3, 3), torch.float16, {"stride": 2}, True),
]


def operands(x, weight, dtype, adjacent):
    x, weight = tensor(1, x, dtype, 1.0), tensor(2, weight, dtype, 1.0)
    return x.contiguous(memory_format=torch.channels_last) if adjacent else x, weight


@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolution(target, case):
    *first, options, adjacent = case
    x, weight = operands(*first, adjacent)
    bias = tensor(3, weight.shape[:1], x.dtype)

    def reference(x, weight, bias):
        return torch.nn.functional.conv2d(x, weight, bias, **options)

    judge(conv2d(x, weight, bias, **options), reference, x, weight, bias)


def test_strict(strict, target):
    x, weight = operands((1, 2, 4, 4), (3, 2, 3, 3), torch.float16, False)
    judge(conv2d(x, weight, padding=1), lambda x, w: torch.conv2d(x, w, padding=1), x, weight)


def test_views(target):
    whole, weight = operands((2, 16, 12, 12), (8, 8, 3, 3), torch.float16, True)
    for x in (whole[:, 3:11], whole[:, :8, ::2, 1:], whole[1:, 8:], whole[:, ::2]):
        judge(conv2d(x, weight), torch.conv2d, x, weight)


@pytest.mark.parametrize("case", [CASES[1], CASES[4], CASES[9]], ids=str)
def test_gradient(target, case):
    *first, options, adjacent = case
    x, weight = operands(*first, adjacent)
    bias = tensor(3, weight.shape[:1], x.dtype)
    judge(
        gradients(lambda *x: conv2d(*x, **options), x, weight, bias),
        lambda *x: gradients(lambda *x: torch.conv2d(*x, **options), *x),
        x,
        weight,
        bias,
    )


def test_numpy(target):
    x, weight = operands((2, 4, 6, 5), (3, 4, 2, 3), torch.float32, False)
    made = conv2d(x.numpy(), weight.numpy(), stride=(np.int64(2), 1))
    assert type(made) is np.ndarray
    exact = torch.conv2d(x.double(), weight.double(), stride=(2, 1))
    np.testing.assert_allclose(made, exact, atol=1e-5)


@pytest.mark.heavy
def test_torch_checks_the_operator(target):
    x, weight = operands((2, 4, 5, 4), (6, 2, 3, 2), torch.float64, False)
    arguments = [y.requires_grad_() for y in (x, weight, tensor(3, (6,), torch.float64))]
    options = {"stride": 2, "padding": [1, 0], "groups": 2}
    torch.library.opcheck(conv2d.torch, arguments, options)
    assert torch.autograd.gradcheck(lambda *x: conv2d(*x, **options), arguments, fast_mode=True)


@pytest.mark.heavy
def test_compiled_by_torch(target):
    compiled = torch.compile(lambda x, w: conv2d(x.relu(), w, padding=1), fullgraph=True)
    x, weight = operands((1, 4, 6, 6), (8, 4, 3, 3), torch.float32, False)
    judge(compiled(x, weight), lambda x, w: torch.conv2d(x.relu(), w, padding=1), x, weight)


X, W = np.zeros((1, 4, 5, 5), np.float32), np.zeros((2, 4, 3, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: conv2d(X[0], W), "x and weight have 4 dimensions each, not 3 and 4"),
        (
            lambda: conv2d(X[:, :3], W),
            "x of shape (1, 3, 5, 5) and weight of shape (2, 4, 3, 3) ar",
        ),
        (
            lambda: conv2d(X, W, groups=2),
            "x of shape (1, 4, 5, 5) and weight of shape (2, 4, 3, 3)",
        ),
        (lambda: conv2d(X, W, stride=0), "strides and dilations are positive, and paddings not ne"),
        (lambda: conv2d(X, W, padding=(1, 2, 3)), "(1, 2, 3) is not an integer, or two for rows"),
        (lambda: conv2d(X, W, stride=1.5), "1.5 is not an integer, or two for rows and columns"),
        (lambda: conv2d(X, W, padding="same"), "'same' is not an integer, or two for rows and"),
        (lambda: conv2d(X.astype("i1"), W.astype("i1")), "x is of int8, and must be of float16"),
        (lambda: conv2d(X, W, dilation=3), "the window is greater than the image of shape (5, 5)"),
        (lambda: conv2d(X, W.astype("f8")), "x is of float32 and weight of float64"),
        (lambda: conv2d(X, W, X[0, 0, 0]), "bias has shape (5,), and weight 2 outputs"),
    ],
)
def test_refused(target, call, said):
    with pytest.raises(UsageError) as error:
        call()
    assert str(error.value).startswith(said)
