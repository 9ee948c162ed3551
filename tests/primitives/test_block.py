"""`fx.block` against NumPy, in blocks of many sizes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fly
import fly.expr as fx
from primitives import TARGETS, numbers, on, run
from primitives.test_warp import FLOATS, INTEGERS, NUMPY, cases, few, special

on_targets = pytest.mark.parametrize("target", TARGETS)
# One wave and several, whole and not, in one dimension and in three.
blocks = st.sampled_from([1, 32, 64, 256, 512, 96, 37, 100, (8, 16, 1), (3, 5, 7), (16, 2, 3)])
seeds = st.integers(0, 2**32 - 1)


def threads_of(block) -> int:
    return int(np.prod(block))


@on_targets
@few
@given(cases, blocks, st.integers(1, 3), seeds)
def test_reduce(target, case, block, items, seed):
    dtype, op = case
    x = numbers(dtype, items * threads_of(block), seed)
    y = np.zeros(threads_of(block), x.dtype)

    def body(A, B):
        i = fx.block.thread_rank()
        B[i] = fx.block.reduce([A[i * items + j] for j in range(items)], op)

    run(body, x, y, block=block, target=target)
    np.testing.assert_array_equal(y, NUMPY[op].reduce(x, dtype=x.dtype))


@on_targets
@few
@given(cases, blocks, st.integers(1, 3), seeds)
def test_scans(target, case, block, items, seed):
    dtype, op = case
    x = numbers(dtype, items * threads_of(block), seed)
    y, z, t = np.zeros_like(x), np.zeros_like(x), np.zeros(threads_of(block), x.dtype)

    def body(A, B, C, D):
        i = fx.block.thread_rank()
        own = [A[i * items + j] for j in range(items)]
        upto, D[i] = fx.block.inclusive_scan(own, op, total=True)
        before = fx.block.exclusive_scan(own, op, initial=3)
        for j in fx.range_constexpr(items):
            B[i * items + j], C[i * items + j] = upto[j], before[j]

    run(body, x, y, z, t, block=block, target=target)
    upto = NUMPY[op].accumulate(x, dtype=x.dtype)
    np.testing.assert_array_equal(y, upto)
    np.testing.assert_array_equal(t, upto[-1])
    first = np.asarray([3], x.dtype)
    wanted = NUMPY[op].accumulate(np.hstack([first, x[:-1]]), dtype=x.dtype)
    np.testing.assert_array_equal(z, wanted)


class Affine(NamedTuple):
    """x → scale · x + shift: composing two is associative, but not commutative."""

    scale: fx.Int32
    shift: fx.Int32


def composed(a, b):
    return Affine(a.scale * b.scale, b.scale * a.shift + b.shift)


@on_targets
@pytest.mark.parametrize("block", [17, 64, 192, (5, 20, 1)])
def test_functions_of_objects_keep_the_order_of_threads(target, block):
    count = threads_of(block)
    x = np.random.default_rng(1).integers(-3, 4, (2, count)).astype("i4")
    y, z, t = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)

    def body(A, B, C, D):
        i = fx.block.thread_rank()
        own = Affine(A[0, i], A[1, i])
        B[0, i], B[1, i] = fx.block.reduce(own, composed)
        C[0, i], C[1, i] = fx.block.inclusive_scan(own, composed)
        prefixed = fx.block.exclusive_scan(own, composed, prefix=lambda total: total)
        D[0, i], D[1, i] = prefixed

    run(body, x, y, z, t, block=block, target=target)
    with np.errstate(over="ignore"):
        found, upto = (np.int32(1), np.int32(0)), []
        for scale, shift in x.T:
            found = (found[0] * scale, scale * found[1] + shift)
            upto.append(found)
        for scale, shift in np.vstack([np.int32([[1, 0]]), np.asarray(upto[:-1])]):
            upto.append((found[0] * scale, scale * found[1] + shift))
    np.testing.assert_array_equal(y.T, np.broadcast_to(np.asarray(upto[count - 1]), (count, 2)))
    np.testing.assert_array_equal(z.T, upto[:count])
    np.testing.assert_array_equal(t.T, upto[count:])


@on_targets
def test_primitives_in_a_loop_share_memory(target):
    x = np.random.default_rng(6).integers(-9, 9, (12, 96)).astype("i4")
    y = np.zeros(12, "i4")

    def body(A, B):
        i = fx.block.thread_rank()
        for row in range(A.shape[0]):
            own = A[row, i]
            total = fx.block.reduce(own)
            most = fx.block.reduce(own, "max")
            before = fx.block.exclusive_scan(own)
            if i == 95:
                B[row] = total + 1000 * most + 100000 * (before + own - total)

    run(body, x, y, block=96, target=target)
    np.testing.assert_array_equal(y, x.sum(1) + 1000 * x.max(1))


class Held:
    """What a helper changes in a branch, which is then traced twice."""

    def __init__(self, total):
        self.total = total


def sum_up(held, value):
    held.total = fx.block.reduce(value)


def test_a_branch_that_is_traced_twice():
    x = np.arange(128, dtype="i4")
    y, z = np.zeros(2, "i4"), np.array([1, 0], "i4")

    def body(A, B, C):
        own, held = A[fx.thread_idx.x], Held(fx.Int32(5))
        if C[0] > 0:
            sum_up(held, own)
        B[0] = fx.block.reduce(own, "max") + held.total
        B[1] = fx.block.reduce(own + 1)

    run(body, x, y, z, block=128, target="gfx942")
    np.testing.assert_array_equal(y, [127 + x.sum(), (x + 1).sum()])


@on_targets
@settings(few, max_examples=3)
@given(
    st.sampled_from([*INTEGERS, *FLOATS]),
    st.sampled_from([1, 37, 64, (3, 5, 7), 256]),
    st.integers(1, 4),
    st.booleans(),
    seeds,
)
def test_sort(target, dtype, block, items, descending, seed):
    count = items * threads_of(block)
    x = numbers(dtype, count, seed)
    x = special(x) if count > 9 else x
    y = np.zeros_like(x)

    def body(A, B):
        own = fx.block.load(A, items)
        fx.block.store(B, fx.block.sort(own, descending=descending))

    run(body, x, y, block=block, target=target)
    wanted = np.sort(x)
    np.testing.assert_array_equal(y, wanted[::-1] if descending else wanted)


# By a network: one wave of each target, several, a part of one, and three dimensions.
@on_targets
@settings(few, max_examples=3)
@given(
    st.sampled_from(["u4", "i4", "f4", "i8", "f8", "i2"]),
    st.sampled_from([1, 8, 32, 64, 128, 256, (4, 8, 4)]),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
    st.booleans(),
    seeds,
)
def test_sort_of_a_power_of_two_of_keys(target, dtype, block, items, descending, ragged, seed):
    count = items * threads_of(block)
    valid = max(1, count - seed % count) if ragged else count
    x = numbers(dtype, count, seed)
    x = special(x) if count > 9 else x
    y = np.zeros_like(x)

    def body(A, B):
        own = fx.block.load(A, items)
        found = fx.block.sort(own, descending=descending, valid=valid if ragged else None)
        fx.block.store(B, found, valid=valid)

    run(body, x, y, block=block, target=target)
    wanted = np.sort(x[:valid])
    np.testing.assert_array_equal(y[:valid], wanted[::-1] if descending else wanted)
    assert not y[valid:].any()


@pytest.mark.heavy
@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("block", [512, 1024])
def test_the_largest_blocks(target, block):
    x = numbers("f4", 2 * block, 12)
    y, z = np.zeros_like(x), np.zeros((2, block), "f4")

    def body(A, B, C):
        own = fx.block.load(A, 2)
        fx.block.store(B, fx.block.sort(own))
        C[0, fx.thread_idx.x] = fx.block.reduce(own)
        C[1, fx.thread_idx.x] = fx.block.reduce(own, "max")

    run(body, x, y, z, block=block, target=target)
    np.testing.assert_array_equal(y, np.sort(x))
    np.testing.assert_array_equal(z, np.repeat([[x.sum()], [x.max()]], block, 1))


@on_targets
@pytest.mark.parametrize(("block", "items", "count"), [(64, 1, 50), (96, 3, 200), (100, 2, 200)])
def test_sort_of_pairs_is_stable_and_takes_ragged_data(target, block, items, count):
    x = np.random.default_rng(7).integers(0, 9, count).astype("u2")
    x[3] = x[-1] = 0xFFFF  # as great as what stands for items beyond the last
    y, z = np.zeros_like(x), np.zeros((2, count), "i4")

    def body(A, B, C):
        keys = fx.block.load(A, items, valid=count)
        first = fx.block.thread_rank() * items
        values = [fx.Vector.from_elements([first + i, -first - i]) for i in range(items)]
        keys, values = fx.block.sort(keys, values, valid=count)
        fx.block.store(B, keys, valid=count)
        for i in fx.range_constexpr(items):
            if first + i < count:
                C[0, first + i], C[1, first + i] = values[i][0], values[i][1]

    run(body, x, y, z, block=block, target=target)
    order = np.argsort(x, kind="stable")
    np.testing.assert_array_equal(y, x[order])
    np.testing.assert_array_equal(z, [order, -order])


@on_targets
@pytest.mark.parametrize(("begin", "end"), [(0, 3), (5, 11), (28, 32)])
def test_sort_by_some_bits(target, begin, end):
    x = numbers("u4", 128, 8)
    y = np.zeros_like(x)

    def body(A, B):
        B[fx.thread_idx.x] = fx.block.sort(A[fx.thread_idx.x], begin_bit=begin, end_bit=end)

    run(body, x, y, block=128, target=target)
    order = np.argsort(x >> begin & (1 << end - begin) - 1, kind="stable")
    np.testing.assert_array_equal(y, x[order])


@on_targets
@settings(few, max_examples=3)
@given(
    st.sampled_from(["i2", "u4", "f4", "i8", "f8"]),
    st.sampled_from([64, 37, (3, 5, 7), 256]),
    st.sampled_from([1, 2, 3, 11]),
    st.integers(1, 5),
    st.booleans(),
    seeds,
)
def test_top_k(target, dtype, block, items, k, largest, seed):
    threads = threads_of(block)
    count = items * threads - 2
    x = numbers(dtype, count, seed)
    if x.dtype.kind == "f":
        x[5], x[7] = -np.inf, np.nan
    keys, places, values = (np.zeros((k, threads), d) for d in (x.dtype, "i4", "i4"))

    def body(A, B, C, D):
        tid = fx.block.thread_rank()
        own = fx.block.load(A, items, valid=count)
        found, where = fx.block.top_k(own, k, largest=largest, valid=count)
        numbers = [100 - tid * items - i for i in range(items)]
        _, chosen = fx.block.top_k(own, k, numbers, largest=largest, valid=count)
        for turn in fx.range_constexpr(k):
            B[turn, tid], C[turn, tid], D[turn, tid] = found[turn], where[turn], chosen[turn]

    run(body, x, keys, places, values, block=block, target=target)
    ascending = np.argsort(x if not largest else x[::-1], kind="stable")
    order = count - 1 - ascending[::-1] if largest else ascending
    wanted = np.repeat(order[:k, None], threads, 1)
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_array_equal(keys, x[wanted])
    np.testing.assert_array_equal(values, 100 - wanted)


@on_targets
@pytest.mark.parametrize(("block", "items", "bins"), [(64, 2, 64), (100, 3, 7), (32, 1, 200)])
def test_histogram(target, block, items, bins):
    count = block * items - 1
    x = np.random.default_rng(9).integers(0, bins, count).astype("u1")
    y = np.zeros((2, bins), "i4")

    def body(A, B):
        own = fx.block.load(A, items, valid=count)
        counts = fx.block.histogram(own, bins, valid=count)
        twice = fx.block.init_histogram(bins)
        for _ in range(2):
            fx.block.add_to_histogram(twice, own, valid=count)
        fx.barrier()
        for i in range(fx.thread_idx.x, bins, block):
            B[0, i], B[1, i] = counts[i], twice[i]

    run(body, x, y, block=block, target=target)
    wanted = np.bincount(x, minlength=bins)
    np.testing.assert_array_equal(y, [wanted, 2 * wanted])


@on_targets
@pytest.mark.parametrize(("block", "items"), [(64, 4), (37, 3), ((4, 5, 6), 1)])
def test_exchanges(target, block, items):
    threads = threads_of(block)
    count = threads * items
    order = np.random.default_rng(10).permutation(count).astype("i4")
    x = np.arange(count, dtype="i2") * 3
    y = np.zeros((4, count), "i2")

    def body(A, B, R):
        tid = fx.block.thread_rank()
        blocked = [tid * items + i for i in range(items)]
        striped = [tid + i * threads for i in range(items)]
        own, ranks = [A[i] for i in blocked], [R[i] for i in blocked]
        a = fx.block.blocked_to_striped([(one, one) for one in own])
        b = fx.block.striped_to_blocked([A[i] for i in striped])
        c = fx.block.scatter_to_blocked(own, ranks)
        d = fx.block.scatter_to_striped(own, ranks)
        for i in fx.range_constexpr(items):
            B[0, striped[i]], B[1, blocked[i]] = a[i][1], b[i]
            B[2, blocked[i]], B[3, striped[i]] = c[i], d[i]

    run(body, x, y, order, block=block, target=target)
    scattered = np.zeros_like(x)
    scattered[order] = x
    np.testing.assert_array_equal(y, [x, x, scattered, scattered])


@on_targets
@pytest.mark.parametrize("arrangement", ["blocked", "striped", "vectorized", "transposed"])
@pytest.mark.parametrize("dtype", ["u1", "f4", "i8"])
def test_transfers(target, arrangement, dtype):
    block, items = 96, 4
    tile = block * items
    x = numbers(dtype, 3 * tile, 11)

    def body(A, B):
        for start, valid in ((0, None), (tile, tile), (2 * tile, 5), (0, -3)):
            own = fx.block.load(
                A, items, offset=start, arrangement=arrangement, valid=valid, default=7
            )
            fx.block.store(B, own, offset=start, arrangement=arrangement, valid=valid)
            if valid == 5:
                first = fx.thread_idx.x * (1 if arrangement == "striped" else items)
                assert first < 5 or own[0] == 7

    y = np.zeros_like(x)
    run(body, x, y, block=block, target=target)
    wanted = x.copy()
    wanted[2 * tile + 5 :] = 0
    np.testing.assert_array_equal(y, wanted)


@fly.kernel
def dynamic_kernel(A: fx.Tensor):
    A[fx.thread_idx.x] = fx.block.reduce(A[fx.thread_idx.x])


@fly.jit
def dynamic(A: fx.Tensor[fx.Int32, None]):
    dynamic_kernel(A).launch(grid=1, block=A.shape[0])


def test_the_blocks_size_has_to_be_known():
    with (
        on("gfx942"),
        pytest.raises(Exception, match=r"fx.block.reduce needs a block whose size is known"),
    ):
        dynamic(np.zeros(64, "i4"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda A, x: fx.block.reduce([]), "fx.block.reduce takes at least one item"),
        (lambda A, x: fx.block.exclusive_scan(x, max), "fx.block.exclusive_scan needs a first"),
        (
            lambda A, x: fx.block.inclusive_scan(x, initial=1, prefix=lambda t: t),
            "fx.block.inclusive_scan takes initial or prefix, not both",
        ),
        (lambda A, x: fx.block.sort(x, end_bit=40), "fx.block.sort compares bits from begin_bit"),
        (lambda A, x: fx.block.sort([x, x], [x]), "fx.block.sort takes 2 values, as many as"),
        (lambda A, x: fx.block.sort([x] * 1024)[0], "fx.block.sort takes less than 65536 items"),
        (lambda A, x: fx.block.top_k(x, 65), "k of fx.block.top_k is a Python int from 1 to 64"),
        (lambda A, x: fx.block.init_histogram(0)[0], "the bins of a histogram are a positive"),
        (
            lambda A, x: fx.block.histogram(x.to(fx.Float32), 8)[0],
            "fx.block.add_to_histogram counts integers, not a dynamic f32",
        ),
        (
            lambda A, x: fx.random.randint(1, x, low=5, high=5)[0],
            "fx.random.randint needs low < high, not 5 and 5",
        ),
        (
            lambda A, x: fx.block.inclusive_scan(x, lambda a: a),
            r"TypeError: (?!__fly).*<lambda>\(\) takes 1 positional argument but 2 were given",
        ),
        (lambda A, x: fx.block.load(A, 0)[0], "the count of fx.block.load is a positive Python"),
        (
            lambda A, x: fx.block.load(A, 1, arrangement="direct")[0],
            "fx.block.load has the arrangements blocked, striped, vectorized, transposed, not",
        ),
        (lambda A, x: fx.block.striped_to_blocked(x), "fx.block.striped_to_blocked takes a list"),
        (lambda A, x: fx.block.scatter_to_blocked([x], [x, x]), "fx.block.scatter_to_blocked take"),
    ],
)
def test_refusals_name_the_users_line(call, message):
    x = np.zeros(64, "i4")

    def body(A):
        A[fx.thread_idx.x] = call(A, A[fx.thread_idx.x])

    with pytest.raises(Exception, match=f"test_block.py:[0-9]+:[0-9]+: {message}"):
        run(body, x, block=64, target="gfx942")
