"""When the tensors that a program allocates are freed, by every reader: nothing accumulates in a
loop that hands on what its body allocates."""

# ruff: noqa: F821  (extents are named by strings)

import tracemalloc

import numpy as np
import pytest
from fly_run.launch import machine
from fly_run.launch.arrays import memory

import fly
import fly.expr as fx
from fly import CompileOptions

SIZE = 1 << 18  # elements: 1 MiB


@fly.kernel
def increment(A: fx.Tensor, B: fx.Tensor):
    for i in range(fx.thread_idx.x, A.shape[0], 64):
        B[i] = A[i] + 1.0


@fly.kernel
def increment_some(A: fx.Tensor, B: fx.Tensor):
    i = fx.thread_idx.x
    B[i] = A[i] + 1.0


def repeated(A: fx.Tensor[fx.Float32, "n"], times: fx.Int32):
    for _ in range(times):
        B = fx.empty_like(A)
        increment(A, B).launch(grid=1, block=64)
        A = B
    return A


def chosen(A: fx.Tensor[fx.Float32, "n"], times: fx.Int32):
    for i in range(times):
        if i % 2 == 0:
            B = fx.empty_like(A)
            increment(A, B).launch(grid=1, block=64)
        else:
            B = fx.empty_like(A)
            increment(A, B).launch(grid=1, block=64)
            C = fx.empty_like(A)
            increment(B, C).launch(grid=1, block=64)
            B = C
        A = B
    return A


def large(A: fx.Tensor[fx.Float32, "n"], times: fx.Int32):
    for _ in range(times):
        B = fx.empty_like(A)
        increment_some(A, B).launch(grid=1, block=64)
        A = B
    return A


@pytest.fixture
def adopted(monkeypatch):
    """How many buffers of the program a device sees at each launch."""
    seen: list[int] = []
    memories: list[memory.Memory] = []
    adopt, launch = memory.Memory.adopt_all, machine.launch_packed

    def adopt_all(self, spans):
        memories.append(self)
        return adopt(self, spans)

    def launch_packed(*arguments, **options):
        seen.append(len(memories[-1]._adopted) - 1)  # without the argument
        return launch(*arguments, **options)

    monkeypatch.setattr(memory.Memory, "adopt_all", adopt_all)
    monkeypatch.setattr(machine, "launch_packed", launch_packed)
    return seen


@pytest.mark.parametrize("host", ["interp", "py"])
def test_a_device_sees_two_buffers_of_a_loop(adopted, host):
    function = fly.jit(options=CompileOptions(host=host))(repeated)
    assert (function(np.zeros(100, np.float32), 6) == 6).all()
    assert adopted == [1, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("host", ["interp", "py"])
def test_a_device_sees_three_buffers_where_a_branch_chooses(adopted, host):
    function = fly.jit(options=CompileOptions(host=host))(chosen)
    assert (function(np.zeros(100, np.float32), 8) == 12).all()
    assert max(adopted) == 3
    assert len(adopted) == 12


@pytest.mark.parametrize("host", ["interp", "py", "jit"])
def test_the_memory_of_earlier_iterations_is_returned(host):
    function = fly.jit(options=CompileOptions(host=host))(large)
    A = np.zeros(SIZE, np.float32)
    for _ in range(2):  # the second call of a kind may be native code's
        function(A, 2)
    tracemalloc.start()
    try:
        assert (function(A, 30)[:64] == 30).all()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 2 * A.nbytes <= most < 4 * A.nbytes
