"""Functions as operators of torch: what torch's own checks say of them."""

from pathlib import Path

import pytest
from fly_common.errors import UsageError
from fly_trace.session.load import load_file

torch = pytest.importorskip("torch")

PROGRAM = """
import fly
import fly.expr as fx


@fly.kernel
def scale_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int64, a: fx.Float32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        Y[i] = X[i] * a


@fly.jit
def scaled(X: fx.Tensor[fx.Float32, "n"], a: fx.Float32 = 2.0):
    n = X.shape[0]
    Y = fx.empty_like(X)
    scale_kernel(X, Y, n, a).launch(grid=fx.ceildiv(n, 64), block=64)
    return Y


@fly.jit
def scale_to(X: fx.Tensor[fx.Float32, "n"], Y: fx.Tensor[fx.Float32, "n"], a: fx.Float32):
    n = X.shape[0]
    scale_kernel(X, Y, n, a).launch(grid=fx.ceildiv(n, 64), block=64)


@fly.kernel
def outer_kernel(X: fx.Tensor, Y: fx.Tensor, Z: fx.Tensor, n: fx.Int64):
    i, j = fx.block_idx.x * 64 + fx.thread_idx.x, fx.block_idx.y
    if i < n:
        Z[j, i] = Y[j] * X[i]


@fly.jit
def outer(X: fx.Tensor, Y: fx.Tensor):
    n, m = X.shape[0], Y.shape[0]
    Z = fx.empty((m, n), fx.Float32)
    outer_kernel(X, Y, Z, n).launch(grid=(fx.ceildiv(n, 64), m), block=64)
    return Z, n * m


@fly.jit
def same(X: fx.Tensor[fx.Float32, "n"]):
    scale_kernel(X, X, X.shape[0], 1.0).launch(grid=1, block=64)
    return X
"""


@pytest.fixture(scope="module")
def operators(tmp_path_factory):
    import fly.torch

    path: Path = tmp_path_factory.mktemp("operators") / "program.py"
    path.write_text(PROGRAM)
    made = load_file(str(path))
    x = torch.zeros(3)

    def backward(context, gradient):
        return scaled(gradient, context.factor), None

    def setup(ctx, inputs, output):
        ctx.factor = inputs[1]

    scaled = fly.torch.register(made.scaled, backward=backward, setup_context=setup)
    to = fly.torch.register(made.scale_to, "flytest::scale_to")
    outer = fly.torch.register(made.outer, example=(x, x))
    return made, scaled, to, outer


def test_results(operators):
    _, scaled, to, outer = operators
    x, y = torch.arange(100.0), torch.zeros(100)
    assert torch.equal(scaled(x, 3.0), 3 * x)
    assert torch.equal(torch.ops.fly.scaled(x), 2 * x)
    assert to(x, y, 4.0) is None
    assert torch.equal(y, 4 * x)
    z, size = outer(x, torch.arange(7.0))
    assert torch.equal(z, torch.outer(torch.arange(7.0), x))
    assert size == 700


def test_opcheck(operators):
    _, scaled, to, outer = operators
    x = torch.randn(33)
    for inputs in ((x, 2.0), (x.clone().requires_grad_(), 0.5)):
        torch.library.opcheck(scaled, inputs)
    torch.library.opcheck(to, (x, torch.zeros(33), 2.0))
    torch.library.opcheck(outer, (x, torch.randn(5)))


def test_compile(operators):
    _, scaled, to, outer = operators

    @torch.compile(backend="aot_eager", fullgraph=True, dynamic=True)
    def f(x, y):
        out = torch.empty_like(x)
        to(scaled(x, 3.0) + 1, out, 2.0)
        z, size = outer(out, y)
        return z.sum(1) + size

    for n, m in ((10, 3), (77, 5), (128, 2)):
        x, y = torch.randn(n), torch.randn(m)
        expected = torch.outer(y, (3 * x + 1) * 2).sum(1) + n * m
        torch.testing.assert_close(f(x, y), expected)


def test_gradients(operators):
    _, scaled, _, _ = operators
    x = torch.arange(5.0, requires_grad=True)
    scaled(x, 3.0).sum().backward()
    assert torch.equal(x.grad, torch.full((5,), 3.0))


def test_what_can_be_no_operator(operators):
    import fly.torch

    made = operators[0]
    with pytest.raises(UsageError, match="not <function"):
        fly.torch.register(lambda x: x)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="returns its parameter X: an operator's results are new"):
        fly.torch.register(made.same, "flytest::same")
