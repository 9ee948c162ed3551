"""A copy of several elements by one instruction takes adjacent ones, or is refused."""

import numpy as np
import pytest
from fly_common.errors import InputError

import fly
import fly.expr as fx


def copy_rows(X, Y, stride):
    i = fx.thread_idx.x
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    source = fx.make_view(fx.get_iter(X) + i * 4 * stride, fx.make_layout(4, stride))
    fx.copy(atom, source, fx.make_view(fx.get_iter(Y) + i * 4, fx.make_layout(4, 1)))


@fly.kernel
def by_stride_kernel(X: fx.Tensor, Y: fx.Tensor, stride: fx.Constexpr[int]):
    copy_rows(X, Y, stride)


@fly.kernel
def by_tensor_kernel(X: fx.Tensor, Y: fx.Tensor):
    copy_rows(X, Y, X.stride[0])


@fly.jit
def by_stride(X: fx.Tensor, Y: fx.Tensor, stride: fx.Constexpr[int]):
    by_stride_kernel(X, Y, stride).launch(grid=1, block=8)


@fly.jit
def by_tensor(X: fx.Tensor, Y: fx.Tensor):
    by_tensor_kernel(X, Y).launch(grid=1, block=8)


def test_adjacent_elements():
    x, y, z = np.arange(64, dtype="f4"), np.zeros(32, "f4"), np.zeros(32, "f4")
    by_stride(x, y, stride=1)
    by_tensor(x, z)
    assert (y == x[:32]).all()
    assert (z == x[:32]).all()


@pytest.mark.parametrize("stride", [0, 2])
def test_others(stride):
    x, y = np.arange(64, dtype="f4"), np.zeros(32, "f4")
    with pytest.raises(InputError, match=f"one call takes 4:{stride}, whose .* not adj") as caught:
        by_stride(x, y, stride=stride)
    assert f"test_wide_copies.py:{copy_rows.__code__.co_firstlineno + 4}:" in str(caught.value)


@fly.jit
def guarded(X: fx.Tensor, Y: fx.Tensor):
    if X.stride[0] == 1:
        by_tensor_kernel(X, Y).launch(grid=1, block=8)


def test_a_launch_where_the_stride_is_1():
    x, y = np.arange(128, dtype="f4"), np.zeros(32, "f4")
    guarded(x[::2], y)
    assert (y == 0).all()
    guarded(x[:64], y)
    assert (y == x[:32]).all()
