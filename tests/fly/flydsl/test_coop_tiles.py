"""fx.coop's algorithms of a block's tile, judged by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fly.flydsl.compiler as flyc
import fly.flydsl.expr as fx

coop = fx.coop
THREADS = 128
TYPES = {np.int32: fx.Int32, np.float32: fx.Float32, np.uint8: fx.Uint8, np.int64: fx.Int64}


@pytest.fixture(params=["gfx942", "gfx1100"], autouse=True)
def lanes(request, monkeypatch) -> int:
    monkeypatch.setenv("FLYDSL_GPU_ARCH", request.param)
    return 64 if request.param == "gfx942" else 32


def on_tile(
    work: Any, *given: np.ndarray, results: int = 1, each: int = 1, out: Any = np.int32,
    threads: int = THREADS, storage: Any = None,
) -> Any:  # fmt: skip
    """What `work(storage, items of a thread, …)` gives: `results` sequences of `each` numbers, in
    blocked order."""
    counts = [len(one) // threads for one in given]

    @flyc.kernel(known_block_size=[threads, 1, 1])
    def kernel(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor):
        tid = fx.thread_idx.x
        items = []
        for number, count in enumerate(counts):
            source = A if number == 0 else B
            loaded = [source[tid * count + i] for i in range(count)]
            items.append(fx.Vector.from_elements(loaded) if count > 1 else loaded[0])
        shared = fx.SharedAllocator().allocate(storage).peek() if storage is not None else None
        found = work(shared, *items)
        found = found if isinstance(found, tuple) else (found,)
        for number in fx.range_constexpr(results):
            row = found[number]
            for i in fx.range_constexpr(each):
                value = row[i] if each > 1 else row
                Out[(number * threads + tid) * each + i] = value.to(TYPES[out])

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, Out: fx.Tensor):
        kernel(A, B, Out).launch(grid=(1, 1, 1), block=(threads, 1, 1))

    made = np.zeros(results * threads * each, out)
    launch(given[0], given[-1], made)
    return made.reshape(results, -1) if results > 1 else made


def integers(count: int, low: int = -50, high: int = 50, dtype: Any = np.int32) -> np.ndarray:
    return np.random.default_rng(count).integers(low, high, THREADS * count).astype(dtype)


def blocked_of_striped(values: np.ndarray, count: int) -> np.ndarray:
    """What thread after thread has of a tile in striped order."""
    return values.reshape(count, -1).T.reshape(-1)


@pytest.mark.parametrize("policy", ["SHARED_MEMORY", "WARP_TIME_SLICING"])
@pytest.mark.parametrize("count", [1, 3])
def test_exchange(policy: str, count: int, lanes: int):
    kind = coop.BlockExchange[fx.Int32, THREADS, count, coop.BlockExchangeAlgorithm[policy]]
    given = integers(count)
    rank = np.random.default_rng(7).permutation(THREADS * count).astype(np.int32)

    def work(storage: Any, x: Any, ranks: Any) -> Any:
        found = [kind.blocked_to_striped(x, storage=storage)]
        fx.barrier()
        found.append(kind.striped_to_blocked(found[0], storage=storage))
        fx.barrier()
        found.append(kind.blocked_to_warp_striped(x, storage=storage))
        fx.barrier()
        found.append(kind.warp_striped_to_blocked(found[2], storage=storage))
        fx.barrier()
        found.append(kind.scatter_to_blocked(x, ranks, storage=storage))
        fx.barrier()
        found.append(kind.scatter_to_striped(x, ranks, storage=storage))
        fx.barrier()
        found.append(kind.scatter_to_striped_guarded(x, ranks - 5, storage=storage, default=-1))
        fx.barrier()
        found.append(kind.scatter_to_striped_flagged(x, ranks, x > 0, storage=storage, default=9))
        return tuple(found)

    made = on_tile(work, given, rank, results=8, each=count, storage=kind.SharedStorage)
    scattered, guarded = np.zeros_like(given), np.full_like(given, -1)
    scattered[rank] = given
    guarded[rank[rank >= 5] - 5] = given[rank >= 5]
    flagged = np.full_like(given, 9)
    flagged[rank[given > 0]] = given[given > 0]
    waves = given.reshape(-1, lanes * count)
    expected = [
        blocked_of_striped(given, count),
        given,
        np.concatenate([blocked_of_striped(one, count) for one in waves]),
        given,
        scattered,
        *(blocked_of_striped(one, count) for one in (scattered, guarded, flagged)),
    ]
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("count", [1, 2])
def test_shuffle(count: int):
    kind = coop.BlockShuffle[fx.Int32, THREADS]
    given = integers(count)

    def work(storage: Any, x: Any) -> Any:
        up, suffix = kind.up(x, storage=storage, predecessor=-9, return_suffix=True)
        fx.barrier()
        down, prefix = kind.down(x, storage=storage, return_prefix=True)
        return up, down, suffix + x * 0, prefix + x * 0

    made = on_tile(work, given, results=4, each=count, storage=kind.SharedStorage)
    np.testing.assert_array_equal(made[0], [-9, *given[:-1]])
    np.testing.assert_array_equal(made[1], [*given[1:], given[-1]])
    assert set(made[2]) == {given[-1]}
    assert set(made[3]) == {given[0]}


@pytest.mark.parametrize("distance", [1, -3, 130, -200])
def test_offset_and_rotate(distance: int):
    kind = coop.BlockShuffle[fx.Int32, (32, 2, 2)]
    given = integers(1)

    def work(storage: Any, x: Any) -> Any:
        found = [kind.offset(x, distance, storage=storage)]
        fx.barrier()
        found.append(kind.offset(x, distance, storage=storage, fill=7))
        fx.barrier()
        return (*found, kind.rotate(x, distance, storage=storage))

    flat = coop.BlockShuffle[fx.Int32, THREADS]
    kind = flat
    made = on_tile(work, given, results=3, storage=flat.SharedStorage)
    source = np.arange(THREADS) + distance
    inside = (source >= 0) & (source < THREADS)
    taken = given[np.where(inside, source, 0)]
    np.testing.assert_array_equal(made[0], np.where(inside, taken, given))
    np.testing.assert_array_equal(made[1], np.where(inside, taken, 7))
    np.testing.assert_array_equal(made[2], given[source % THREADS])


@pytest.mark.parametrize("valid", [None, 101, 0])
def test_adjacent_difference(valid: int | None):
    kind = coop.BlockAdjacentDifference[fx.Int32, THREADS]
    given = integers(2)

    def work(storage: Any, x: Any) -> Any:
        found = [kind.subtract_left(x, storage=storage, valid_items=valid)]
        fx.barrier()
        found.append(kind.subtract_left(x, storage=storage, predecessor=5, valid_items=valid))
        fx.barrier()
        found.append(kind.subtract_right(x, storage=storage, valid_items=valid))
        fx.barrier()
        named = {"storage": storage, "successor": 5, "valid_items": valid}
        found.append(kind.subtract_right(x, lambda a, b: a * 2 - b, **named))
        return tuple(found)

    made = on_tile(work, given, results=4, each=2, storage=kind.SharedStorage)
    end = len(given) if valid is None else valid
    left, right = given - [0, *given[:-1]], given - [*given[1:], 0]
    seeded, named = given - [5, *given[:-1]], given * 2 - [*given[1:], 5]
    if end:
        left[0] = given[0]
        right[end - 1] = given[end - 1]
        named[end - 1] = given[end - 1] * 2 - 5
    rows = [
        np.where(np.arange(len(given)) < end, one, given) for one in (left, seeded, right, named)
    ]
    np.testing.assert_array_equal(made, rows)


def test_discontinuity():
    kind = coop.BlockDiscontinuity[fx.Int32, THREADS]
    given = integers(2, 0, 3)

    def work(storage: Any, x: Any) -> Any:
        heads, tails = kind.flag_heads_and_tails(x, storage=storage)
        fx.barrier()
        seeded, before = kind.flag_heads(
            x, storage=storage, predecessor=1, return_predecessors=True
        )
        fx.barrier()
        ends = kind.flag_tails(x, lambda a, b, at: (a != b) | (at % 10 == 0), storage=storage,
                               successor=2)  # fmt: skip
        return heads, tails, seeded, before, ends

    made = on_tile(work, given, results=5, each=2, storage=kind.SharedStorage)
    before, after = np.array([1, *given[:-1]]), np.array([*given[1:], 2])
    differs = given[1:] != given[:-1]
    place = np.arange(len(given)) + 1
    expected = [
        [1, *differs], [*differs, 1], given != before, before, (given != after) | (place % 10 == 0)
    ]  # fmt: skip
    np.testing.assert_array_equal(made, np.array(expected, np.int32))


@pytest.mark.parametrize("policy", ["ATOMIC", "SORT"])
@pytest.mark.parametrize("bins", [5, 200])
def test_histogram(policy: str, bins: int):
    kind = coop.BlockHistogram[fx.Int32, THREADS, bins, coop.BlockHistogramAlgorithm[policy]]
    given = integers(3, -4, bins + 4)

    def work(storage: Any, x: Any) -> Any:
        counts = kind(x, storage=storage)
        counts = kind.composite(x, storage=storage)
        tid = fx.thread_idx.x
        return counts[(tid < bins).select(tid, 0)], counts[(tid + 128 < bins).select(tid + 128, 0)]

    made = on_tile(work, given, results=2, storage=kind.SharedStorage).reshape(-1)[:bins]
    expected = 2 * np.bincount(given[(given >= 0) & (given < bins)], minlength=bins)
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("policy", [one.name for one in coop.BlockLoadAlgorithm])
@pytest.mark.parametrize("valid", [None, 150])
def test_load_and_store(policy: str, valid: int | None):
    load = coop.BlockLoad[fx.Int32, THREADS, 3, coop.BlockLoadAlgorithm[policy]]
    store = coop.BlockStore[fx.Int32, THREADS, 3, coop.BlockStoreAlgorithm[policy]]

    @flyc.kernel(known_block_size=[THREADS, 1, 1])
    def kernel(A: fx.Tensor, Items: fx.Tensor, Out: fx.Tensor):
        shared = fx.SharedAllocator()
        scratch = shared.allocate(load.SharedStorage).peek()
        other = shared.allocate(store.SharedStorage).peek()
        x = load(A, storage=scratch, offset=2, valid_items=valid, default=-1)
        for i in fx.range_constexpr(3):
            Items[fx.thread_idx.x * 3 + i] = x[i]
        store(Out, x, storage=other, offset=2, valid_items=valid)

    @flyc.jit
    def launch(A: fx.Tensor, Items: fx.Tensor, Out: fx.Tensor):
        kernel(A, Items, Out).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))

    end = 3 * THREADS if valid is None else valid
    source = integers(4)[: end + 2]  # no more than it may read
    items, out = np.zeros(3 * THREADS, np.int32), np.full(3 * THREADS + 2, -7, np.int32)
    launch(source, items, out)
    tile = np.full(3 * THREADS, -1, np.int32)
    tile[:end] = source[2:]
    expected = blocked_of_striped(tile, 3) if policy == "STRIPED" else tile
    np.testing.assert_array_equal(items, expected)
    np.testing.assert_array_equal(out[2 : end + 2], source[2:])
    assert set(out[:2]) | set(out[end + 2 :]) == {-7}


def stable(keys: np.ndarray, descending: bool = False) -> np.ndarray:
    order = np.argsort(-keys if descending else keys, kind="stable")
    return order.astype(np.int32)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize(("count", "threads"), [(1, 128), (3, 64), (2, 192)])
@pytest.mark.parametrize("descending", [False, True])
def test_merge_sort(dtype: Any, count: int, threads: int, descending: bool):
    kind = coop.BlockMergeSort[(TYPES[dtype], fx.Int32), threads, count]
    given = integers(8, -20, 20, dtype)[: threads * count]
    places = np.arange(threads * count, dtype=np.int32)

    def work(storage: Any, keys: Any, values: Any) -> Any:
        return kind(keys, values, storage=storage, descending=descending)

    made = on_tile(work, given, places, results=2, each=count, out=dtype, threads=threads,
                   storage=kind.SharedStorage)  # fmt: skip
    order = stable(given, descending)
    np.testing.assert_array_equal(made, [given[order], order])


def test_merge_sort_of_a_part():
    kind = coop.BlockMergeSort[(fx.Int32, fx.Int32), THREADS, 2]
    given, valid = integers(2, -9, 9), 77

    def work(storage: Any, keys: Any, values: Any) -> Any:
        return kind.stable_sort(keys, values, storage=storage, valid_items=valid, oob_default=99,
                                compare_op=lambda a, b: a % 4 < b % 4)  # fmt: skip

    places = np.arange(len(given), dtype=np.int32)
    positive = given + 100
    made = on_tile(work, positive, places, results=2, each=2, storage=kind.SharedStorage)
    order = stable(positive[:valid] % 4)
    np.testing.assert_array_equal(made[0], [*positive[order], *[99] * (256 - valid)])
    np.testing.assert_array_equal(made[1], [*order, *[0] * (256 - valid)])


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.uint8, np.int64])
@pytest.mark.parametrize("striped", [False, True])
def test_radix_sort(dtype: Any, striped: bool):
    kind = coop.BlockRadixSort[(TYPES[dtype], fx.Int32), THREADS, 2]
    given = integers(2, 0 if dtype is np.uint8 else -30, 30, dtype)
    places = np.arange(len(given), dtype=np.int32)

    def work(storage: Any, keys: Any, values: Any) -> Any:
        sort = kind.sort_blocked_to_striped if striped else kind
        return sort(keys, values, storage=storage, descending=True, radix_bits=4)

    out = np.int32 if dtype is np.uint8 else dtype
    made = on_tile(work, given, places, results=2, each=2, out=out, storage=kind.SharedStorage)
    order = stable(given.astype(np.int64), True)
    rows = [given[order], order]
    rows = [blocked_of_striped(one, 2) for one in rows] if striped else rows
    np.testing.assert_array_equal(made, rows)


def test_radix_sort_of_some_bits_and_fields():
    kind = coop.BlockRadixSort[fx.Int32, THREADS, 2]
    given = integers(2, 0, 1 << 20)

    def work(storage: Any, keys: Any) -> Any:
        some = kind(keys, storage=storage, begin_bit=3, end_bit=7)
        fx.barrier()
        fields = kind(keys, storage=storage, decomposer=lambda key: (key & 7, key >> 3))
        return some, fields

    made = on_tile(work, given, results=2, each=2, storage=kind.SharedStorage)
    np.testing.assert_array_equal(made[0], given[stable(given >> 3 & 15)])
    np.testing.assert_array_equal(made[1], given[stable((given & 7) * (1 << 20) + (given >> 3))])


@pytest.mark.parametrize("policy", ["MERGE", "AIR"])
@pytest.mark.parametrize("largest", [True, False])
def test_top_k(policy: str, largest: bool):
    kind = coop.BlockTopK[(fx.Int32, fx.Int32), THREADS, 2, coop.BlockTopKAlgorithm[policy]]
    given, k, valid = integers(2, -20, 20), 37, 200
    places = np.arange(len(given), dtype=np.int32)

    def work(storage: Any, keys: Any, values: Any) -> Any:
        found = kind.max_pairs if largest else kind.min_pairs
        return found(keys, values, k, valid, storage=storage)

    made = on_tile(work, given, places, results=3, each=2, storage=kind.SharedStorage)
    order = stable(given[:valid], largest)[:k]
    order = np.sort(order) if policy == "AIR" else order
    np.testing.assert_array_equal(made[0][:k], given[order])
    np.testing.assert_array_equal(made[1][:k], order)
    np.testing.assert_array_equal(made[2], np.arange(256) < k)


@pytest.mark.parametrize("by_offsets", [False, True])
def test_run_length_decode(by_offsets: bool):
    kind = coop.BlockRunLengthDecode[fx.Int32, THREADS, 2]
    values, lengths = integers(2), np.random.default_rng(3).integers(0, 3, 256).astype(np.int32)
    starts = (np.cumsum(lengths) - lengths).astype(np.int32)
    total = int(lengths.sum())

    def work(storage: Any, x: Any, second: Any) -> Any:
        if by_offsets:
            state = kind.init_with_run_offsets(x, second, storage=storage, total=total)
        else:
            state = kind.init_with_run_lengths(x, second, storage=storage)
        found, at, end = state.decode(2, offset=31, default=-5)
        return found, at, end + at * 0

    second = starts if by_offsets else lengths
    made = on_tile(work, values, second, results=3, each=2, storage=kind.SharedStorage)
    decoded = np.repeat(values, lengths)
    relative = np.arange(total) - np.repeat(starts, lengths)
    window = np.arange(256) + 31
    inside, place = window < total, np.minimum(window, total - 1)
    np.testing.assert_array_equal(made[0], np.where(inside, decoded[place], -5))
    np.testing.assert_array_equal(made[1], np.where(inside, relative[place], -1))
    assert set(made[2]) == {total}


def test_what_is_refused():
    with pytest.raises(TypeError, match="items_per_thread must be a positive Python int"):
        coop.BlockExchange[fx.Int32, 64, 0]
    with pytest.raises(ValueError, match="not a multiple of"):
        coop.BlockMergeSort[fx.Int32, 100, 1]
    with pytest.raises(TypeError, match="takes one element type"):
        coop.BlockExchange[(fx.Int32, fx.Int32), 64, 1]
    with pytest.raises(TypeError, match="elements of BlockLoad are numbers here"):
        coop.BlockLoad[fx.Vector, 64, 1]


def ranks_of(digits: np.ndarray, descending: bool) -> np.ndarray:
    """The place of each digit in a stable sort."""
    order = np.argsort(-digits if descending else digits, kind="stable")
    found = np.empty(len(digits), np.int32)
    found[order] = np.arange(len(digits))
    return found


def in_waves(values: np.ndarray, count: int, lanes: int) -> np.ndarray:
    """What is in warp-striped order, for each thread's items: or back, with the numbers swapped."""
    return values.reshape(-1, count, lanes).swapaxes(1, 2).reshape(-1)


@pytest.mark.heavy
@pytest.mark.parametrize("policy", ["BASIC", "MATCH", "EARLY_COUNTS"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("bits", [(0, 3), (4, 12), (0, None), (5, 5)])
def test_radix_ranks(policy: str, descending: bool, bits: Any, lanes: int):
    count = 3
    chosen = coop.BlockRadixRankAlgorithm[policy]
    kind = coop.BlockRadixRank[fx.Int32, THREADS, count, chosen]
    given = integers(count, -40, 40)
    begin, end = bits
    size = (32 if end is None else end) - begin

    def work(storage: Any, x: Any) -> Any:
        named = {"begin_bit": begin, "end_bit": end, "descending": descending}
        if size > 8:
            return kind(x, storage=storage, **named)
        ranks, offsets = kind(x, storage=storage, with_prefix=True, **named)
        first = offsets[0] if 1 << size <= THREADS else offsets[1]
        return ranks, x * 0 + first

    results = 1 if size > 8 else 2
    made = on_tile(work, given, results=results, each=count, storage=kind.SharedStorage)
    made = made.reshape(results, -1)
    digits = (given.astype(np.uint32).astype(np.int64) >> begin) & ((1 << size) - 1)
    if policy == "BASIC":
        wanted = ranks_of(digits, descending)
    else:
        wanted = ranks_of(digits.reshape(-1, lanes, count).swapaxes(1, 2).reshape(-1), descending)
        wanted = in_waves(wanted, count, lanes)
    np.testing.assert_array_equal(made[0], wanted)
    if results == 2:
        each = -(-(1 << size) // THREADS)
        place = (np.arange(THREADS) * each + each - 1) % (1 << size)
        less = digits[None, :] > place[:, None] if descending else digits[None] < place[:, None]
        np.testing.assert_array_equal(made[1].reshape(-1, count)[:, 0], less.sum(axis=1))


@pytest.mark.heavy
def test_counts_of_digits(lanes: int):
    kind = coop.BlockRadixRank.with_radix_bits(9)[
        fx.Float32, THREADS, 2, coop.BlockRadixRankAlgorithm.MATCH
    ]
    assert kind.configured_radix_bits == 9
    given = integers(2, 0, 400)

    def work(storage: Any, x: Any) -> Any:
        told: list[Any] = []
        named = {"digit_extractor": lambda key: key.to(fx.Int32), "radix_bits": 9}
        values = fx.Vector.from_elements([x[0].to(fx.Float32), x[1].to(fx.Float32)])
        ranks = kind.rank(values, storage=storage, count_callback=told.append, **named)
        (counts,) = told
        first = fx.Vector.from_elements([counts[0], counts[1]])
        return ranks, first, fx.Vector.from_elements([counts[2], counts[3]])

    made = on_tile(work, given, results=3, each=2, storage=kind.SharedStorage)
    wanted = ranks_of(given.reshape(-1, lanes, 2).swapaxes(1, 2).reshape(-1), False)
    np.testing.assert_array_equal(made[0], in_waves(wanted, 2, lanes))
    counts = np.concatenate([made[1].reshape(-1, 2), made[2].reshape(-1, 2)], axis=1).reshape(-1)
    np.testing.assert_array_equal(counts, np.bincount(given, minlength=512))


def test_counts_of_each_pass():
    kind = coop.BlockRadixRank[fx.Uint8, THREADS, 1, coop.BlockRadixRankAlgorithm.MATCH]
    given = integers(1, 0, 256, np.uint8)

    def work(storage: Any, x: Any) -> Any:
        told: list[Any] = []
        ranks = kind(
            x, storage=storage, begin_bit=0, end_bit=8, radix_bits=4, count_callback=told.append
        )
        low, high = told
        return ranks, low[0], high[0]

    made = on_tile(work, given, results=3, storage=kind.SharedStorage)
    np.testing.assert_array_equal(made[0], ranks_of(given.astype(np.int64), False))
    for found, digits in ((made[1], given & 15), (made[2], given >> 4)):
        np.testing.assert_array_equal(found, np.bincount(digits, minlength=THREADS))


@pytest.mark.parametrize(
    ("named", "kind", "said"),
    [
        ({"radix_bits": 9}, ValueError, "from 1 to 8, got 9"),
        ({"digit_extractor": lambda key: key}, ValueError, "needs radix_bits="),
        ({"end_bit": 33}, ValueError, "bits 0 to 33 of keys of 32 bits"),
        ({"count_callback": print, "end_bit": 4}, ValueError, "the MATCH policies only"),
        ({"with_prefix": True}, ValueError, "with_radix_bits"),
        ({"with_prefix": True, "end_bit": 8, "radix_bits": 4}, ValueError, "for one digit"),
        ({"digit_extractor": lambda key: 4, "radix_bits": 2}, ValueError, "more than 2 bits"),
    ],
)
def test_mistakes_with_ranks(named: Any, kind: type, said: str):
    ranks = coop.BlockRadixRank[fx.Int32, THREADS, 1]
    with pytest.raises(kind, match=said):
        on_tile(
            lambda storage, x: ranks(x, storage=storage, **named), integers(1),
            storage=ranks.SharedStorage,
        )  # fmt: skip
