"""fx.atomic_…, fx.generic_load, fx.generic_store and fx.memory_fence through pointers; what MLIR's
builders may do with a pointer."""

from __future__ import annotations

import numpy as np
import pytest
from fly_common.errors import InputError

import fly.flydsl.compiler as flyc
import fly.flydsl.expr as fx
from fly.flydsl._mlir.dialects import llvm

ORDER = fx.AtomicOrdering


@pytest.fixture(autouse=True, params=["gfx942", "gfx1250"])
def target(request, monkeypatch) -> None:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", request.param)


@flyc.kernel
def integer_kernel(A: fx.Tensor, Y: fx.Tensor, old: fx.Tensor):
    t = fx.thread_idx.x + fx.block_idx.x * 64
    p, v = fx.get_iter(Y), A[t]
    fx.atomic_add(p, v)
    fx.atomic_sub(p + 1, v, syncscope=fx.rocdl.SyncScope.Agent)
    fx.atomic_min(p + 2, v)
    fx.atomic_max(p + 3, value=v, ordering=ORDER.AcqRel)
    fx.atomic_and(p + 4, v)
    fx.atomic_or(p + 5, v)
    fx.atomic_xor(p + 6, v)
    fx.atomic_add(Y, 9, v)  # the language's, of a tensor and an index
    if t == 0:
        old[0] = fx.atomic_xchg(p + 7, 5)
        for at, wanted in enumerate((3, 4)):
            found, stored = fx.atomic_cas(p + 8, wanted, 9, success_ordering=ORDER.SeqCst)
            old[1 + 2 * at], old[2 + 2 * at] = found, fx.Int32(stored)
        fx.memory_fence()
        fx.memory_fence(syncscope="workgroup", ordering=ORDER.Release)


@flyc.jit
def integers(A: fx.Tensor, Y: fx.Tensor, old: fx.Tensor):
    integer_kernel(A, Y, old).launch(grid=(2, 1, 1), block=(64, 1, 1))


@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int64, np.uint64])
def test_integers(kind):
    bounds = np.iinfo(kind)
    numbers = np.random.default_rng(1).integers(bounds.min, bounds.max, 138, dtype=kind)
    a, o, old = numbers[:128], numbers[128:].copy(), np.zeros(5, kind)
    o[8], before = 3, o.copy()
    before[8] = 3
    total = a.sum(dtype=kind)
    with np.errstate(over="ignore"):
        want = [before[0] + total, before[1] - total, min(before[2], a.min())]
        want += [max(before[3], a.max()), before[4] & np.bitwise_and.reduce(a)]
        want += [before[5] | np.bitwise_or.reduce(a), before[6] ^ np.bitwise_xor.reduce(a)]
        want += [kind(5), kind(9), before[9] + total]
    if kind is np.int32:
        integers(a, o, old)
        np.testing.assert_array_equal(old, [before[7], 3, 1, 9, 0])
    else:
        wide(a, o)
        want[7:9] = before[7:9]
    np.testing.assert_array_equal(o, want)


@flyc.kernel
def wide_kernel(A: fx.Tensor, Y: fx.Tensor):
    t = fx.thread_idx.x + fx.block_idx.x * 64
    p, v = fx.get_iter(Y), A[t]
    for at, function in enumerate((fx.atomic_add, fx.atomic_sub, fx.atomic_min, fx.atomic_max)):
        function(p + at, v)
    for at, function in enumerate((fx.atomic_and, fx.atomic_or, fx.atomic_xor)):
        function(p + 4 + at, v)
    fx.atomic_add(p + 9, v)


@flyc.jit
def wide(A: fx.Tensor, Y: fx.Tensor):
    wide_kernel(A, Y).launch(grid=(2, 1, 1), block=(64, 1, 1))


@flyc.kernel
def float_kernel(A: fx.Tensor, Y: fx.Tensor):
    p, v = fx.get_iter(Y), A[fx.thread_idx.x]
    fx.atomic_add(p, v)
    fx.atomic_fmax(p + 1, v)
    fx.atomic_fmin(p + 2, v)
    fx.atomic_fmax(p + 3, -abs(v), is_positive=False)
    fx.atomic_fmin(p + 4, abs(v), is_positive=True)
    fx.atomic_max(p + 5, v)
    fx.atomic_min(p + 6, v)
    fx.atomic_sub(p + 7, 1)


@flyc.jit
def floats(A: fx.Tensor, Y: fx.Tensor):
    float_kernel(A, Y).launch(grid=(1, 1, 1), block=(64, 1, 1))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_floats(kind):
    a = ((np.arange(64) * 3 - 70) / 2).astype(kind)
    o = np.array([0, -1e9, 1e9, -1e9, 1e9, -1e9, 1e9, 0], kind)
    floats(a, o)
    most, least, size = a.max(), a.min(), abs(a).min()
    np.testing.assert_array_equal(o, [a.sum(), most, least, -size, size, most, least, -64])


@flyc.kernel
def memory_kernel(A: fx.Tensor, Y: fx.Tensor):
    t = fx.thread_idx.x
    counts = fx.SharedAllocator().allocate(fx.Array[fx.Int32, 16]).peek()
    if t < 16:
        counts[t] = fx.Int32(0)
    fx.gpu.barrier()
    fx.atomic_add(fx.add_offset(counts.ptr, A[t] % 16), 1, syncscope=fx.rocdl.SyncScope.Workgroup)
    fx.gpu.barrier()
    p, q = fx.get_iter(Y), fx.get_iter(A)
    if t < 4:
        four = [counts[t * 4 + j] for j in fx.range_constexpr(4)]
        fx.generic_store(p + t * 4, fx.Vector.from_elements(four, fx.Int32))
    total = fx.generic_load(q + t) + fx.generic_load(q, count=4)[3]
    total = total + fx.generic_load(q + 4, dtype=fx.Int32x2, volatile=True)[1]
    total = total + fx.generic_load(q + 4, memory_order=ORDER.Acquire, syncscope="agent")
    fx.generic_store(p + 16 + t, total, nontemporal=True)


@flyc.jit
def memory(A: fx.Tensor, Y: fx.Tensor):
    memory_kernel(A, Y).launch(grid=(1, 1, 1), block=(64, 1, 1))


def test_loads_and_stores():
    a = (np.arange(64) ** 2).astype(np.int32)
    o = np.zeros(80, np.int32)
    memory(a, o)
    np.testing.assert_array_equal(o[:16], np.bincount(a % 16, minlength=16))
    np.testing.assert_array_equal(o[16:], a + a[3] + a[5] + a[4])


def refusal(call) -> str:
    @flyc.kernel
    def kernel(Y: fx.Tensor):
        call(fx.get_iter(Y))

    @flyc.jit
    def function(Y: fx.Tensor):
        kernel(Y).launch(grid=(1, 1, 1), block=(1, 1, 1))

    with pytest.raises((TypeError, ValueError)) as caught:
        function(np.zeros(4, np.int32))
    return str(caught.value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda p: fx.atomic_add(p, fx.Float32(1.0)),
            "Float32 must match pointer element type Int32",
        ),
        (
            lambda p: fx.atomic_add(3, 1),
            "must be an fx.Pointer or an !llvm.ptr, not the Python int 3",
        ),
        (lambda p: fx.atomic_add(p, 1, ordering="x"), "must be an fx.AtomicOrdering, not 'x'"),
        (lambda p: fx.atomic_add(p, 1, ordering=ORDER.NotAtomic), "at least Monotonic here"),
        (lambda p: fx.atomic_add(p, 1, 2), "takes a pointer and a value, or a tensor"),
        (lambda p: fx.atomic_fmax(p, 1), "takes an fx.Float32 or fx.Float64, not Int32"),
        (lambda p: fx.atomic_cas(fx.recast_iter(fx.Float32, p), 1.0, 2.0), "reinterpret them"),
        (lambda p: fx.generic_load(p, memory_order=ORDER.Release), "a load can't be"),
        (lambda p: fx.generic_load(p, syncscope="agent"), "syncscope requires an atomic"),
        (lambda p: fx.generic_load(p, count=0), "count must be a positive integer"),
        (
            lambda p: fx.generic_store(p, fx.Int32(1), memory_order=ORDER.Acquire),
            "a store can't be",
        ),
        (lambda p: fx.memory_fence(ordering=ORDER.Monotonic), "a fence is at least Acquire"),
    ],
)
def test_refusals(call, said: str):
    assert said in refusal(call)


@flyc.kernel
def builder_kernel(A: fx.Tensor, atomic: fx.Constexpr[bool]):
    p = fx.add_offset(fx.get_iter(A), fx.thread_idx.x)
    if fx.const_expr(atomic):
        kinds = llvm.AtomicBinOp.add, fx.to_llvm_ptr(p), fx.Int32(7).ir_value()
        llvm.AtomicRMWOp(*kinds, llvm.AtomicOrdering.monotonic)
    else:
        llvm.StoreOp(fx.Int32(7).ir_value(), p.llvm_ptr)


@flyc.jit
def builders(A: fx.Tensor, atomic: fx.Constexpr[bool]):
    builder_kernel(A, atomic).launch(grid=(1, 1, 1), block=(4, 1, 1))


@pytest.mark.parametrize("atomic", [False, True])
def test_a_pointer_that_a_builder_of_mlir_gets_may_be_written(atomic: bool):
    a = np.zeros(4, np.int32)
    builders(a, atomic)
    np.testing.assert_array_equal(a, 7)
    a.setflags(write=False)
    with pytest.raises(InputError, match="read and written, but the array is read-only"):
        builders(a, atomic)
