"""fx.coop's classes and sorts of a group of lanes, judged by NumPy, with a search for races."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import fly.flydsl.compiler as flyc
import fly.flydsl.expr as fx

coop = fx.coop
THREADS = 128
ADD, MAX = fx.ReductionOp.ADD, fx.ReductionOp.MAX
TYPES = {np.int32: fx.Int32, np.float32: fx.Float32}


@pytest.fixture(params=["gfx942", "gfx1100"], autouse=True)
def lanes(request, monkeypatch) -> int:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", request.param)
    monkeypatch.setenv("FLY_STRICT", "1")
    return 64 if request.param == "gfx942" else 32


def on_groups(
    work: Any, *given: np.ndarray, results: int = 1, each: int = 1, width: int = 1,
    storage: Any = None, out: Any = np.int32,
) -> Any:  # fmt: skip
    """What `work(storage of the group, items of a thread, …)` gives: `results` sequences of `each`
    numbers, as (results, threads, each)."""
    counts = [len(one) // THREADS for one in given]

    @flyc.kernel(known_block_size=[THREADS, 1, 1])
    def kernel(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor):
        tid = fx.thread_idx.x
        items = []
        for number, count in enumerate(counts):
            source = A if number == 0 else B
            loaded = [source[tid * count + i] for i in range(count)]
            items.append(fx.Vector.from_elements(loaded) if count > 1 else loaded[0])
        shared = None
        if storage is not None:
            kind = fx.Array[storage, THREADS // width]
            shared = fx.SharedAllocator().allocate(kind).peek()[tid // width]
        found = work(shared, *items)
        found = found if isinstance(found, tuple) else (found,)
        for number in fx.range_constexpr(results):
            row = found[number]
            for i in fx.range_constexpr(each):
                value = row if each == 1 and not isinstance(row, fx.Vector) else row[i]
                Out[(number * THREADS + tid) * each + i] = value.to(TYPES[out])

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor):
        kernel(A, B, Out).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))

    made = np.full(results * THREADS * each, 77, out)
    launch(given[0], given[-1], made)
    return made.reshape(results, THREADS, each)


def integers(count: int, low: int = -50, high: int = 50) -> np.ndarray:
    return np.random.default_rng(count).integers(low, high, THREADS * count).astype(np.int32)


def second(a: Any, b: Any) -> Any:
    """An associative operation that is not commutative, and has no identity: of two linear
    functions modulo 16, `a * x + b` as 16 a + b, the first one after the second."""
    return (((a // 16) * (b // 16)) % 16) * 16 + ((a // 16) * (b % 16) + a % 16) % 16


def tiles(given: np.ndarray, width: int) -> np.ndarray:
    """Items by group."""
    return given.reshape(THREADS // width, -1)


def striped(rows: np.ndarray, width: int) -> np.ndarray:
    """Tiles in blocked order of their striped places, as lanes have them."""
    return rows.reshape(len(rows), -1, width).swapaxes(1, 2).reshape(THREADS, -1)


@pytest.mark.parametrize("width", [4, None])
def test_reductions(width: int | None, lanes: int):
    group = width or lanes
    given = integers(2)
    flags = np.random.default_rng(1).integers(0, 2, THREADS).astype(np.int32)
    kind, other = coop.WarpReduce[fx.Int32, width], coop.universal.WarpReduce[fx.Int32, width]
    assert kind.warp_threads == group
    assert kind.SharedStorage is fx.Empty
    few = group - 1

    def work(storage: Any, x: Any, flag: Any) -> Any:
        return (
            kind.reduce(x, ADD, storage=storage),
            other.reduce(x, lambda a, b: a + b),
            kind.reduce(x[0], MAX, valid_items=few),
            kind.head_segmented_reduce(x, flag, ADD),
            kind.tail_segmented_reduce(x, flag, ADD),
            coop.WarpScan[fx.Int32, width].broadcast(x[0], 2),
        )

    made = on_groups(work, given, flags, results=6, storage=kind.SharedStorage, width=group)[..., 0]
    sums, rows = tiles(given, group).sum(axis=1), tiles(given.reshape(-1, 2)[:, 0], group)
    np.testing.assert_array_equal(made[0], sums.repeat(group))
    np.testing.assert_array_equal(made[1], sums.repeat(group))
    np.testing.assert_array_equal(made[2], rows[:, :few].max(axis=1).repeat(group))
    np.testing.assert_array_equal(made[5], rows[:, 2].repeat(group))
    totals = given.reshape(-1, 2).sum(axis=1)
    lane = np.arange(THREADS) % group
    for found, starts in (
        (made[3], (flags != 0) | (lane == 0)),
        (made[4], np.roll(flags != 0, 1) | (lane == 0)),
    ):
        places = np.flatnonzero(starts)
        np.testing.assert_array_equal(found[places], np.add.reduceat(totals, places))


@pytest.mark.parametrize("width", [1, 8, None])
@pytest.mark.parametrize("universal", [False, True])
def test_scans(width: int | None, universal: bool, lanes: int):
    group = width or lanes
    given = integers(3)
    kind = (coop.universal if universal else coop).WarpScan[fx.Int32, width]

    def work(storage: Any, x: Any) -> Any:
        inclusive, exclusive, total = kind.scan_with_aggregate(x, ADD)
        seeded = kind.inclusive_scan(x, ADD, init=5), kind.exclusive_scan(x, MAX, init=7)
        return inclusive, exclusive, x * 0 + total, *seeded

    made = on_groups(work, given, results=5, each=3).reshape(5, -1)
    rows = tiles(given, group)
    sums = rows.cumsum(axis=1)
    tops = np.concatenate([np.full((len(rows), 1), 7), rows], axis=1)
    expected = [
        sums,
        sums - rows,
        np.broadcast_to(sums[:, -1:], rows.shape),
        sums + 5,
        np.maximum.accumulate(tops, axis=1)[:, :-1],
    ]
    np.testing.assert_array_equal(made, [one.reshape(-1) for one in expected])


@pytest.mark.parametrize("valid", [0, 5, 8])
def test_partial_scans(valid: int):
    """Of an operation that is not commutative, with a number that is known while tracing or not."""
    given = integers(1, 0, 256)
    count = np.full(THREADS, valid, np.int32)
    kind = coop.WarpScan[fx.Int32, 8]

    def work(storage: Any, x: Any, end: Any) -> Any:
        known = kind.scan_with_aggregate(x, second, init=9, valid_items=valid)
        told = kind.scan(x, second, init=9, valid_items=end)
        return *known, *told

    made = on_groups(work, given, count, results=5)[..., 0].reshape(5, -1, 8)
    for group, row in enumerate(tiles(given, 8)):
        first, before = 9, []
        for one in row[:valid]:
            before.append(first)
            first = second(first, int(one))
        after = [*before[1:], first] if valid else []
        for found in (made[0][group], made[3][group]):
            np.testing.assert_array_equal(found, [*after, *row[valid:]])
        for found in (made[1][group], made[4][group]):
            np.testing.assert_array_equal(found, [*before, *row[valid:]])
        if valid:
            total = functools.reduce(second, map(int, row[:valid]))
            np.testing.assert_array_equal(made[2][group], total)


@pytest.mark.parametrize(("width", "count"), [(8, 1), (8, 8), (4, 3), (None, 5)])
def test_several_reductions(width: int | None, count: int, lanes: int):
    group = width or lanes
    given = integers(count, 0, 256)
    kind = coop.WarpReduceBatched[fx.Int32, width, count]

    def work(storage: Any, x: Any, *_: Any) -> Any:
        return kind.reduce(x if count > 1 else [x], second)

    made = on_groups(work, given)[0, :, 0].reshape(-1, group)
    for found, rows in zip(made, given.reshape(-1, group, count), strict=True):
        wanted = [functools.reduce(second, map(int, column)) for column in rows.T]
        np.testing.assert_array_equal(found[:count], wanted)


@pytest.mark.parametrize("count", [3, 8, 11])
def test_more_reductions_than_lanes(count: int):
    given, width = integers(count), 4
    kind = coop.WarpReduceBatched[fx.Int32, width, count]
    each = -(-count // width)

    def work(storage: Any, x: Any) -> Any:
        return kind.reduce_to_blocked(x, ADD), kind.reduce_to_striped(x, ADD)

    made = on_groups(work, given, results=2, each=each).reshape(2, -1, width, each)
    totals = given.reshape(-1, width, count).sum(axis=1)
    for group, wanted in enumerate(totals):
        np.testing.assert_array_equal(made[0][group].reshape(-1)[:count], wanted)
        np.testing.assert_array_equal(made[1][group].T.reshape(-1)[:count], wanted)


def test_no_reductions():
    kind = coop.WarpReduceBatched[fx.Int32, 4, 0]

    def work(storage: Any, x: Any) -> Any:
        assert kind.reduce_to_blocked([], ADD) == ()
        return x

    on_groups(work, integers(1))


@pytest.mark.parametrize(("width", "count"), [(8, 3), (4, 4), (None, 2)])
def test_exchanges(width: int | None, count: int, lanes: int):
    group, given = width or lanes, integers(count)
    random = np.random.default_rng(5)
    rank = np.concatenate(
        [random.permutation(group * count) for _ in range(THREADS // group)]
    ).astype(np.int32)
    kind = coop.WarpExchange[fx.Int32, width, count]

    def work(storage: Any, x: Any, ranks: Any) -> Any:
        found = kind.blocked_to_striped(x, storage=storage)
        fx.barrier()
        back = kind.striped_to_blocked(found, storage=storage)
        fx.barrier()
        moved = kind.scatter_to_striped(x, ranks, storage=storage)
        if width != count:
            return found, back, moved
        shuffles = coop.WarpExchange[fx.Int32, width, count, coop.WarpExchangeAlgorithm.SHUFFLE]
        shuffled = shuffles.blocked_to_striped(x)
        return found, back, moved, shuffled, shuffles.striped_to_blocked(shuffled)

    results = 5 if width == count else 3
    made = on_groups(
        work, given, rank, results=results, each=count, storage=kind.SharedStorage, width=group
    )
    rows = tiles(given, group)
    scattered = np.zeros_like(rows)
    np.put_along_axis(scattered, tiles(rank, group), rows, axis=1)
    wanted = [striped(rows, group), given.reshape(THREADS, -1), striped(scattered, group)]
    np.testing.assert_array_equal(made, [*wanted, *wanted][:results])


@pytest.mark.parametrize("policy", ["DIRECT", "STRIPED", "VECTORIZE", "TRANSPOSE"])
@pytest.mark.parametrize("width", [8, None])
def test_loads_and_stores(policy: str, width: int | None, lanes: int):
    count, group = 3, width or lanes
    given = np.arange(THREADS * count + 5, dtype=np.float32)
    tile, end = group * count, group * count - 4
    load = coop.WarpLoad[fx.Int32, width, count, coop.WarpLoadAlgorithm[policy]]
    store = coop.WarpStore[fx.Int32, width, count, coop.WarpStoreAlgorithm[policy]]

    @flyc.kernel(known_block_size=[THREADS, 1, 1])
    def kernel(A: fx.Tensor, Items: fx.Tensor, Whole: fx.Tensor, Part: fx.Tensor):
        tid = fx.thread_idx.x
        first = (tid // group) * tile
        found = load.load(A, offset=first + 5)
        part = load.load(A, offset=first + 5, valid_items=end, default=-3)
        for i in fx.range_constexpr(count):
            Items[tid * count + i] = found[i]
        store.store(Whole, part, offset=first)
        store.store(Part, found * 2, offset=first, valid_items=end)

    @flyc.jit
    def launch(A: fx.Tensor, Items: fx.Tensor, Whole: fx.Tensor, Part: fx.Tensor):
        kernel(A, Items, Whole, Part).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))

    items = np.zeros(THREADS * count, np.int32)
    whole, part = np.full_like(items, 9), np.full(THREADS * count, 9, np.float32)
    launch(given, items, whole, part)
    rows = tiles(given[5:], group)
    wanted = striped(rows, group) if policy == "STRIPED" else rows
    np.testing.assert_array_equal(items, wanted.reshape(-1))
    inside = np.arange(tile) < end
    np.testing.assert_array_equal(tiles(whole, group), np.where(inside, rows, -3))
    np.testing.assert_array_equal(tiles(part, group), np.where(inside, rows * 2, 9))


@pytest.mark.heavy
@pytest.mark.parametrize(("width", "count"), [(1, 3), (4, 1), (8, 4), (4, 3), (None, 2)])
@pytest.mark.parametrize("valid", [None, "known", "told"])
@pytest.mark.parametrize("order", ["blocked", "striped"])
def test_sorts(width: int | None, count: int, valid: str | None, order: str, lanes: int):
    check_sort(width, count, valid, order, lanes)


@pytest.mark.parametrize("order", ["blocked", "striped"])
def test_a_sort(order: str, lanes: int):
    check_sort(4, 3, "told", order, lanes)


def check_sort(width: int | None, count: int, valid: str | None, order: str, lanes: int) -> None:
    """Keys that repeat, in falling order, with where they were as values."""
    group, given = width or lanes, integers(count, 0, 9)
    tile = group * count
    end = tile if valid is None else max(tile - 3, 0)
    sort = coop.WarpMergeSort if order == "blocked" else coop.WarpBitonicSort
    kind = sort[(fx.Int32, fx.Float32), width, count]
    place = np.arange(THREADS * count, dtype=np.float32)
    told = np.full(1, end, np.int32)

    def work(storage: Any, x: Any, *_: Any) -> Any:
        keys = x if count > 1 else [x]
        tid = fx.thread_idx.x
        values = [(tid * count + i).to(fx.Float32) for i in range(count)]
        known = None if valid is None else end
        if valid == "told":
            known = fx.Int32(end) + x * 0 if count == 1 else fx.Int32(end) + x[0] * 0
        return kind.sort(
            keys, values, compare_op=lambda a, b: a > b, valid_items=known, storage=storage
        )

    made = on_groups(work, given, results=2, each=count, storage=kind.SharedStorage, width=group)
    assert len(told) == 1
    at = place.reshape(-1, group, count)
    keys = given.reshape(-1, group, count)
    found = made.reshape(2, -1, group, count)
    if order == "striped":
        at, keys, found = at.swapaxes(1, 2), keys.swapaxes(1, 2), found.swapaxes(2, 3)
    at, keys = at.reshape(len(at), -1)[:, :end], keys.reshape(len(keys), -1)[:, :end]
    found = found.reshape(2, len(found[0]), -1)[..., :end]
    chosen = np.argsort(-keys, axis=1, kind="stable")
    np.testing.assert_array_equal(found[0], np.take_along_axis(keys, chosen, axis=1))
    if order == "blocked":
        np.testing.assert_array_equal(found[1], np.take_along_axis(at, chosen, axis=1))
    for values, wanted in zip(found[1], at, strict=True):
        assert sorted(values) == sorted(wanted)
    np.testing.assert_array_equal(given[found[1].astype(int)], found[0])


@pytest.mark.parametrize("name", ["warp_merge_sort", "warp_bitonic_sort"])
def test_sorts_of_keys_only(name: str, lanes: int):
    given = integers(1)

    def work(storage: Any, x: Any) -> Any:
        return getattr(coop, name)([x], compare_op=lambda a, b: a < b)

    made = on_groups(work, given)[0, :, 0]
    np.testing.assert_array_equal(made, np.sort(given.reshape(-1, lanes), axis=1).reshape(-1))


def test_an_order_that_reads_memory_gets_valid_keys_only():
    """A table has an entry for the valid keys only: others would read beyond it."""
    given = np.tile(np.array([3, 1, 2, 0, 10**6, 10**6, 10**6, 10**6], np.int32), THREADS // 8)
    table = np.tile(np.array([2, 3, 0, 1], np.int32), THREADS // 4)

    @flyc.kernel(known_block_size=[THREADS, 1, 1])
    def kernel(A: fx.Tensor, Table: fx.Tensor, Out: fx.Tensor):
        tid = fx.thread_idx.x

        def before(a: Any, b: Any) -> Any:
            return Table[a] < Table[b]

        found = coop.warp_merge_sort([A[tid]], width=8, compare_op=before, valid_items=4)
        Out[tid] = found[0]

    @flyc.jit
    def launch(A: fx.Tensor, Table: fx.Tensor, Out: fx.Tensor):
        kernel(A, Table, Out).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))

    out = np.zeros(THREADS, np.int32)
    launch(given, table, out)
    np.testing.assert_array_equal(out.reshape(-1, 8)[:, :4], [[2, 3, 0, 1]] * (THREADS // 8))


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda: coop.WarpReduce[fx.Int32, 3], ValueError, "power of two, got 3"),
        (lambda: coop.WarpReduce[fx.Int32, 128], ValueError, "must not exceed the wave's"),
        (lambda: coop.WarpReduce[fx.Int32, 4, 2], TypeError, r"WarpReduce\[dtype, width\]"),
        (lambda: coop.WarpLoad[fx.Int32, 4], TypeError, "items_per_thread, algorithm"),
        (lambda: coop.WarpLoad[fx.Int32, 4, 0], ValueError, "must be a Python int >= 1"),
        (lambda: coop.WarpLoad[fx.Int32, 4, 1, 3], TypeError, "expected a WarpLoadAlgorithm"),
        (lambda: coop.WarpExchange[(fx.Int32, fx.Int32), 4, 1], TypeError, "one element type"),
        (lambda: coop.WarpScan[fx.Struct["a" : fx.Int32], 4], TypeError, "are numbers here"),
        (
            lambda: coop.WarpExchange[fx.Int32, 4, 2, coop.WarpExchangeAlgorithm.SHUFFLE],
            ValueError,
            "as many items as the group has lanes",
        ),
        (lambda: coop.WarpReduce[fx.Int32, 4][fx.Int32, 4], TypeError, "already specialized"),
        (lambda: coop.WarpReduce[fx.Int32, 4](1), TypeError, "has no instances"),
        (lambda: coop.WarpReduce.reduce(1, ADD), TypeError, "specialize WarpReduce first"),
    ],
)
def test_mistakes(make: Any, kind: type, said: str):
    with pytest.raises(kind, match=said):
        make()


@pytest.mark.parametrize(
    ("work", "kind", "said"),
    [
        (lambda x: coop.warp_merge_sort(x, compare_op=lambda a, b: a < b), TypeError, r"\[key\]"),
        (lambda x: coop.warp_merge_sort([x], compare_op=None), TypeError, "a function of two"),
        (
            lambda x: coop.WarpScan[fx.Int32, 4].scan([x, x], ADD, valid_items=2)[0],
            TypeError,
            "one item of each lane",
        ),
        (
            lambda x: coop.WarpReduce[fx.Int32, 4].reduce(x, ADD, valid_items=5),
            ValueError,
            "between 0 and 4, got 5",
        ),
        (
            lambda x: coop.WarpExchange[fx.Int32, 4, 1].blocked_to_striped([x]),
            TypeError,
            "needs storage=",
        ),
        (lambda x: coop.warp_broadcast(x, 8, width=8), ValueError, "between 0 and 7, got 8"),
        (lambda x: coop.warp_reduce_batched(x, ADD), TypeError, r"write \[value\] for one"),
        (
            lambda x: coop.WarpLoad[fx.Int32, 4, 1].load(x, default=3),
            ValueError,
            "default is for items behind valid_items",
        ),
    ],
)
def test_mistakes_in_a_kernel(work: Any, kind: type, said: str):
    with pytest.raises(kind, match=said):
        on_groups(lambda storage, x: work(x), integers(1))
