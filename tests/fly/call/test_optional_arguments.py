"""Parameters annotated `T | None`: None is known while tracing, an array is checked as T says."""

from typing import Optional

import numpy as np
import pytest
from fly_common.errors import FlyError

import fly
import fly.expr as fx

X = np.arange(5, dtype=np.float32)


@fly.kernel
def kernel(
    A: fx.Tensor,
    bias: fx.Tensor[fx.Float32, "n"] | None,  # noqa: F821
    weight: Optional[fx.Tensor],  # noqa: UP045
    offset: None | fx.Float32,  # noqa: RUF036
    out: fx.Tensor,
):
    i = fx.thread_idx.x
    if i < A.shape[0]:
        value = A[i]
        if bias is not None:
            value += bias[i]
        if weight is not None:
            value *= weight[i]
        if offset is not None:
            value += offset
        out[i] = value


@fly.jit
def affine(
    A: fx.Tensor[fx.Float32, "n"],  # noqa: F821
    bias: fx.Tensor[fx.Float32, "n"] | None = None,  # noqa: F821
    weight: Optional[fx.Tensor] = None,  # noqa: UP045
    offset: None | fx.Float32 = None,  # noqa: RUF036
):
    out = fx.empty_like(A)
    kernel(A, bias, weight, offset, out).launch(grid=1, block=64)
    return out


@fly.jit
def required(A: fx.Tensor[fx.Float32, "n"], bias: None | fx.Tensor[fx.Float32, "n"]):  # noqa: F821, RUF036
    out = fx.empty_like(A)
    kernel(A, bias, None, None, out).launch(grid=1, block=64)
    return out


def test_none_and_arrays_in_turn():
    """Three times: the later calls are those of known kinds, and native."""
    for _ in range(3):
        np.testing.assert_array_equal(affine(X), X)
        np.testing.assert_array_equal(affine(X, X), 2 * X)
        np.testing.assert_array_equal(affine(X, None, X), X * X)
        np.testing.assert_array_equal(affine(X, offset=2), X + 2)
        np.testing.assert_array_equal(affine(X, X, X.astype(np.int32), 1.5), 2 * X * X + 1.5)
        np.testing.assert_array_equal(affine(X, bias=X[::-1]), X + X[::-1])
        np.testing.assert_array_equal(required(X, X), 2 * X)
        np.testing.assert_array_equal(required(X, None), X)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: affine(X, X[:3]), "extent n is 5 in A, but 3 in bias"),
        (lambda: affine(X, X.astype(np.int32)), "bias must be f32, but the array is i32"),
        (lambda: affine(X, X[None]), "bias must have 1 dimensions, but the array has 2"),
        (lambda: affine(X, 2.0), "argument bias of affine must be an array, not float"),
        (lambda: affine(X, weight=3), "argument weight of affine must be an array, not int"),
        (lambda: affine(X, offset=1e99), r"offset=1e\+99 does not fit in f32"),
        (lambda: affine(X, offset="x"), "offset must be one f32 number, not 'x'"),
        (lambda: affine(X, offset=X), r"pass a number: offset\.item\(\)"),
        (lambda: affine(None), "argument A of affine must be an array, not NoneType"),
        (lambda: required(X), r"required needs bias, f32\[n\]\n  its parameters are A, bias"),
    ],
)
def test_refusals(call, said: str):
    with pytest.raises(FlyError, match=said):
        call()


@fly.jit
def untyped(pair, A: fx.Tensor):
    kernel(A, None, None, None, A).launch(grid=1, block=64)


@pytest.mark.parametrize("pair", [(X, X), [X], {"a": X}])
def test_a_container_of_arrays(pair):
    with pytest.raises(FlyError, match="pass each array as an argument of its own"):
        untyped(pair, X)
