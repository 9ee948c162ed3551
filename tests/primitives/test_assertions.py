"""fx.assert_finite, assert_in_bounds and assert_uniform, on the emulator and on `cpu`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import Fault, InputError

import fly
import fly.expr as fx
from primitives import TARGETS, on, run

on_targets = pytest.mark.parametrize("target", TARGETS)


def line_of(words: str) -> int:
    """The only line of this file that ends with the comment `words`."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (found,) = (number for number, line in enumerate(lines, 1) if line.endswith(f"# {words}"))
    return found


def fault(body, *arrays, target, words) -> str:
    """The message of a launch that fails at the line with this comment."""
    with pytest.raises(Fault) as caught:
        run(body, *arrays, block=64, target=target)
    place = caught.value.place
    assert place is not None
    assert (Path(place.file).name, place.line) == (Path(__file__).name, line_of(words))
    return caught.value.message


@on_targets
@pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan])
def test_finite(target, wrong):
    def body(A):
        i = fx.thread_idx.x
        fx.assert_finite(A[i])  # one
        A[i] = 0

    run(body, np.linspace(-3e38, 3e38, 64).astype("f4"), block=64, target=target)
    x = np.zeros(64, "f4")
    x[7] = x[40] = wrong
    message = fault(body, x, target=target, words="one")
    assert f"{float(wrong)} is not finite" in message
    assert "thread (7, 0, 0)" in message


@on_targets
def test_finite_vectors_and_trees_show_their_first_wrong_number(target):
    def body(A):
        i = fx.thread_idx.x
        own = fx.Vector.from_elements([A[4 * i + place] for place in range(4)])
        fx.assert_finite((fx.Float32(1), {"own": own}))  # tree
        A[i] = 0

    x = np.zeros(256, "f4")
    run(body, x, block=64, target=target)
    x[4 * 9 + 2], x[4 * 9 + 3] = np.inf, np.nan
    assert "inf is not finite" in fault(body, x, target=target, words="tree")


@on_targets
@pytest.mark.parametrize(("wrong", "shown"), [(64, "64"), (-1, "-1")])
def test_bounds_of_a_tensor(target, wrong, shown):
    def body(A, B):
        i = A[fx.thread_idx.x]
        fx.assert_in_bounds(i, B)  # tensor
        B[i] = i

    x, y = np.arange(64, dtype="i4"), np.zeros(64, "i4")
    run(body, x, y, block=64, target=target)
    np.testing.assert_array_equal(y, x)
    x[5] = wrong
    message = fault(body, x, y, target=target, words="tensor")
    assert f"index of B is {shown}, and the extent is 64" in message
    assert "thread (5, 0, 0)" in message


def test_bounds_of_modes():
    def body(A, B):
        i = fx.thread_idx.x
        fx.assert_in_bounds((i // 16, A[i]), B)  # modes
        fx.assert_in_bounds(i, B)
        fx.assert_in_bounds((None, i % 16), B)
        fx.assert_in_bounds(A[i].to(fx.Uint64), fx.Int64(16))
        fx.assert_in_bounds((i, 3), (64, 4))
        B[i // 16, A[i]] = 1

    x, y = np.arange(64, dtype="i4") % 16, np.zeros((4, 16), "i4")
    run(body, x, y, block=64, target="gfx942")
    assert y.all()
    x[3] = 16
    message = fault(body, x, y, target="gfx942", words="modes")
    assert "index 1 of B is 16, and the extent is 16" in message


@on_targets
@pytest.mark.parametrize("dtype", ["i1", "i4", "f4", "f8"])
def test_uniform(target, dtype):
    def body(A):
        own = A[fx.thread_idx.x]
        fx.assert_uniform(own)  # lanes
        A[fx.thread_idx.x] = own

    x = np.full(64, 5, dtype)
    run(body, x, block=64, target=target)
    x[20] = 6
    message = fault(body, x, target=target, words="lanes")
    assert re.search(r"6(\.0)? differs from 5(\.0)? of lane 0", message)
    assert "thread (20, 0, 0)" in message


def test_uniform_compares_bits():
    def body(A):
        fx.assert_uniform(A[fx.thread_idx.x])  # bits
        A[fx.thread_idx.x] = 1

    x = np.full(64, np.nan, "f4")
    run(body, x.copy(), block=64, target="gfx942")
    x[:] = 0
    x[9] = -0.0
    assert "-0.0 differs from 0.0 of lane 0" in fault(body, x, target="gfx942", words="bits")


@pytest.mark.parametrize("is_function", [False, True])
def test_messages(is_function):
    def body(A):
        i = fx.thread_idx.x
        own = (lambda: f"row {i} diverges") if is_function else "diverges"
        fx.assert_finite(A[i], own)  # message
        A[i] = 0

    x = np.zeros(64, "f4")
    x[3] = np.inf
    assert ("row 3 diverges" if is_function else "diverges") in fault(
        body, x, target="gfx942", words="message"
    )


@fly.kernel
def checked_kernel(A: fx.Tensor):
    i = fx.thread_idx.x
    fx.assert_finite(A[i])
    fx.assert_uniform(A[i])
    fx.assert_in_bounds(i, A)
    A[i] = A[i] + 1.0


def checked(A: fx.Tensor[fx.Float32, 64]):
    checked_kernel(A).launch(grid=1, block=64)


@fly.kernel
def plain_kernel(A: fx.Tensor):
    i = fx.thread_idx.x
    A[i] = A[i] + 1.0


def plain(A: fx.Tensor[fx.Float32, 64]):
    plain_kernel(A).launch(grid=1, block=64)


def instructions(function, **options) -> list[str]:
    made = fly.jit(function, **options).compile(np.zeros(64, "f4"), target="gfx942")
    words = [line.split() for line in made.ir("asm").splitlines()]
    return [word[0] for word in words if word and re.match(r"[sv]_|global_", word[0])]


def test_without_asserts_nothing_is_left():
    assert instructions(checked, asserts=False) == instructions(plain)
    assert len(instructions(checked)) > len(instructions(plain)) + 10
    x = np.full(64, np.inf, "f4")
    with on("gfx942"):
        fly.jit(checked, asserts=False)(x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda A: fx.assert_finite(A[0]), "fx.assert_finite takes floats, not a dynamic i32"),
        (lambda A: fx.assert_finite(float("inf")), "AssertionError: inf is not finite"),
        (lambda A: fx.assert_in_bounds((0, 0), A), "2 indices are compared with 1 extents"),
        (lambda A: fx.assert_in_bounds(7, 7), "AssertionError: index is 7, and the extent is 7"),
        (lambda A: fx.assert_in_bounds(1.5, 7), "an index of fx.assert_in_bounds must be an int"),
        (lambda A: fx.assert_uniform("x"), "the value of fx.assert_uniform has to consist of num"),
    ],
)
def test_refusals(call, message):
    def body(A):
        call(A)
        A[0] = 1

    with pytest.raises(InputError, match=re.escape(message)):
        run(body, np.zeros(64, "i4"), block=64, target="gfx942")
