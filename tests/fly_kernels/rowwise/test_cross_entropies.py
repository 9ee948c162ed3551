"""Cross entropy and its gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from fly_common.errors import FlyError, UsageError

from fly.kernels import cross_entropy, cross_entropy_backward, cross_entropy_rows
from fly_kernels.judging import gradients, judge, tensor

SHAPES = [
    ((3, 1000), torch.float32),
    ((2, 2048), torch.float16),
    ((33, 10), torch.bfloat16),
    ((5, 7), torch.float64),
    ((4, 1), torch.float32),
    ((0, 5), torch.float32),
    ((1, 2), torch.float16),
    ((6, 130), torch.float32),
    ((1, 40000), torch.bfloat16),  # several tiles
    ((3, 77), torch.float64),
]


def classes(shape, kind=torch.int64):
    random = torch.Generator().manual_seed(8)
    found = torch.randint(0, shape[-1], shape[:-1], generator=random)
    found[::3] = -100
    found[:1] = shape[-1] - 1
    return found.to(kind)


@pytest.mark.parametrize(("shape", "dtype"), SHAPES, ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_losses_and_gradients(target, shape, dtype, smoothing):
    x, targets = tensor(7, shape, dtype), classes(shape)

    def ours(x):
        return cross_entropy(x, targets, smoothing, reduction="none")

    def of_torch(x):
        return F.cross_entropy(x, targets, label_smoothing=smoothing, reduction="none")

    judge(ours(x), of_torch, x, same_type=False)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    assert ours(x).dtype == wide
    gradient = tensor(9, shape[:-1], wide, 1.0)

    def derivative(function, x):
        given = x.detach().clone().requires_grad_()
        made = function(given)
        return torch.autograd.grad(made, given, gradient.to(made.dtype))

    judge(derivative(ours, x), lambda x: derivative(of_torch, x), x)


@pytest.mark.parametrize("kind", [torch.int32, torch.int64, torch.uint8])
def test_reductions(target, kind):
    x = tensor(10, (4, 3, 20), torch.float32)
    targets = classes((4, 3, 20)).abs().clamp(max=19).to(kind)
    flat = x.reshape(-1, 20), targets.reshape(-1).long()
    for reduction in ("mean", "sum"):
        judge(
            cross_entropy(x, targets, reduction=reduction),
            lambda x, r=reduction: F.cross_entropy(x, flat[1], reduction=r),
            flat[0],
        )
    found = cross_entropy(x.numpy(), targets.numpy(), ignore_index=3, reduction="none")
    exact = F.cross_entropy(flat[0].double(), flat[1], ignore_index=3, reduction="none")
    np.testing.assert_allclose(found.reshape(-1), exact, rtol=1e-5, atol=1e-6)


def test_ignored_targets_of_no_sign(target):
    """-100 is 156 to torch, beside targets of u8."""
    x, targets = tensor(12, (6, 200), torch.float32), torch.tensor([156, 156, 1, 2, 156, 3])
    wanted = float(F.cross_entropy(x.double(), targets))
    for given in (targets.to(torch.uint8), targets.to(torch.uint8).numpy()):
        like = x if isinstance(given, torch.Tensor) else x.numpy()
        assert float(cross_entropy(like, given)) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.heavy
@pytest.mark.filterwarnings("error")
def test_means_of_arrays(target):
    for kind in (np.float32, np.float64):
        x = np.zeros((2, 3), kind)
        assert cross_entropy(x, np.array([0, 2])).dtype == kind
        assert np.isnan(cross_entropy(x, np.array([-100, -100])))


@pytest.mark.parametrize("of_losses", [0, 1])
def test_gradient_of_log_sums(target, of_losses):
    x, targets = tensor(13, (4, 30), torch.float32), classes((4, 30))

    def own(x):
        losses, log_sums = cross_entropy_rows(x, targets)
        return of_losses * losses.sum() + log_sums.square().sum()

    def exact(x):
        losses = F.cross_entropy(x, targets, reduction="none")
        return of_losses * losses.sum() + x.logsumexp(-1).square().sum()

    judge(gradients(own, x)[0], lambda x: gradients(exact, x)[0], x)


def test_strict(strict, target):
    test_losses_and_gradients(target, (2, 70), torch.float16, 0.2)


def test_torch_checks_the_operator(target):
    x, targets = tensor(11, (3, 5), torch.float64).requires_grad_(), classes((3, 5))
    torch.library.opcheck(cross_entropy_rows.torch, (x, targets, 0.1))
    assert torch.autograd.gradcheck(lambda x: cross_entropy(x, targets, 0.1), (x,))
    compiled = torch.compile(lambda x: cross_entropy(2 * x, targets), fullgraph=True)
    judge(compiled(x), lambda x: F.cross_entropy(2 * x, targets), x)


def test_a_target_that_is_no_class(target):
    x, targets = np.zeros((3, 4), np.float32), np.array([0, 4, 1])
    with pytest.raises(FlyError, match=r"targets\[1\] is 4, which is no class"):
        cross_entropy(x, targets)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x, t: cross_entropy(x, t[:1]), "targets has the shape (1,), and the rows (2,)"),
        (lambda x, t: cross_entropy(x, t, 2.0), "smoothing is 2.0, not from 0 to 1"),
        (lambda x, t: cross_entropy(x, t, reduction="all"), "reduction is 'all'"),
        (lambda x, t: cross_entropy(x, x[:, 0]), "targets is of float32, and must be of int8"),
        (
            lambda x, t: cross_entropy_backward(x[:, 0], x, t, x[:1, 0], 0.0, -100),
            "log_sums has the shape (1,), and the rows (2,)",
        ),
        (
            lambda x, t: cross_entropy_backward(t, x, t, x[:, 0], 0.0, -100),
            "gradient is of int64, and must be of float16",
        ),
    ],
)
def test_refused(target, call, said):
    with pytest.raises(UsageError) as error:
        call(np.zeros((2, 3), np.float32), np.zeros(2, np.int64))
    assert str(error.value).startswith(said)
