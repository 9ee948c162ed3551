"""Tuples and layouts that the host function makes of what it knows when it runs, as arguments."""

# ruff: noqa: F821  (extents are named by strings)

import numpy as np
import pytest

import fly
import fly.expr as fx


@fly.kernel
def passed_kernel(
    A: fx.Tensor,
    B: fx.Tensor,
    layout: fx.Layout,
    shape: fx.IntTuple,
    swizzled: fx.ComposedLayout,
    whole: fx.Layout,
    one: fx.IntTuple,
):
    t = fx.thread_idx.x
    seen = fx.make_view(fx.get_iter(A), layout)
    if t < fx.size(layout):
        B[0, t] = seen[t]
        B[1, t] = fx.Int32(fx.crd2idx((t % 3, (1, t % 2)), fx.make_layout(shape, (1, (2, 3)))))
        B[2, t] = fx.Int32(swizzled(t % 4, t // 4))
    B[3, t] = fx.Int32(fx.size(whole) + fx.size(shape)) + fx.Int32(fx.get_scalar(one))


@fly.jit
def passed(A: fx.Tensor[fx.Int32, "n"], B: fx.Tensor[fx.Int32, 4, 64], n: fx.Int32, m: fx.Int64):
    layout = fx.make_layout((n, (2, 2)), (4, (1, 2 * m)))
    base = fx.make_layout((4, n), (n, 1))
    swizzled = fx.make_composed_layout(fx.static(fx.SwizzleType.get(1, 0, 3)), n * 2, base)
    shape = fx.make_shape(m, (n, 2))
    whole = fx.get_layout(A)
    passed_kernel(A, B, layout, shape, swizzled, whole, fx.make_int_tuple(m)).launch(
        grid=1, block=64
    )


@pytest.mark.parametrize(("n", "m"), [(8, 3), (5, 2), (16, 1)])
def test_dynamic_layouts_are_arguments(n, m):
    a, b = np.arange(200, dtype=np.int32) ** 2, np.zeros((4, 64), np.int32)
    passed(a, b, n, m)
    for t in range(64):
        if t < 4 * n:
            at = t % n * 4 + t // n % 2 + t // n // 2 * 2 * m
            assert b[0, t] == a[at]
            assert b[1, t] == t % 3 + 2 + 3 * (t % 2)
            offset = 2 * n + t % 4 * n + t // 4
            assert b[2, t] == offset ^ (offset >> 3 & 1)
        assert b[3, t] == len(a) + m * n * 2 + m


def test_one_kernel_serves_all_sizes():
    a, b = np.zeros(200, np.int32), np.zeros((4, 64), np.int32)
    compiled = passed.compile(a, b, 8, 3)
    assert compiled.hsaco == passed.compile(a, b, 5, 2).hsaco
    (kernel,) = compiled.kernels
    assert kernel == "passed_kernel"
