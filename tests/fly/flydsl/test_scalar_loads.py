"""fx.rocdl.s_buffer_load, and barriers of a wave."""

from __future__ import annotations

import numpy as np
import pytest

import fly.flydsl.compiler as flyc
import fly.flydsl.expr as fx


@pytest.fixture(autouse=True, params=["gfx942", "gfx1100", "gfx1250"])
def target(request, monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", request.param)
    monkeypatch.setenv("FLY_STRICT", "1")


@flyc.kernel(known_block_size=[64, 1, 1])
def load_kernel(A: fx.Tensor, Out: fx.Tensor):
    tid, block = fx.thread_idx.x, fx.block_idx.x
    pointer = fx.get_iter(fx.rocdl.make_buffer_tensor(A, max_size=False))
    one = fx.rocdl.s_buffer_load(pointer, block + 3)
    four = fx.rocdl.s_buffer_load(pointer, block * 4, count=4)
    Out[block * 64 + tid] = one * 1000 + four[3] * 10 + tid


@flyc.jit
def load(A: fx.Tensor, Out: fx.Tensor):
    load_kernel(A, Out).launch(grid=(3, 1, 1), block=(64, 1, 1))


def test_scalar_loads():
    """The last block loads words behind the tensor's ten, which are 0."""
    given, out = np.arange(1, 11, dtype=np.int32), np.zeros(192, np.int32)
    load(given, out)
    block, tid = np.divmod(np.arange(192), 64)
    padded = np.concatenate([given, np.zeros(2, np.int32)])
    np.testing.assert_array_equal(out, padded[block + 3] * 1000 + padded[block * 4 + 3] * 10 + tid)


@pytest.mark.parametrize(
    ("work", "kind", "said"),
    [
        (lambda A, p: fx.rocdl.s_buffer_load(p, 0, count=2), ValueError, "1 or 4 dwords, not 2"),
        (lambda A, p: fx.rocdl.s_buffer_load(A, 0), TypeError, "takes a buffer pointer"),
        (
            lambda A, p: fx.rocdl.s_buffer_load(fx.get_iter(A), 0),
            ValueError,
            "a pointer of make_buffer_ptr",
        ),
    ],
)
def test_mistakes(work, kind, said):
    @flyc.kernel
    def kernel(A: fx.Tensor):
        A[0] = work(A, fx.get_iter(fx.rocdl.make_buffer_tensor(A)))

    @flyc.jit
    def launch(A: fx.Tensor):
        kernel(A).launch(grid=(1, 1, 1), block=(64, 1, 1))

    with pytest.raises(kind, match=said):
        launch(np.zeros(4, np.int32))


@flyc.kernel(known_block_size=[128, 1, 1])
def exchange_kernel(Out: fx.Tensor):
    tid = fx.thread_idx.x
    slots = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 128]).peek()
    slots[tid] = tid
    fx.barrier(scope=fx.gpu.BarrierScope.Subgroup)
    Out[tid] = slots[tid ^ 1]


@flyc.jit
def exchange(Out: fx.Tensor):
    exchange_kernel(Out).launch(grid=(1, 1, 1), block=(128, 1, 1))


def test_a_barrier_of_a_wave():
    out = np.zeros(128, np.int32)
    exchange(out)
    np.testing.assert_array_equal(out, np.arange(128) ^ 1)
    code = str(exchange.compile(out).ir("ll"))
    assert 'fence syncscope("wavefront") release' in code
    assert "call void @llvm.amdgcn.s.barrier" not in code
