"""`is_contiguous` of a kernel's tensors: what is known of an argument while a kernel is traced."""

# ruff: noqa: F821  (extents are named by strings)

import numpy as np
import pytest

import fly
import fly.expr as fx

CONTIGUOUS = 1000  # what the kernel adds to elements of such a tensor


@fly.kernel
def copy_kernel(A: fx.Tensor, B: fx.Tensor):
    i, j = fx.block_idx.x, fx.thread_idx.x
    row = fx.get_iter(A) + i * A.shape[1] if A.is_contiguous else fx.get_iter(A[i, None])
    if j < A.shape[1]:
        B[i, j] = fx.make_view(row, fx.make_layout(A.shape[1], A.stride[1]))[j] + (
            CONTIGUOUS if A.is_contiguous else 0
        )


@fly.jit
def copy(A: fx.Tensor[fx.Int32, "m", "n"], B: fx.Tensor[fx.Int32, "m", "n"]):
    copy_kernel(A, B).launch(grid=A.shape[0], block=32)


@fly.jit
def copy_both(
    A: fx.Tensor[fx.Int32, "m", "n"],
    B: fx.Tensor[fx.Int32, "m", "n"],
    X: fx.Tensor[fx.Int32, "m", "n"],
    Y: fx.Tensor[fx.Int32, "m", "n"],
):
    copy_kernel(A, X).launch(grid=A.shape[0], block=32)
    copy_kernel(B, Y).launch(grid=B.shape[0], block=32)


@pytest.mark.parametrize("shape", [(3, 5), (1, 7), (4, 1)])
def test_contiguous(shape):
    a = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    b = np.zeros_like(a)
    copy(a, b)
    assert (a + CONTIGUOUS == b).all()


@pytest.mark.parametrize(
    "part", [np.s_[:, :5], np.s_[::2, ::2], np.s_[::-1]], ids=["rows", "steps", "backward"]
)
def test_a_part_is_not(part):
    a = np.arange(54, dtype=np.int32).reshape(6, 9)[part]
    b = np.zeros(a.shape, np.int32)
    copy(a, b)
    assert (a == b).all()


def test_a_kernel_is_traced_for_each():
    a = np.arange(54, dtype=np.int32).reshape(6, 9)
    part = np.arange(108, dtype=np.int32).reshape(6, 18)[:, :9]
    x, y = np.zeros_like(a), np.zeros_like(a)
    copy_both(a, part, x, y)
    assert (a + CONTIGUOUS == x).all()
    assert (part == y).all()


@fly.jit
def copy_twice(A: fx.Tensor[fx.Int32, "m", "n"]):
    B, C = fx.empty_like(A), fx.empty_like(A)
    copy_kernel(A, B).launch(grid=A.shape[0], block=32)
    copy_kernel(B, C).launch(grid=A.shape[0], block=32)
    return C


def test_what_the_program_allocates_is_contiguous():
    a = np.arange(15, dtype=np.int32).reshape(3, 5)
    assert (a + 2 * CONTIGUOUS == copy_twice(a)).all()
    assert list(copy_twice.compile(a).kernels) == ["copy_kernel"]
