"""Early exits of many work items, each on its own path, run on the emulator."""

# ruff: noqa: F821  (extents are named by strings)

import numpy as np
import pytest

import fly
import fly.expr as fx

TARGETS = ["gfx90a", "gfx942", "gfx1100", "gfx1201"]


def first(A, row, n, wanted):
    """The first index of a number, or -1."""
    for i in range(n):
        if A[row, i] == wanted:
            return i
    return -1


@fly.kernel
def search_kernel(A: fx.Tensor, out: fx.Tensor, n: fx.Int32):
    row = fx.block_idx.x * fx.block_dim.x + fx.thread_idx.x
    if row >= A.shape[0]:
        return
    out[row, 0] = first(A, row, n, row % 7)
    total = fx.Int32(0)
    for i in range(n):
        if A[row, i] == 3:
            continue
        if total > row:
            break
        total = total + A[row, i]
    else:
        total = total + 1000
    out[row, 1] = total


@fly.jit
def search(A: fx.Tensor[fx.Int32, "m", "n"], out: fx.Tensor[fx.Int32, "m", 2], n: fx.Int32):
    search_kernel(A, out, n).launch(grid=fx.ceildiv(A.shape[0], 64), block=64)


def expected_search(a, n):
    out = np.zeros((len(a), 2), np.int32)
    for row in range(len(a)):
        found = np.flatnonzero(a[row, :n] == row % 7)
        out[row, 0] = found[0] if len(found) else -1
        total = 0
        for i in range(n):
            if a[row, i] == 3:
                continue
            if total > row:
                break
            total += a[row, i]
        else:
            total += 1000
        out[row, 1] = total
    return out


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [0, 1, 9])
def test_each_work_item_leaves_where_it_must(target, n, monkeypatch):
    monkeypatch.setenv("FLY_TARGET", target)
    a = np.random.default_rng(n).integers(0, 7, (100, 9)).astype(np.int32)
    out = np.zeros((100, 2), np.int32)
    search(a, out, n)
    np.testing.assert_array_equal(out, expected_search(a, n))


@fly.kernel
def reversed_kernel(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
    """Blocks beyond n leave as a whole, before the barrier."""
    if fx.block_idx.x >= n:
        return
    held = fx.shared_array(fx.Float32, 128)
    i = fx.thread_idx.x
    held[i] = A[fx.block_idx.x, i]
    fx.barrier()
    B[fx.block_idx.x, i] = held[127 - i]


@fly.jit
def reverse(A: fx.Tensor[fx.Float32, "m", 128], B: fx.Tensor[fx.Float32, "m", 128], n: fx.Int32):
    reversed_kernel(A, B, n).launch(grid=A.shape[0], block=128)


@pytest.mark.parametrize("target", TARGETS)
def test_a_barrier_behind_a_return_that_is_the_same_for_the_block(target, monkeypatch):
    monkeypatch.setenv("FLY_TARGET", target)
    a = np.arange(5 * 128, dtype=np.float32).reshape(5, 128)
    b = np.zeros_like(a)
    reverse(a, b, 3)
    np.testing.assert_array_equal(b[:3], a[:3, ::-1])
    assert not b[3:].any()


@fly.jit
def launch_some(
    A: fx.Tensor[fx.Float32, "m", 128], B: fx.Tensor[fx.Float32, "m", 128], n: fx.Int32
):
    """A host function that leaves early, and a loop of launches that ends early."""
    if n <= 0:
        return
    for k in range(n):
        if k == 2:
            break
        reversed_kernel(A, B, k + 1).launch(grid=A.shape[0], block=128)


@pytest.mark.parametrize(("n", "rows"), [(0, 0), (-3, 0), (1, 1), (2, 2), (7, 2)])
def test_a_host_function_with_early_exits(n, rows):
    a = np.arange(1, 1 + 5 * 128, dtype=np.float32).reshape(5, 128)
    b = np.zeros_like(a)
    launch_some(a, b, n)
    np.testing.assert_array_equal(b[:rows], a[:rows, ::-1])
    assert not b[rows:].any()


@fly.jit
def chosen(A: fx.Tensor[fx.Float32, "m", 128], B: fx.Tensor[fx.Float32, "m", 128], n: fx.Int32):
    """A host function with results on several paths."""
    reversed_kernel(A, B, n).launch(grid=A.shape[0], block=128)
    for k in range(n):
        if k * k > n:
            return B, k
    if n > 100:
        return A, n + 1
    return B, 0


@pytest.mark.parametrize("n", [0, 1, 2, 5, 30])
def test_results_of_a_host_function_with_early_exits(n):
    a = np.ones((5, 128), np.float32)
    b = np.zeros_like(a)
    try:
        result = chosen(a, b, n)
    except Exception as error:
        raise AssertionError(str(error)) from error
    expected = next((k for k in range(n) if k * k > n), 0)
    assert result[1] == expected


@fly.kernel
def long_kernel(A: fx.Tensor, out: fx.Tensor):
    """A static range too long to unroll, and the loop variable after the loop."""
    x = A[fx.thread_idx.x]
    for i in range(1000):
        if i * i > x:
            break
    out[fx.thread_idx.x, 0] = i
    for j in range(3, 1000, 2):
        if x > 5:
            continue
        out[fx.thread_idx.x, 1] += j
    out[fx.thread_idx.x, 2] = j


@fly.jit
def long_ranges(A: fx.Tensor[fx.Int32, 64], out: fx.Tensor[fx.Int32, 64, 3]):
    long_kernel(A, out).launch(grid=1, block=64)


def test_long_static_ranges():
    a = np.arange(64, dtype=np.int32)
    out = np.zeros((64, 3), np.int32)
    long_ranges(a, out)
    for x in a:
        assert out[x, 0] == next(i for i in range(1000) if i * i > x)
        assert out[x, 1] == (0 if x > 5 else sum(range(3, 1000, 2)))
        assert out[x, 2] == 999
