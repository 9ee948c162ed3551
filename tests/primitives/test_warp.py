"""`fx.warp` against NumPy, on waves of 64 and of 32 lanes."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fly.expr as fx
from primitives import TARGETS, numbers, run, wave_of

on_targets = pytest.mark.parametrize("target", TARGETS)
THREADS = 128
INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
FLOATS = ("f2", "f4", "f8")
widths = st.sampled_from([None, 1, 2, 4, 8, 16, 32])
seeds = st.integers(0, 2**32 - 1)
NUMPY = {
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
cases = st.one_of(
    st.tuples(st.sampled_from(INTEGERS), st.sampled_from([*NUMPY])),
    st.tuples(st.sampled_from(FLOATS), st.sampled_from(["add", "min", "max"])),
)
few = settings(max_examples=4, deadline=None, derandomize=True, database=None)


def groups(array: np.ndarray, width: int | None, target: str) -> np.ndarray:
    return array.reshape(-1, width or wave_of(target))


@on_targets
@few
@given(cases, widths, seeds)
def test_reduce(target, case, width, seed):
    dtype, op = case
    x = numbers(dtype, THREADS, seed)
    y = np.zeros_like(x)

    def body(A, B):
        B[fx.thread_idx.x] = fx.warp.reduce(A[fx.thread_idx.x], op, width=width)

    run(body, x, y, block=THREADS, target=target)
    given = groups(x, width, target)
    wanted = NUMPY[op].reduce(given, axis=1, dtype=x.dtype, keepdims=True)
    np.testing.assert_array_equal(groups(y, width, target), np.broadcast_to(wanted, given.shape))


@on_targets
@few
@given(cases, widths, seeds)
def test_scans(target, case, width, seed):
    dtype, op = case
    x = numbers(dtype, THREADS, seed)
    y, z, t = (np.zeros_like(x) for _ in range(3))

    def body(A, B, C, D):
        i = fx.thread_idx.x
        B[i], D[i] = fx.warp.inclusive_scan(A[i], op, width=width, total=True)
        C[i] = fx.warp.exclusive_scan(A[i], op, initial=3, width=width)

    run(body, x, y, z, t, block=THREADS, target=target)
    given = groups(x, width, target)
    upto = NUMPY[op].accumulate(given, axis=1, dtype=x.dtype)
    np.testing.assert_array_equal(groups(y, width, target), upto)
    np.testing.assert_array_equal(
        groups(t, width, target), np.broadcast_to(upto[:, -1:], upto.shape)
    )
    first = np.full((len(given), 1), 3, x.dtype)
    wanted = NUMPY[op].accumulate(np.hstack([first, given[:, :-1]]), axis=1, dtype=x.dtype)
    np.testing.assert_array_equal(groups(z, width, target), wanted)


class Affine(NamedTuple):
    """x → scale · x + shift: composing two is associative, but not commutative."""

    scale: fx.Int32
    shift: fx.Int32


def composed(a, b):
    return Affine(a.scale * b.scale, b.scale * a.shift + b.shift)


@on_targets
@pytest.mark.parametrize(("width", "valid"), [(None, None), (None, 5), (32, 31), (8, 1), (8, None)])
def test_functions_of_objects_keep_the_order_of_lanes(target, width, valid):
    x = np.random.default_rng(1).integers(-3, 4, (2, THREADS)).astype("i4")
    y, z = np.zeros_like(x), np.zeros_like(x)

    def body(A, B, C):
        i = fx.thread_idx.x
        own = Affine(A[0, i], A[1, i])
        whole = fx.warp.reduce(own, composed, width=width, valid=valid)
        upto = fx.warp.inclusive_scan(own, composed, width=width)
        before = fx.warp.exclusive_scan(own, composed, initial=Affine(1, 0), width=width)
        assert type(whole) is Affine
        B[0, i], B[1, i] = whole
        assert upto.shift == before.shift * own.scale + own.shift
        C[0, i], C[1, i] = upto

    run(body, x, y, z, block=THREADS, target=target)
    lanes = width or wave_of(target)
    with np.errstate(over="ignore"):
        for first in range(0, THREADS, lanes):
            found = (np.int32(1), np.int32(0))
            for lane in range(lanes):
                scale, shift = x[:, first + lane]
                found = (found[0] * scale, scale * found[1] + shift)
                np.testing.assert_array_equal(z[:, first + lane], found)
                if lane + 1 == (valid or lanes):
                    for place in range(first, first + lanes):
                        np.testing.assert_array_equal(y[:, place], found)


@on_targets
def test_a_float_sum_has_the_same_bits_in_all_lanes(target):
    x = np.random.default_rng(2).standard_normal(THREADS, dtype=np.float32) * 1e3
    y = np.zeros_like(x)

    def body(A, B):
        B[fx.thread_idx.x] = fx.warp.reduce(A[fx.thread_idx.x])

    run(body, x, y, block=THREADS, target=target)
    found = groups(y, None, target)
    assert (found == found[:, :1]).all()
    exact = groups(x, None, target).astype("f8").sum(1)
    np.testing.assert_allclose(found[:, 0], exact, rtol=1e-5, atol=1e-2)


@on_targets
@few
@given(st.sampled_from([*INTEGERS, *FLOATS]), widths, st.integers(0, 70), seeds)
@example("f4", None, 32, 1)
@example("i8", None, 65, 1)
def test_shuffles(target, dtype, width, by, seed):
    x = numbers(dtype, THREADS, seed)
    outputs = np.zeros((4, THREADS), x.dtype)

    def body(A, B):
        i = fx.thread_idx.x
        B[0, i] = fx.warp.shuffle(A[i], by, width)
        B[1, i] = fx.warp.shuffle_up(A[i], by, width)
        B[2, i] = fx.warp.shuffle_down(A[i], by, width)
        B[3, i] = fx.warp.shuffle_xor(A[i], by, width)

    run(body, x, outputs, block=THREADS, target=target)
    lanes = width or wave_of(target)
    lane = np.arange(THREADS) % lanes
    base = np.arange(THREADS) - lane
    for row, source in enumerate([lane * 0 + by % lanes, lane - by, lane + by, lane ^ by]):
        source = np.where((source >= 0) & (source < lanes), source, lane)
        np.testing.assert_array_equal(outputs[row], x[base + source])


@on_targets
def test_shuffles_of_vectors_and_trees(target):
    x = np.arange(4 * THREADS, dtype="i2")
    y = np.zeros_like(x)

    def body(A, B):
        i = fx.thread_idx.x
        pair = fx.Vector.from_elements([A[4 * i], A[4 * i + 1]])
        tree = {"pair": pair, "rest": (A[4 * i + 2], [A[4 * i + 3]])}
        moved = fx.warp.broadcast(tree, 3, width=8)
        B[4 * i], B[4 * i + 1] = moved["pair"][0], moved["pair"][1]
        B[4 * i + 2], B[4 * i + 3] = moved["rest"][0], moved["rest"][1][0]

    run(body, x, y, block=THREADS, target=target)
    wanted = np.repeat(x.reshape(-1, 8, 4)[:, 3:4], 8, axis=1)
    np.testing.assert_array_equal(y, wanted.ravel())


@on_targets
@pytest.mark.parametrize("least", [0, 40, 127, 200])
def test_votes(target, least):
    x = np.random.default_rng(3).integers(0, 128, THREADS).astype("i4")
    flags, sets = np.zeros((3, THREADS), "i4"), np.zeros(THREADS, "u8")

    def body(A, B, C):
        i = fx.thread_idx.x
        holds = A[i] >= least
        B[0, i] = fx.warp.any(holds).to(fx.Int32)
        B[1, i] = fx.warp.all(holds).to(fx.Int32)
        B[2, i] = fx.warp.count(holds)
        C[i] = fx.warp.ballot(holds)

    run(body, x, flags, sets, block=THREADS, target=target)
    holds = groups(x >= least, None, target)
    lanes = holds.shape[1]
    rows = [holds.any(1), holds.all(1), holds.sum(1)]
    np.testing.assert_array_equal(flags, [np.repeat(row, lanes) for row in rows])
    bits = (holds.astype("u8") << np.arange(lanes, dtype="u8")).sum(1, dtype="u8")
    np.testing.assert_array_equal(sets, np.repeat(bits, lanes))


@on_targets
@pytest.mark.parametrize(("dtype", "bits"), [("u1", None), ("i8", None), ("f4", None), ("i4", 3)])
def test_match(target, dtype, bits):
    x = (numbers(dtype, THREADS, 4) % 5).astype(dtype)
    sets, same = np.zeros(THREADS, "u8"), np.zeros(THREADS, "i4")

    def body(A, B, C):
        i = fx.thread_idx.x
        B[i] = fx.warp.match_any(A[i], bits=bits)
        C[i] = fx.warp.match_all((A[i] * 0, 7)).to(fx.Int32) + fx.warp.match_all(i) * 2

    run(body, x, sets, same, block=THREADS, target=target)
    values = groups(x if bits is None else x & (1 << bits) - 1, None, target)
    lanes = values.shape[1]
    equal = values[:, :, None] == values[:, None, :]
    wanted = (equal.astype("u8") << np.arange(lanes, dtype="u8")).sum(2, dtype="u8")
    np.testing.assert_array_equal(sets, wanted.ravel())
    np.testing.assert_array_equal(same, 1)


@on_targets
@settings(few, max_examples=3)
@given(
    st.sampled_from([*INTEGERS, *FLOATS]),
    st.sampled_from([None, 1, 8, 32]),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
    seeds,
)
def test_sort(target, dtype, width, items, descending, seed):
    lanes = width or wave_of(target)
    x = special(numbers(dtype, 64 * items, seed))
    y = np.zeros_like(x)

    def body(A, B):
        first = fx.thread_idx.x * items
        keys = fx.warp.sort(
            [A[first + i] for i in range(items)], descending=descending, width=width
        )
        for i in fx.range_constexpr(items):
            B[first + i] = keys[i]

    run(body, x, y, block=64, target=target)
    wanted = np.sort(x.reshape(-1, lanes * items), axis=1)
    wanted = wanted[:, ::-1] if descending else wanted
    np.testing.assert_array_equal(y, wanted.ravel())


def special(x: np.ndarray) -> np.ndarray:
    """The array with some zeros and NaNs of both signs, if it has floats."""
    if x.dtype.kind == "f":
        x[5], x[6], x[7], x[9] = 0.0, -0.0, np.nan, -np.inf
        x[8] = np.copysign(np.nan, -1)
    return x


@on_targets
@pytest.mark.parametrize("items", [1, 2])
def test_sort_of_pairs_is_stable(target, items):
    x = np.random.default_rng(5).integers(0, 9, 64 * items).astype("u2")
    y, z = np.zeros_like(x), np.zeros((2, x.size), "i4")

    def body(A, B, C):
        first = fx.thread_idx.x * items
        places = [first + i for i in range(items)]
        values = [fx.Vector.from_elements([place, -place]) for place in places]
        if items == 1:
            key, value = fx.warp.sort(A[first], values[0])
            keys, values = [key], [value]
        else:
            keys, values = fx.warp.sort([A[place] for place in places], values)
        for i in fx.range_constexpr(items):
            B[first + i] = keys[i]
            C[0, first + i], C[1, first + i] = values[i][0], values[i][1]

    run(body, x, y, z, block=64, target=target)
    given = x.reshape(-1, wave_of(target) * items)
    order = np.argsort(given, axis=1, kind="stable")
    np.testing.assert_array_equal(y, np.take_along_axis(given, order, 1).ravel())
    places = (order + np.arange(len(given))[:, None] * given.shape[1]).ravel()
    np.testing.assert_array_equal(z, [places, -places])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: fx.warp.reduce(x, "sub"), "fx.warp.reduce has no operation 'sub': it has add"),
        (lambda x: fx.warp.reduce(x, 3), "the operation of fx.warp.reduce is a name or a function"),
        (lambda x: fx.warp.reduce(x, width=64), "the width of fx.warp.reduce is a power of two up"),
        (lambda x: fx.warp.reduce(x * 0.5, "xor"), "fx.warp.reduce can't combine a dynamic f32 by"),
        (lambda x: fx.warp.exclusive_scan(x, composed), "fx.warp.exclusive_scan needs a first"),
        (lambda x: fx.warp.ballot(x), "fx.warp.ballot takes a condition, not "),
        (lambda x: fx.warp.shuffle("a", 1), "the value of fx.warp.shuffle has to consist of"),
        (lambda x: fx.warp.sort([x, x, x]), "fx.warp.sort takes a power of two of keys"),
        (
            lambda x: fx.warp.match_any(x, bits=0),
            "the bits of fx.warp.match_any must be a positive",
        ),
    ],
)
def test_refusals_name_the_users_line(call, message):
    x = np.zeros(64, "i4")

    def body(A):
        A[fx.thread_idx.x] = call(A[fx.thread_idx.x])

    with pytest.raises(Exception, match=f"test_warp.py:[0-9]+:[0-9]+: {message}"):
        run(body, x, block=64, target="gfx942")


def test_operations_have_identities():
    from fly_trace.primitives.waves.operations import neutral
    from fly_trace.values.dtypes import DTYPES

    for dtype in DTYPES.values():
        for op, function in NUMPY.items():
            if dtype.is_float or dtype.is_bool or dtype.is_narrow or dtype.bits > 64:
                continue
            kind = np.dtype(f"{'u' if dtype.kind == 'uint' else 'i'}{dtype.bytes}").type
            for value in (dtype.range[0], 5, dtype.range[1]):
                assert function(kind(value), kind(neutral(op, dtype))) == value
    found = functools.reduce(np.maximum, [np.float32(neutral("max", fx.Float32)), np.float32(-9)])
    assert found == -9
