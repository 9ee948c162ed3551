"""What a launch of `fly.flydsl` takes, and what its kernels may read and write: memory around the
arrays of a call is there for reading."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import Fault
from fly_run.emulator.engine.arena import Buffers, Region

import fly.flydsl.compiler as flyc
import fly.flydsl.expr as fx


@pytest.fixture(autouse=True)
def target(monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")


@flyc.kernel
def store_kernel(A: fx.Tensor, distance: fx.Int32):
    A[fx.thread_idx.x + distance] = 1.0


@flyc.jit
def store(A: fx.Tensor, distance: fx.Int32):
    store_kernel(A, distance).launch(grid=(1, 1, 1), block=(64, 1, 1))


@flyc.kernel
def load_kernel(A: fx.Tensor, Y: fx.Tensor):
    i = fx.thread_idx.x
    Y[i] = (A[i + 32] == A[i + 32]).select(1.0, 1.0) + A[i]


@flyc.jit
def load(A: fx.Tensor, Y: fx.Tensor):
    load_kernel(A, Y).launch(grid=(1, 1, 1), block=(64, 1, 1))


@pytest.mark.parametrize("distance", [1, 64, 1000, -64])
def test_a_store_beyond_an_array_is_a_fault(distance: int):
    around = np.full(4096, 7.0, np.float32)
    given = around[2048:2112]
    with pytest.raises(Fault, match="memory outside the call's arrays"):
        store(given, distance)
    assert (around[:2048] == 7).all()
    assert (around[2112:] == 7).all()


def test_a_load_beyond_an_array_is_none():
    around = np.arange(4096, dtype=np.float32)
    out = np.zeros(64, np.float32)
    load(around[:64], out)
    np.testing.assert_array_equal(out, np.arange(64) + 1)


def test_all_of_a_call_s_arrays_may_be_written():
    """Several arrays of one allocation, among them one with a negative stride."""
    many = np.zeros(256, np.float32)
    store(many[:64], 0)
    store(many[128:192], 0)
    np.testing.assert_array_equal(many, np.repeat([1, 0, 1, 0], 64))


@flyc.kernel
def through_kernel(table: fx.Tensor, A: fx.Tensor):
    address = fx.Int64(table[fx.block_idx.x])
    pointer = fx.inttoptr(fx.PointerType.get(fx.typing.T.f32, fx.AddressSpace.Global, 4), address)
    pointer[fx.thread_idx.x] = A[fx.thread_idx.x]


@flyc.jit
def through(table: fx.Tensor, A: fx.Tensor):
    through_kernel(table, A).launch(grid=(2, 1, 1), block=(64, 1, 1))


def test_addresses_in_an_array():
    """Arrays that are reached by a table of addresses only."""
    first, second = np.zeros(64, np.float32), np.zeros(64, np.float32)
    given = np.arange(64, dtype=np.float32)
    table = np.array([first.ctypes.data, second.ctypes.data], np.int64)
    through(table, given)
    np.testing.assert_array_equal(first, given)
    np.testing.assert_array_equal(second, given)


def test_buffers_beneath_others_are_found_last():
    buffers = Buffers()
    buffers.place(Region("a", 4096, 64, 4096, True))
    buffers.place(Region("b", 8192, 64, 8192, True))
    buffers.place(Region("all", 1024, 65536, 1024, False), beneath=True)
    found = buffers.find(8192, 64)
    assert found is not None
    assert found.name == "b"
    assert buffers.rows == 6  # the last of them is the one beneath: handlers search in order
    buffers.remove(1024)
    buffers.place(Region("c", 16384, 64, 16384, False))
    assert buffers.find(16384, 4) is not None


def test_the_process_goes_on(tmp_path: Path):
    program = tmp_path / "wild.py"
    program.write_text(
        "import numpy as np, flydsl.compiler as flyc, flydsl.expr as fx\n"
        "@flyc.kernel\n"
        "def wild(A: fx.Tensor):\n"
        "    A[fx.thread_idx.x + 100000] = 1.0\n"
        "@flyc.jit\n"
        "def run(A: fx.Tensor):\n"
        "    wild(A).launch(grid=(1, 1, 1), block=(64, 1, 1))\n"
        "run(np.zeros(64, np.float32))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "fly.flydsl", str(program)], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "wild.py:4:5: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda given: store(given, 0, 1), "takes 2 arguments, got 3"),
        (lambda given: store("x", 0), "must be an array, not str"),
        (lambda given: store(given), "store is missing the argument distance"),
        (lambda given: store(given, 0, other=1), "no parameter 'other'"),
    ],
)
def test_wrong_calls_are_type_errors(call, said):
    with pytest.raises(TypeError, match=said):
        call(np.zeros(64, np.float32))
