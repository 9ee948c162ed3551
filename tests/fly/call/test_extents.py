"""Extents of which something is known: read, written, checked at launch, part of what is cached."""

from __future__ import annotations

import numpy as np
import pytest
from fly_common.errors import FlyError
from fly_dialect.layouts.integers import Int
from fly_trace.signatures.extents import Symbol, extent_text, parse_extent

import fly
import fly.expr as fx
from fly.dependencies.hashing import dependency_hash

N = fx.sym_int32("N", divisibility=4)


@pytest.mark.parametrize(
    ("text", "extent"),
    [
        ("7", 7),
        ("N", "N"),
        ("?", None),
        ("?{i32}", Int(None)),
        ("?{div=8}", Int(None, 64, 8)),
        ("N{i32}", Symbol("N", Int(None))),
        ("N{i32 div=4}", N),
        ("N{div=4}", fx.sym_int64("N", divisibility=4)),
    ],
)
def test_texts(text: str, extent) -> None:
    assert parse_extent(text) == extent
    assert extent_text(extent) == text


def test_what_says_nothing_more_is_the_plain_extent() -> None:
    assert (fx.sym_int64("N"), fx.sym_int64(), parse_extent("N{i64}")) == ("N", None, "N")


@pytest.mark.parametrize("text", ["N M", "N{i16}", "{i32}", "-1", "N{div=0}", ""])
def test_no_extent(text: str) -> None:
    with pytest.raises(ValueError, match="neither a number nor a symbol"):
        parse_extent(text)


def test_no_name() -> None:
    with pytest.raises(ValueError, match="a symbol must be a name, not '4'"):
        fx.sym_int32("4")


@fly.kernel
def double_kernel(X: fx.Tensor, Y: fx.Tensor[fx.Float32, fx.sym_int32(divisibility=2)]):
    for i in range(fx.thread_idx.x, X.shape[0], 64):
        Y[i] = X[i] * 2.0


@fly.jit
def double(X: fx.Tensor[fx.Float32, N], Y: fx.Tensor[fx.Float32, N]):
    double_kernel(X, Y).launch(grid=1, block=64)


@fly.jit
def unsaid(X: fx.Tensor[fx.Float32, N], Y: fx.Tensor[fx.Float32, None]):
    double_kernel(X, Y).launch(grid=1, block=64)


def test_launches_check_what_is_said() -> None:
    x, y = np.arange(100, dtype=np.float32), np.empty(100, np.float32)
    double(x, y)
    np.testing.assert_array_equal(y, 2 * x)
    with pytest.raises(FlyError, match="multiple of 4"):
        double(x[:98], y[:98])
    with pytest.raises(FlyError, match="N"):
        double(x, y[:96])


def test_a_kernel_that_asks_for_more_than_its_caller_knows() -> None:
    with pytest.raises(FlyError, match=r"Y of double_kernel is f32\[\?\{i32 div=2\}\]"):
        unsaid.compile()


def test_they_are_part_of_what_is_cached(monkeypatch) -> None:
    before = dependency_hash(double.function)
    assert before.digest is not None
    assert before.holds()
    monkeypatch.setitem(globals(), "N", fx.sym_int32("N"))
    assert dependency_hash(double.function).digest not in (None, before.digest)
