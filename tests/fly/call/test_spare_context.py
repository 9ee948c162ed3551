"""The context that is made ahead for the next call: when it is used; it changes no byte."""

import pytest
from fly_common.errors import FlyError
from fly_dialect import dialect, spare_context
from fly_opt.pipeline import runner, stage
from fly_opt.pipeline.options import Options

import fly
import fly.expr as fx


@fly.kernel
def scale_kernel(A: fx.Tensor, factor: fx.Float32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < A.shape[0]:
        A[i] = fx.exp(A[i]) * factor


@fly.jit
def scale(A: fx.Tensor[fx.Float32, None], factor: fx.Float32):
    scale_kernel(A, factor).launch(grid=fx.ceildiv(A.shape[0], 64), block=64)


@fly.kernel
def first_kernel(A: fx.Tensor):
    A[fx.thread_idx.x] = fx.shuffle_xor(A[fx.thread_idx.x], 1)


@fly.jit
def first(A: fx.Tensor[fx.Int32, None]):
    first_kernel(A).launch(grid=1, block=32)


@fly.jit
def refused(A: fx.Tensor[fx.Int32, None]):
    first_kernel(A)


@pytest.fixture(autouse=True)
def made(monkeypatch):
    """The contexts that were made in the usual way. Nothing is kept before and after a test."""
    found = []
    real = dialect.new_context

    def new_context():
        found.append(real())
        return found[-1]

    monkeypatch.setattr(dialect, "new_context", new_context)
    monkeypatch.setenv("FLY_CACHE", "off")
    for function in (scale, first):
        function._kept.clear()
    spare_context.drop()
    yield found
    spare_context.drop()


def kept() -> tuple[str, object] | None:
    return spare_context._kept


def test_a_call_makes_the_context_of_the_next(made):
    scale.compile(target="gfx942")
    assert len(made) == 2  # its own, and the spare one
    assert kept() == ("gfx942", made[1])
    first.compile(target="gfx942")
    assert len(made) == 3  # the spare one
    assert kept() == ("gfx942", made[2])


def test_one_for_another_target_is_not_used(made):
    scale.compile(target="gfx942")
    first.compile(target="gfx1201")
    assert len(made) == 4
    assert kept() == ("gfx1201", made[3])
    assert spare_context.take("gfx942") is None
    assert spare_context.take(None) is None


def test_a_text_from_elsewhere_makes_none(made):
    text = scale.compile(target="gfx942").ir("mlir").encode()
    spare_context.drop()
    del made[:]
    stage.compile(text, Options(target="gfx942"))
    assert len(made) == 1
    assert kept() is None


@pytest.mark.parametrize("target", ["gfx942", "gfx1201", "sm_90a"])
def test_the_bytes_are_those_of_a_new_context(made, target):
    """Of what is traced, and of what is lowered."""
    expected = []
    for function in (scale, first):
        spare_context.drop()
        function._kept.clear()
        code = function.compile(target=target)
        expected.append((code.ir("mlir"), code.image))
    for function in (scale, first):
        function._kept.clear()
    del made[:]
    found = [function.compile(target=target) for function in (scale, first)]
    assert len(made) == 2  # one for the next call, by each
    assert [(one.ir("mlir"), one.image) for one in found] == expected


def test_a_refusal_leaves_the_next_call_alone(made):
    scale.compile(target="gfx942")
    with pytest.raises(FlyError, match="is not launched"):
        refused.compile(target="gfx942")
    assert kept() is None  # it was the refused function's
    assert first.compile(target="gfx942").image


def test_a_pipeline_that_can_not_be_warmed(made, monkeypatch):
    """What fails while nobody asks for it fails when somebody does."""
    monkeypatch.setattr(runner, "warm", lambda *_: (_ for _ in ()).throw(RuntimeError("a defect")))
    assert scale.compile(target="gfx942").image
    assert kept() is None
