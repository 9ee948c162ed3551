"""Softmax and its logarithm, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fly_common.errors import UsageError

from fly.kernels import log_softmax, log_softmax_backward, softmax, softmax_backward
from fly_kernels.judging import gradients, judge, tensor

SHAPES = [
    ((3, 1000), torch.float32, -1),
    ((2, 4096), torch.float16, -1),  # a whole tile
    ((2, 77), torch.bfloat16, -1),
    ((5, 3, 40), torch.float64, 1),
    ((4, 1), torch.float32, 1),
    ((0, 5), torch.float32, 1),
    ((3, 0), torch.float32, 1),
    ((7,), torch.float32, 0),
    ((1, 40000), torch.float16, 1),  # several tiles
    ((2, 33001), torch.float32, 1),
    ((33, 6), torch.bfloat16, 0),
]
FUNCTIONS = [(softmax, torch.softmax), (log_softmax, torch.log_softmax)]


@pytest.mark.parametrize(("shape", "dtype", "dim"), SHAPES, ids=str)
@pytest.mark.parametrize(("function", "reference"), FUNCTIONS, ids=["softmax", "log_softmax"])
def test_forward_and_backward(target, function, reference, shape, dtype, dim):
    x = tensor(1, shape, dtype)
    judge(function(x, dim), lambda x: reference(x, dim), x)
    judge(
        gradients(lambda x: function(x, dim), x),
        lambda x: gradients(lambda x: reference(x, dim), x),
        x,
    )


@pytest.mark.parametrize(("shape", "dtype", "dim"), [((2, 70), torch.float16, 1)], ids=str)
@pytest.mark.parametrize(("function", "reference"), FUNCTIONS, ids=["softmax", "log_softmax"])
def test_strict(strict, target, function, reference, shape, dtype, dim):
    test_forward_and_backward(target, function, reference, shape, dtype, dim)


def test_numbers_that_are_no_numbers(target):
    inf = float("inf")
    rows = [[inf, 0.0], [-inf, -inf], [float("nan"), 1.0], [-inf, 2.0], [-3e38, -3e38]]
    x = torch.tensor(rows)
    for function, reference in FUNCTIONS:
        judge(function(x), lambda x, reference=reference: reference(x, -1), x)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numpy(target, dtype):
    x = np.random.default_rng(2).standard_normal((4, 6, 10)).astype(dtype)
    for axis in (0, 1, 2, -2):
        y = softmax(x, axis)
        assert type(y) is np.ndarray
        assert y.dtype == dtype
        judge(torch.tensor(y), lambda x, axis=axis: torch.softmax(x, axis), torch.tensor(x))


def test_rows_that_are_not_adjacent(target):
    x = tensor(3, (8, 50), torch.float32)
    for view in (x[:, ::2], x[::3], x[:, 1:], x.t(), x[:, 5:6]):
        judge(softmax(view), lambda x: torch.softmax(x, -1), view)
    odd = np.frombuffer(bytes(2) + np.arange(64, dtype=np.float16).tobytes(), np.float16)[1:]
    judge(torch.tensor(softmax(odd)), lambda x: torch.softmax(x, -1), torch.tensor(odd))


def test_torch_checks_the_operators(target):
    x = tensor(4, (3, 9), torch.float64, 1.0).requires_grad_()
    for function, backward in (
        (softmax, softmax_backward),
        (log_softmax, log_softmax_backward),
    ):
        torch.library.opcheck(function.torch, (x, 0))
        torch.library.opcheck(backward.torch, (x.detach(), function(x).detach()))
        assert torch.autograd.gradcheck(function, (x,))


def test_compiled_by_torch(target):
    compiled = torch.compile(lambda x: softmax(2 * x, 0) + log_softmax(x), fullgraph=True)
    for shape in ((3, 9), (5, 2)):
        x = tensor(5, shape, torch.float32)
        judge(compiled(x), lambda x: (2 * x).softmax(0) + x.log_softmax(-1), x)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: softmax(np.zeros((2, 3), np.float32), 2), "dim is 2, and the array has 2 dim"),
        (lambda: softmax(np.float32(1).reshape(())), "dim is -1, and the array has 0 dimensions"),
        (
            lambda: softmax(np.zeros(3, np.int32)),
            "x is of int32, and must be of float16, bfloat16, float32 or float64",
        ),
        (
            lambda: softmax(torch.zeros(4, 4).to(torch.float8_e5m2)),
            "x is of float8_e5m2, and must be of float16, bfloat16, float32 or float64",
        ),
        (lambda: softmax(np.zeros(3), "a"), "softmax takes dim as an integer, not 'a'"),
        (lambda: softmax([1.0]), "softmax takes NumPy arrays or torch tensors, not [1.0]"),
        (
            lambda: softmax_backward(np.zeros(3), np.zeros(4)),
            "the arrays have different shapes: (3,), (4,)",
        ),
    ],
)
def test_refused(target, call, said):
    with pytest.raises(UsageError) as error:
        call()
    assert str(error.value).startswith(said)
