"""bf16 arrays of the package ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import fly
import fly.expr as fx
from fly.call.arrays.array_kinds import ML_DTYPES
from fly.call.arrays.views import view


@fly.kernel
def doubled_kernel(X: fx.Tensor, Y: fx.Tensor):
    Y[fx.thread_idx.x] = X[fx.thread_idx.x] * 2


@fly.jit
def doubled(X: fx.Tensor):
    Y = fx.empty_like(X)
    doubled_kernel(X, Y).launch(grid=1, block=X.shape[0])
    return Y, fx.empty(0, fx.Float8E4M3FNUZ), fx.empty(1, fx.Float32)


def test_bf16_travels_as_its_bits():
    array = np.ones(3, ml_dtypes.bfloat16)
    seen = view(array, "A")
    assert seen.dtype == "bf16"
    assert seen.data.tolist() == [0x3F80] * 3
    assert np.shares_memory(seen.data, array)


def test_results_are_of_the_types_of_arguments():
    given = np.arange(4).astype(ml_dtypes.bfloat16)
    for _ in range(2):
        whole, eight, wide = doubled(given)
        assert whole.dtype == ml_dtypes.bfloat16
        assert whole.tolist() == [0, 2, 4, 6]
        assert (eight.dtype, wide.dtype) == (ml_dtypes.float8_e4m3fnuz, np.float32)
    assert [one.dtype for one in doubled(given.astype("f4"))[:2]] == [np.float32, np.uint8]


def test_parts_of_results():
    whole, memory = ML_DTYPES.empty("bf16", (2, 3), (4, 1), 8)
    part = ML_DTYPES.strided(whole, (2,), (4,), 1)
    memory[:] = np.arange(8).astype(ml_dtypes.bfloat16).view("u2")
    assert part.dtype == ml_dtypes.bfloat16
    assert part.tolist() == [1, 5]
    assert ML_DTYPES.memory(part).dtype == np.uint16
