"""FlyDSL's atomic operations through pointers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fly.flydsl.compiler as flyc
import fly.flydsl.expr as fx
from fly.flydsl.runtime.device import check_smem_capacity

THREADS = 64


def after(work: Any, given: np.ndarray, start: Any) -> tuple[Any, np.ndarray]:
    """The first element of a buffer after `work(pointer, item)` of 64 threads, and what it
    returned in each."""

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor, Old: fx.Tensor):
        tid = fx.thread_idx.x
        Old[tid] = work(fx.get_iter(Out), A[tid])

    @flyc.jit
    def launch(A: fx.Tensor, Out: fx.Tensor, Old: fx.Tensor):
        kernel(A, Out, Old).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))

    out, old = np.array([start], given.dtype), np.zeros(THREADS, given.dtype)
    launch(given, out, old)
    return out[0], old


def items(dtype: Any) -> np.ndarray:
    return np.random.default_rng(1).integers(-50, 50, THREADS).astype(dtype)


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.int64])
@pytest.mark.parametrize(
    ("name", "expected"),
    [("add", np.sum), ("sub", lambda v: -np.sum(v)), ("min", np.min), ("max", np.max)],
)
def test_arithmetic(dtype: Any, name: str, expected: Any):
    given, function = items(dtype), getattr(fx, f"atomic_{name}")
    start = {"min": 99, "max": -99}.get(name, 0)
    scope = fx.rocdl.SyncScope.Agent
    found, old = after(lambda ptr, x: function(ptr, x, syncscope=scope), given, start)
    assert found == expected(given)
    assert start in old


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_bits(name: str):
    given = items(np.int32)
    ufunc = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[name]
    order = fx.AtomicOrdering.AcqRel
    found, _ = after(
        lambda ptr, x: getattr(fx, f"atomic_{name}")(ptr, x, ordering=order), given, 21
    )
    assert found == ufunc.reduce(given, initial=21)


@pytest.mark.parametrize("shift", [0, 100, -100])
def test_floats_by_their_bits(shift: int):
    given = items(np.float32) + np.float32(shift)
    found, _ = after(fx.atomic_fmax, given, -1e30)
    assert found == given.max()
    found, _ = after(fx.atomic_fmin, given, 1e30)
    assert found == given.min()


def test_exchanges():
    given = np.arange(THREADS, dtype=np.int32)
    found, old = after(fx.atomic_xchg, given, -1)
    assert sorted([found, *old]) == [-1, *given]

    def once(ptr: Any, x: Any) -> Any:
        old, is_first = fx.atomic_cas(ptr, -1, x)
        fx.memory_fence(ordering=fx.AtomicOrdering.AcqRel)
        return is_first.select(fx.Int32(1), fx.Int32(0)) + old * 0

    found, flags = after(once, given, -1)
    assert flags.sum() == 1
    assert flags[found] == 1


def test_the_languages_own_form():
    given = items(np.int32)

    @flyc.kernel
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        fx.atomic_add(Out, 0, A[fx.thread_idx.x])

    @flyc.jit
    def launch(A: fx.Tensor, Out: fx.Tensor):
        kernel(A, Out).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))

    out = np.zeros(1, np.int32)
    launch(given, out)
    assert out[0] == given.sum()


def test_shared_memory_of_a_chip():
    check_smem_capacity(65536, "gfx942")
    check_smem_capacity(1 << 30, "gfx000")
    with pytest.raises(RuntimeError, match="gfx942 has 65536"):
        check_smem_capacity(65537, "gfx942")
