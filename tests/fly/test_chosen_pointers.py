"""Stores through a variable that holds one of several pointers, by the side of an `if`."""

from __future__ import annotations

import numpy as np

import fly
import fly.expr as fx


@fly.kernel
def copy_kernel(X: fx.Tensor, A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    block, thread = fx.block_idx.x, fx.thread_idx.x
    if block == 0:
        target = fx.get_iter(A)
    elif thread % 2 == 0:
        target = fx.get_iter(B)
    else:
        target = fx.get_iter(C)
    target[thread] = X[thread] + target[thread]


@fly.jit
def copy(
    X: fx.Tensor[fx.Float32, 64],
    A: fx.Tensor[fx.Float32, 64],
    B: fx.Tensor[fx.Float32, 64],
    C: fx.Tensor[fx.Float32, 64],
):
    copy_kernel(X, A, B, C).launch(grid=2, block=64)


def test_all_tensors_that_a_pointer_may_be_of_are_written():
    x = np.arange(64, dtype=np.float32)
    a, b, c = (np.full(64, i, np.float32) for i in range(3))
    copy(x, a, b, c)
    even = np.arange(64) % 2 == 0
    assert (a == x).all()
    assert (b == np.where(even, x + 1, 1)).all()
    assert (c == np.where(even, 2, x + 2)).all()
    assert [one.access for one in copy.compile().program.parameters] == ["r", "rw", "rw", "rw"]
