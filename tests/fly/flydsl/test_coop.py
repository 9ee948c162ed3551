"""fx.coop: reductions and scans of waves and blocks, judged by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fly.flydsl.compiler as flyc
import fly.flydsl.expr as fx

NUMPY = {
    fx.ReductionOp.ADD: np.add,
    fx.ReductionOp.MUL: np.multiply,
    fx.ReductionOp.MAX: np.maximum,
    fx.ReductionOp.MIN: np.minimum,
}
ADD, MUL, MAX = fx.ReductionOp.ADD, fx.ReductionOp.MUL, fx.ReductionOp.MAX
THREADS = 128


@pytest.fixture(params=["gfx942", "gfx1100"])
def lanes(request, monkeypatch) -> int:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", request.param)
    return 64 if request.param == "gfx942" else 32


def on_threads(work: Any, given: np.ndarray, results: int, threads: int = THREADS) -> Any:
    """What `work(item of a thread)` gives in each thread: `results` numbers."""

    @flyc.kernel(known_block_size=[threads, 1, 1])
    def kernel(A: fx.Tensor, Out: fx.Tensor):
        tid = fx.thread_idx.x
        found = work(A[tid])
        for i in fx.range_constexpr(results):
            Out[tid * results + i] = found[i]

    @flyc.jit
    def launch(A: fx.Tensor, Out: fx.Tensor):
        kernel(A, Out).launch(grid=(1, 1, 1), block=(threads, 1, 1))

    out = np.zeros(threads * results, given.dtype)
    launch(given, out)
    return out.reshape(threads, results).T


def numbers(dtype: Any, op: Any) -> np.ndarray:
    random = np.random.default_rng(1)
    if np.dtype(dtype).kind == "f":
        return random.uniform(0.9, 1.1, THREADS).astype(dtype)
    low, high = (-3, 4) if op is MUL else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return random.integers(low, high, THREADS, dtype=dtype)


@pytest.mark.heavy
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.float32])
@pytest.mark.parametrize("width", [2, 8, 16, 32, None])
@pytest.mark.parametrize("op", [ADD, MAX])
def test_waves(dtype: Any, width: int | None, op: Any, lanes: int):
    given = numbers(dtype, op)
    group = width or lanes

    def work(item: Any) -> Any:
        found = [fx.coop.warp_reduce(item, op, width=width)]
        found += fx.coop.warp_scan_with_aggregate(item, op, width=width)
        return [*found, fx.coop.universal.warp_reduce(item, op, width=width)]

    total, inclusive, exclusive, aggregate, universal = on_threads(work, given, 5)
    rows = given.reshape(-1, group)
    whole = NUMPY[op].reduce(rows, axis=1, dtype=dtype).repeat(group)
    scanned = NUMPY[op].accumulate(rows, axis=1, dtype=dtype)
    if np.dtype(dtype).kind == "f":
        first, close = (0.0 if op is ADD else -np.inf), {"rtol": 1e-5}
    else:
        first, close = (0 if op is ADD else np.iinfo(dtype).min), {"rtol": 0}
    before = np.concatenate([np.full((len(rows), 1), first, dtype), scanned[:, :-1]], axis=1)
    for found, wanted in (
        (total, whole),
        (universal, whole),
        (aggregate, whole),
        (inclusive, scanned.reshape(-1)),
        (exclusive, before.reshape(-1)),
    ):
        np.testing.assert_allclose(found, wanted, **close)


@pytest.mark.parametrize("algorithm", ["WARP_REDUCTIONS", "RAKING"])
def test_a_block_is_reduced(algorithm: str, monkeypatch):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")
    policy = fx.coop.BlockReduceAlgorithm[algorithm]

    def work(item: Any) -> Any:
        reduce = fx.coop.BlockReduce[fx.Int32, THREADS, policy]
        storage = fx.SharedAllocator().allocate(reduce.SharedStorage).peek()
        return [reduce(fx.Vector.from_elements([item, item]), ADD, storage=storage)]

    given = numbers(np.int32, ADD)
    (found,) = on_threads(work, given, 1)
    assert (found == np.int32(2) * given.sum(dtype=np.int32)).all()


def test_a_block_is_scanned(monkeypatch):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")

    def work(item: Any) -> Any:
        scan = fx.coop.BlockScan[fx.Int32, THREADS]
        storage = fx.SharedAllocator().allocate(scan.SharedStorage).peek()
        items = fx.Vector.from_elements([item, fx.Int32(1)])
        found, total = scan.exclusive_with_aggregate(items, ADD, storage=storage, init=fx.Int32(5))
        return [found[0], found[1], total]

    given = numbers(np.int32, ADD)
    first, second, total = on_threads(work, given, 3)
    items = np.stack([given, np.ones_like(given)], axis=1).reshape(-1)
    wanted = np.cumsum(items, dtype=np.int32) - items + np.int32(5)
    assert (np.stack([first, second], axis=1).reshape(-1) == wanted).all()
    assert (total == items.sum(dtype=np.int32)).all()


def test_a_block_of_less_than_a_wave(monkeypatch):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")
    reduce = fx.coop.BlockReduce[fx.Int32, 8]
    assert (reduce.warp_threads, reduce.num_warps) == (8, 1)
    given = np.arange(8, dtype=np.int32)

    def work(item: Any) -> Any:
        storage = fx.SharedAllocator().allocate(reduce.SharedStorage).peek()
        return [reduce(item, MAX, storage=storage)]

    assert (on_threads(work, given, 1, 8) == 7).all()


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda: fx.coop.BlockReduce[fx.Int32, 48], ValueError, "must be a power of two, got 48"),
        (lambda: fx.coop.BlockReduce[fx.Int32, (8, 2)], TypeError, "an int or a 3-tuple"),
        (lambda: fx.coop.BlockReduce[fx.Int32], TypeError, r"BlockReduce\[dtype, block_size"),
        (
            lambda: fx.coop.BlockScan[fx.Int32, 64, fx.coop.BlockScanAlgorithm.RAKING],
            NotImplementedError,
            "RAKING is not implemented; there are WARP_SCANS",
        ),
        (lambda: fx.coop.BlockReduce[fx.Int32, 64][fx.Int32, 64], TypeError, "already specialized"),
        (lambda: fx.coop.BlockReduce(1, ADD, storage=None), TypeError, "specialize first"),
        (lambda: fx.coop.BlockScan(1), TypeError, "has two forms"),
        (lambda: fx.coop.warp.cuda, AttributeError, "has no attribute 'cuda'"),
    ],
)
def test_what_is_refused(make: Any, kind: type[Exception], said: str):
    with pytest.raises(kind, match=said):
        make()


def test_a_width_that_is_none(monkeypatch):
    monkeypatch.setenv("FLYDSL_GPU_ARCH", "gfx942")
    given = numbers(np.int32, ADD)
    with pytest.raises(ValueError, match="must not exceed the wave's 64 lanes, got 128"):
        on_threads(lambda item: [fx.coop.warp_reduce(item, ADD, width=128)], given, 1)
    with pytest.raises(TypeError, match="unsupported ReductionOp, got 'xor'"):
        on_threads(lambda item: [fx.coop.warp_reduce(item, "xor")], given, 1)


def subtracted(a: Any, b: Any) -> Any:
    """Associative, and not commutative: the first of two."""
    return a + b * 0


def folded(op: Any, row: np.ndarray) -> Any:
    return row[0] if op is subtracted else row.sum(dtype=row.dtype)


@pytest.mark.parametrize("op", [ADD, subtracted])
@pytest.mark.parametrize("width", [8, None])
def test_parts_of_waves(op: Any, width: int | None, lanes: int):
    given, group, valid = numbers(np.int32, ADD) % 1000, width or lanes, 5

    def work(item: Any) -> Any:
        flag = (item % 3 == 0).select(fx.Int32(1), fx.Int32(0))
        found = [fx.coop.warp_reduce(item, op, width=width)]
        found.append(fx.coop.warp_reduce(item, op, width=width, valid_items=valid))
        found.append(fx.coop.warp_head_segmented_reduce(item, flag, op, width=width))
        found.append(fx.coop.warp_tail_segmented_reduce(item, flag, op, width=width))
        found.append(fx.coop.warp_broadcast(item, 3, width=width))
        found.append(fx.coop.warp_reduce_batched([item, item + 1], op, width=width))
        found += list(fx.coop.warp_reduce_batched_to_blocked([item] * 9, op, width=8))
        return found

    made = on_threads(work, given, 8)
    rows = given.reshape(-1, group)
    total = np.array([folded(op, row) for row in rows])
    np.testing.assert_array_equal(made[0], total.repeat(group))
    np.testing.assert_array_equal(made[1], np.repeat([folded(op, r[:valid]) for r in rows], group))
    np.testing.assert_array_equal(made[4], rows[:, 3].repeat(group))
    second = np.array([folded(op, row + 1) for row in rows])
    np.testing.assert_array_equal(made[5].reshape(-1, group)[:, :2], np.stack([total, second], 1))
    eights = np.array([folded(op, row) for row in given.reshape(-1, 8)])
    np.testing.assert_array_equal(made[6].reshape(-1, 8)[:, :4], np.stack([eights] * 4, 1))
    for by_head, found in ((True, made[2]), (False, made[3])):
        for row, own in zip(rows, found.reshape(-1, group), strict=True):
            marks = row % 3 == 0
            heads = marks.copy() if by_head else np.array([True, *marks[:-1]])
            heads[0] = True
            starts = np.flatnonzero(heads)
            for start, end in zip(starts, [*starts[1:], group], strict=True):
                assert own[start] == folded(op, row[start:end])


@pytest.mark.parametrize("valid", [0, 1, 77, THREADS])
def test_a_part_of_a_block(valid: int, lanes: int):
    given = numbers(np.int32, ADD) % 1000
    reduce = fx.coop.BlockReduce[fx.Int32, THREADS]
    scan = fx.coop.BlockScan[fx.Int32, THREADS]

    def work(item: Any) -> Any:
        shared = fx.SharedAllocator()
        named = {"storage": shared.allocate(reduce.SharedStorage).peek(), "valid_items": valid}
        found = [reduce(item, ADD, **named)]
        fx.barrier()
        found.append(reduce(item, lambda a, b: a + b, identity=0, **named))
        storage = shared.allocate(scan.SharedStorage).peek()
        found.append(scan.exclusive(item, lambda a, b: a + b, identity=0, storage=storage))
        return found

    made = on_threads(work, given, 3)
    total = given[:valid].sum(dtype=np.int32)
    np.testing.assert_array_equal(made[:2], np.full((2, THREADS), total))
    np.testing.assert_array_equal(made[2], np.cumsum(given, dtype=np.int32) - given)
