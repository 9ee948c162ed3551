"""Types are classes: instances, families, properties, annotations; saturation of narrow floats."""

import copy
import pickle
import typing

import numpy as np
import pytest
from fly_common.errors import FlyError
from fly_trace.values.dtypes import EVERY

import fly
import fly.expr as fx

from .narrow_floats import FORMATS


def test_classes() -> None:
    for dtype in EVERY.values():
        assert isinstance(dtype, type)
        assert isinstance(dtype, fx.DType)
        assert issubclass(dtype, fx.Numeric)
        assert issubclass(dtype, fx.Integer) is dtype.is_integer
        assert issubclass(dtype, fx.Float) is dtype.is_float
        assert getattr(fx, dtype.title) is dtype
        assert pickle.loads(pickle.dumps(dtype)) is dtype
        assert copy.deepcopy(dtype) is dtype
        assert repr(dtype) == f"fx.{dtype.title}"
    assert fx.Float32 | None == typing.Optional[fx.Float32]  # noqa: UP045


def test_properties() -> None:
    widths = {"i4": 4, "bool": 1, "u128": 128, "bf16": 16, "f8E4M3FN": 8}
    for name, width in widths.items():
        assert EVERY[name].width == width
    assert (fx.i32.is_signed, fx.u32.is_signed, fx.f32.is_signed) == (True, False, True)
    assert fx.Index is fx.i64 is fx.Int64
    assert fx.f16 is fx.Float16


def test_instances() -> None:
    one = fx.Float32(1)
    assert isinstance(one, fx.Float32)
    assert isinstance(one, fx.Float)
    assert isinstance(one, fx.Numeric)
    assert not isinstance(one, fx.Float16)
    assert not isinstance(one, fx.Integer)
    assert not isinstance(1.0, fx.Float32)
    assert not isinstance(np.zeros(2, np.float32), fx.Float)


@fly.kernel
def kinds_kernel(A: fx.Tensor, B: fx.Tensor, n: fx.i32):
    i = fx.thread_idx.x
    for T in (A, B):
        x = T[i]
        match x:
            case fx.Integer():
                T[i] = x // 2
            case fx.f32():
                T[i] = x / 2
    if isinstance(n, fx.Int32) and not isinstance(A, fx.Int32):
        A[i] = A[i] + n


@fly.jit
def kinds(A: fx.Tensor[fx.i32, 4], B: fx.Tensor[fx.f32, 4], n: fx.i32):
    kinds_kernel(A, B, n).launch(grid=1, block=4)


def test_in_a_kernel() -> None:
    A, B = np.arange(4, dtype=np.int32), np.arange(4, dtype=np.float32)
    kinds(A, B, 10)
    assert A.tolist() == [10, 10, 11, 11]
    assert B.tolist() == [0, 0.5, 1, 1.5]


@fly.kernel
def narrow_kernel(X: fx.Tensor, Y: fx.Tensor, dtype: fx.Constexpr):
    i = fx.thread_idx.x
    view = fx.make_view(fx.recast_iter(dtype, fx.get_iter(Y)), fx.get_layout(Y))
    view[i, 0] = X[i].to(dtype, saturate=True)
    view[i, 1] = fx.Int32(X[i]).to(dtype, saturate=True)


@fly.jit
def narrow(X: fx.Tensor[fx.Float32, 64], Y: fx.Tensor[fx.Uint8, 64, 2], dtype: fx.Constexpr):
    narrow_kernel(X, Y, dtype).launch(grid=1, block=64)


@pytest.mark.parametrize(
    ("target", "name"),
    [
        *(("gfx942", name) for name in ("Float8E4M3FNUZ", "Float8E5M2FNUZ")),
        *(("gfx1201", name) for name in ("Float8E4M3FN", "Float8E5M2")),
        *(("sm_90a", name) for name in ("Float8E4M3FN", "Float8E5M2")),
    ],
)
def test_narrow_floats_saturate(target: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLY_TARGET", target)
    form = FORMATS[name]
    X = np.linspace(-1e5, 1e5, 64).astype(np.float32)
    X[:4] = [3e38, -3e38, 0.3, -1e-9]
    Y = np.zeros((64, 2), np.uint8)
    limited = X.copy()
    X[4:7] = [np.inf, -np.inf, np.nan]
    narrow(X, Y, getattr(fx, name))
    most = form.greatest
    limited[4:7] = [most, -most, 0]
    expected = form.values[form.nearest(np.clip(limited, -most, most))]
    found = form.values[Y[:, 0]]
    assert np.isnan(found[6])
    np.testing.assert_array_equal(np.delete(found, 6), np.delete(expected, 6))
    whole = form.values[form.nearest(np.clip(np.trunc(limited), -most, most))]
    np.testing.assert_array_equal(form.values[Y[7:, 1]], whole[7:])


@fly.kernel
def refused_kernel(X: fx.Tensor, how: fx.Constexpr, dtype: fx.Constexpr):
    X[0] = X[1].to(dtype, **how).to(fx.Float32)


@fly.jit
def refused(X: fx.Tensor[fx.Float32, 4], how: fx.Constexpr, dtype: fx.Constexpr):
    refused_kernel(X, how, dtype).launch(grid=1, block=1)


@pytest.mark.parametrize(
    ("how", "dtype", "said"),
    [
        ({"rounding": "stochastic"}, fx.f16, "can't round stochastically"),
        ({"rounding": "up"}, fx.f16, "rounding takes to_nearest_even, toward_zero, downward"),
        ({"rounding": 3}, fx.i32, "rounding takes to_nearest_even, .* not 3"),
        ({"rounding": "upward"}, fx.Float8E4M3FNUZ, "f8E4M3FNUZ rounds to nearest even only"),
        ({"saturate": True}, fx.Float8E8M0FNU, "f8E8M0FNU can't saturate"),
    ],
)
def test_conversions_that_are_refused(how: dict, dtype: fx.DType, said: str) -> None:
    with pytest.raises(FlyError, match=said):
        refused(np.zeros(4, np.float32), how, dtype)
