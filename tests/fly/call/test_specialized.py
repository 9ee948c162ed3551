"""`@fly.jit(specialize=…)`: code for the extents of calls, and general code beyond a bound."""

from __future__ import annotations

import numpy as np
import pytest
from fly_common.errors import InputError, UsageError

import fly
import fly.expr as fx
from fly.call.specialisation import VARIABLE, known_strides

Matrix = fx.Tensor[fx.Float32, "M", fx.sym_int32("N")]


@fly.kernel
def scale_kernel(X: fx.Tensor, Y: fx.Tensor, factor: fx.Float32):
    row = fx.block_idx.x
    for column in range(fx.thread_idx.x, X.shape[1], 64):
        Y[row, column] = X[row, column] * factor


def made(**options):
    """A function whose N is specialized, and what it was compiled for."""

    @fly.jit(specialize=fly.specialized("N", **options))
    def scale(X: Matrix, factor: fx.Float32):
        Y = fx.empty(X.shape, X.dtype)
        scale_kernel(X, Y, factor).launch(grid=X.shape[0], block=64)
        return Y

    compiled: list[str] = []
    built = scale._built

    def record(chosen, module, prefetch):
        compiled.append(kinds(module.decode()))
        return built(chosen, module, prefetch)

    object.__setattr__(scale, "_built", record)
    return scale, compiled


def kinds(module: str) -> str:
    """The type of X in a traced module."""
    return module.split("!fly.memref<f32, global, ", 1)[1].split(">", 1)[0] + ">"


def matrix(rows: int, columns: int) -> np.ndarray:
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)


def test_the_code_is_for_the_extents_of_a_call():
    scale, compiled = made()
    for rows in (3, 5, 4, 5):
        x = matrix(rows, 100)
        assert (scale(x, 2.0) == 2 * x).all()
    assert len(compiled) == 1
    assert "100" in compiled[0]


def test_general_code_takes_what_comes_after_the_bound_and_extents_of_0():
    scale, compiled = made(most=2)
    for columns in (0, 5, 6, 7, 8, 5, 6, 0, 7):
        for rows in (3, 2):
            x = matrix(rows, columns)
            assert (scale(x, 2.0) == 2 * x).all(), (rows, columns)
    assert len(compiled) == 3  # 5, 6, and any


def test_calls_of_another_layout_are_right():
    scale, _ = made()
    for columns in (4, 6):
        for rows in (4, 6, 1):
            wide = matrix(rows, 2 * columns)
            for x in (
                matrix(columns, rows).T,
                np.asfortranarray(matrix(rows, columns)),
                wide[:, ::2],
                wide[:, :columns],
                wide[:, ::-1][:, :columns],
                np.broadcast_to(wide[:1, :columns], (rows, columns)),
            ):
                for _ in range(3):  # the third call is native code's
                    assert (scale(x, 3.0) == 3 * x).all(), (x.shape, x.strides)


def test_native_code_for_one_extent_takes_no_other():
    scale, _ = made(most=2)
    for columns in (5, 6, 7, 8):
        x = matrix(3, columns)
        for _ in range(4):
            assert (scale(x, 2.0) == 2 * x).all()
    for columns in (8, 5, 7, 6):
        x = matrix(3, columns)
        assert (scale(x, 2.0) == 2 * x).all()


def test_other_extents_of_one_name_are_refused_as_without():
    @fly.jit(specialize=fly.specialized("N"))
    def add(X: Matrix, Z: Matrix):
        scale_kernel(X, Z, 1.0).launch(grid=X.shape[0], block=64)

    add(matrix(2, 3), matrix(2, 3))
    with pytest.raises(InputError, match="extent N is 3 in X, but 4 in Z"):
        add(matrix(2, 3), matrix(2, 4))
    with pytest.raises(InputError, match="Z"):
        add(matrix(2, 3), matrix(2, 3)[0])


def test_the_variable_and_other_targets_leave_general_code(monkeypatch):
    scale, compiled = made(targets=("gfx950",))
    x = matrix(2, 3)
    assert (scale(x, 2.0) == 2 * x).all()
    other, also = made()
    monkeypatch.setenv(VARIABLE, "0")
    assert (other(x, 2.0) == 2 * x).all()
    assert compiled == also
    monkeypatch.delenv(VARIABLE)
    assert (other(x, 2.0) == 2 * x).all()
    assert len(also) == 2
    assert "3" in also[1]


def test_a_prepared_call_and_code_without_a_call():
    scale, compiled = made()
    x = matrix(2, 3)
    again = scale.prepare(x, 2.0)
    assert (again() == 2 * x).all()
    assert scale.compile(x, 2.0) is scale.compile(matrix(7, 3), 2.0)
    assert len(compiled) == 1
    scale.compile(signature="X: f32[?,?]")
    assert len(compiled) == 2


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        ((), {}, "takes names of extents"),
        (("N M",), {}, "takes names of extents"),
        (("N",), {"most": 0}, "a number from 1 on"),
    ],
)
def test_what_makes_no_sense_is_refused(names, options, message):
    with pytest.raises(UsageError, match=message):
        fly.specialized(*names, **options)


def test_a_name_that_no_annotation_has_is_refused():
    @fly.jit(specialize=fly.specialized("N", "K"))
    def wrong(X: Matrix):
        pass

    with pytest.raises(UsageError, match="wrong has no extent K to specialize"):
        wrong(matrix(2, 3))
    with pytest.raises(UsageError, match=r"fly\.specialized"):
        fly.jit(specialize="N")


@pytest.mark.parametrize(
    ("array", "extents", "strides"),
    [
        (matrix(4, 6).T, (6, None), (1, 6)),
        (matrix(4, 6).T, (None, 4), (1, None)),
        (matrix(4, 6)[:, :3], (None, 3), (None, 1)),
        (matrix(4, 6)[:, ::2], (4, 3), (None, None)),
        (matrix(4, 6)[::-1], (4, 6), (None, 1)),
        (np.broadcast_to(matrix(1, 6), (4, 6)), (4, 6), (None, 1)),
        (matrix(4, 6).reshape(1, 4, 6).swapaxes(1, 2), (1, 6, 4), (None, 1, 6)),
        (matrix(12, 2).reshape(3, 4, 2).transpose(1, 0, 2), (4, None, 2), (2, 8, 1)),
        (matrix(12, 2).reshape(3, 4, 2).transpose(1, 0, 2), (None, 3, 2), (2, None, 1)),
    ],
)
def test_strides_that_follow_from_extents(array, extents, strides):
    assert known_strides(array, extents) == strides


@fly.kernel
def bounds_kernel(X: fx.Tensor, Y: fx.Tensor):
    found = (fx.max(X.shape[1], 4), fx.min(X.shape[1], 4, 9), fx.maxnumf(X.shape[1], -1))
    for i in fx.range_constexpr(3):
        Y[i] = found[i]


@pytest.mark.parametrize("columns", [3, 7])
def test_the_greatest_and_the_least_of_static_extents(columns):
    @fly.jit(specialize=fly.specialized("N", most=1))
    def bounds(X: Matrix):
        Y = fx.empty(3, fx.Int32)
        bounds_kernel(X, Y).launch(grid=1, block=1)
        return Y

    wanted = [max(columns, 4), min(columns, 4), columns]
    assert bounds(matrix(2, columns)).tolist() == wanted
    bounds(matrix(2, 1))
    other = 11 - columns  # general code
    assert bounds(matrix(2, other)).tolist() == [max(other, 4), min(other, 4), other]
