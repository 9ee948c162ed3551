"""Atomic operations with orders and scopes, and fences."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import fly
import fly.expr as fx
from primitives import TARGETS, on, run

sys.path.insert(0, str(Path(__file__).parents[1] / "fly_trace"))
from trace_helpers import trace_body

on_targets = pytest.mark.parametrize("target", TARGETS)


@on_targets
@pytest.mark.parametrize(
    ("order", "scope", "dtype"),
    [
        ("relaxed", "block", "i4"),
        ("acquire", "device", "u8"),
        ("release", "system", "i4"),
        ("seq_cst", "device", "u8"),
    ],
)
def test_updates(target, order, scope, dtype):
    x = np.array([0, 100, 5, 0, 9, 12, 3, 0], dtype)
    old = np.zeros((2, 64), dtype)

    def body(A, B):
        i = fx.thread_idx.x
        B[0, i] = fx.atomic_add(A, 0, 2, order, scope)
        fx.atomic_sub(A, 1, 1, order=order, scope=scope)
        fx.atomic_min(A, 2, (i + 1).to(A.dtype), order, scope)
        fx.atomic_max(A, 3, (i + 1).to(A.dtype), order, scope)
        fx.atomic_and(A, 4, 8, order, scope)
        fx.atomic_or(A, 5, 1, order, scope)
        fx.atomic_xor(A, 6, 1, order, scope)
        B[1, i] = fx.atomic_cas(A, 7, 0, (i + 1).to(A.dtype), order, scope)

    run(body, x, old, block=64, target=target)
    np.testing.assert_array_equal(x[:7], [128, 36, 1, 64, 8, 13, 3])
    assert 1 <= x[7] <= 64
    np.testing.assert_array_equal(np.sort(old[0]), np.arange(0, 128, 2))
    np.testing.assert_array_equal(np.sort(old[1]), [0, *[x[7]] * 63])


@on_targets
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("scope", ["device", "system"])
def test_extrema_of_floats(target, dtype, scope):
    """In global and in shared memory; a NaN gives way to a number, on both sides."""
    rng = np.random.default_rng(3)
    values = rng.normal(scale=100, size=(64, 2)).astype(dtype)
    values[::3, 0] = np.nan
    values[5] = -np.inf, np.inf
    x = np.array([np.nan, 0, np.nan, 0, 7, -7], dtype)

    def body(A, V):
        local = fx.shared_array(A.dtype, 2)
        i = fx.thread_idx.x
        if i < 2:
            local[i] = 0.0
        fx.barrier()
        fx.atomic_min(A, 0, V[i, 0], scope=scope)
        fx.atomic_max(A, 1, V[i, 0], scope=scope)
        fx.atomic_max(A, 2, V[i, 1], scope=scope)
        fx.atomic_min(A, 3, V[i, 1], scope=scope)
        fx.atomic_min(local, 0, V[i, 0])
        fx.atomic_max(local, 1, V[i, 0])
        fx.barrier()
        if i < 2:
            A[4 + i] = local[i]

    run(body, x, values, block=64, target=target)
    least, most = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    expected = [least[0], max(most[0], 0), most[1], min(least[1], 0), least[0], max(most[0], 0)]
    np.testing.assert_array_equal(x, np.array(expected, dtype))


@on_targets
def test_counters_that_wrap(target):
    x = np.array([0, 0, 7, 7], "u4")

    def body(A):
        local = fx.shared_array(fx.Uint32, 2)
        i = fx.thread_idx.x
        if i < 2:
            local[i] = 0
        fx.barrier()
        fx.atomic_inc(local, 0, 9)
        fx.atomic_dec(local, 1, 9)
        fx.atomic_inc(A, 2, 9)
        fx.atomic_dec(A, 3, 9)
        fx.barrier()
        if i < 2:
            A[i] = local[i]

    run(body, x, block=64, target=target)
    np.testing.assert_array_equal(x, [64 % 10, -64 % 10, (7 + 64) % 10, (7 - 64) % 10])


@fly.kernel
def hand_over_kernel(A: fx.Tensor, flags: fx.Tensor, by_fences: fx.Constexpr[bool]):
    """Each block takes its number from the one before it, and adds 3."""
    block = fx.block_idx.x
    if fx.thread_idx.x == 0:
        if block > 0:
            if by_fences:
                while fx.atomic_load(flags, block - 1) == 0:
                    pass
                fx.memory_fence("acquire")
            else:
                while fx.atomic_load(flags, block - 1, "acquire") == 0:
                    pass
        before = A[block]
        if block > 0:
            before = A[block - 1]
        A[block] = before + 3
        if by_fences:
            fx.memory_fence("release")
            fx.atomic_store(flags, block, 1)
        else:
            fx.atomic_store(flags, block, 1, "release")


@fly.jit
def hand_over(A: fx.Tensor, flags: fx.Tensor, by_fences: fx.Constexpr[bool]):
    hand_over_kernel(A, flags, by_fences).launch(grid=A.shape[0], block=32)


@on_targets
@pytest.mark.parametrize("by_fences", [False, True])
def test_blocks_hand_over(target, by_fences):
    x, flags = np.zeros(6, "f4"), np.zeros(6, "i4")
    with on(target):
        hand_over(x, flags, by_fences)
    np.testing.assert_array_equal(x, np.arange(3, 21, 3))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("atomic_add(I, (0, 0), 1)", 'add %0, %1 syncscope("agent") monotonic'),
        ("atomic_inc(U, (0, 0), 1)", 'uinc_wrap %0, %1 syncscope("agent") monotonic'),
        ("atomic_add(I, (0, 0), 1, 'acq_rel', 'block')", 'syncscope("workgroup") acq_rel'),
        ("atomic_add(I, (0, 0), 1, 'seq_cst', 'system')", "add %0, %1 seq_cst"),
        ("atomic_cas(I, (0, 0), 1, 2, 'acq_rel')", 'syncscope("agent") acq_rel acquire'),
        ("atomic_cas(I, (0, 0), 1, 2, 'release')", 'syncscope("agent") release monotonic'),
        ("atomic_store(I, (0, 0), 1, 'release')", 'syncscope("agent") release'),
        ("memory_fence()", 'llvm.fence syncscope("agent") acq_rel'),
        ("memory_fence('seq_cst', 'system')", "llvm.fence seq_cst"),
    ],
)
def test_what_is_traced(call, text, tmp_path):
    body = f"U = fx.shared_array(fx.Uint32, (2, 2))\nfx.{call}"
    if "(U" in call:
        text = text.replace("agent", "workgroup")
    found = re.sub(r"%[\w.]+, %[\w.]+ (syncscope|seq)", r"%0, %1 \1", trace_body(body, tmp_path))
    assert text in found


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda A: fx.atomic_add(A, 0, 1, "weak"), 'the order of fx.atomic_add is "relaxed", "acq'),
        (lambda A: fx.atomic_add(A, 0, 1, scope="wave"), 'the scope of fx.atomic_add is "block", '),
        (lambda A: fx.atomic_load(A, 0, "release"), 'the order of fx.atomic_load is "relaxed", "a'),
        (lambda A: fx.atomic_store(A, 0, 1, "acquire"), 'the order of fx.atomic_store is "relaxe'),
        (lambda A: fx.atomic_inc(A, 0, 1), "fx.atomic_inc supports u32, u64, but A has i32"),
        (lambda A: fx.memory_fence("relaxed"), 'the order of fx.memory_fence is "acquire", "rele'),
    ],
)
def test_refusals(call, message):
    def body(A):
        call(A)

    with pytest.raises(Exception, match=message):
        run(body, np.zeros(4, "i4"), block=1, target="gfx942")
