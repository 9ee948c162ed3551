"""A tuned function as an operator of torch."""

from __future__ import annotations

import pytest

from .planted import blocks

torch = pytest.importorskip("torch")

PROGRAM = """
import fly
import fly.expr as fx

@fly.kernel
def scale_kernel(X: fx.Tensor, Y: fx.Tensor, n: fx.Int64, a: fx.Float32, B: fx.Constexpr):
    i = fx.block_idx.x * B + fx.thread_idx.x
    if i < n:
        Y[i] = X[i] * a

@fly.jit
def tuned_scale(X: fx.Tensor[fx.Float32, "n"], BLOCK: fx.Constexpr, a: fx.Float32 = 2.0):
    n = X.shape[0]
    Y = fx.empty_like(X)
    scale_kernel(X, Y, n, a, BLOCK).launch(grid=fx.ceildiv(n, BLOCK), block=BLOCK)
    return Y
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    from fly_trace.session.load import load_file

    path = tmp_path_factory.mktemp("operators") / "program.py"
    path.write_text(PROGRAM)
    return vars(load_file(str(path)))["tuned_scale"]


def test_an_operator(program, monkeypatch):
    import fly.torch

    tuned = fly.autotune(blocks(64, 128), key=["n"])(program)
    operator = fly.torch.register(tuned, "flytest::tuned_scale")
    x = torch.randn(100)
    assert torch.equal(operator(x, 3.0), 3 * x)
    monkeypatch.setenv("FLY_AUTOTUNE", "1")
    assert torch.equal(torch.ops.flytest.tuned_scale(x), 2 * x)
    assert [one.case.key for one in tuned.library.winners(tuned.library.stored)] == [{"n": 100}]
    torch.library.opcheck(operator, (x, 2.0))

    @torch.compile(backend="aot_eager", fullgraph=True, dynamic=True)
    def f(x):
        return operator(x, 3.0) + 1

    for n in (7, 130):
        x = torch.randn(n)
        torch.testing.assert_close(f(x), 3 * x + 1)
