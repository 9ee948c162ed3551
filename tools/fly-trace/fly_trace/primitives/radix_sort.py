"""Sorting of a block's items by radix (CUB's BlockRadixSort: Merrill and Grimshaw, "High
performance and scalable radix sorting", 2011)."""

from __future__ import annotations

from typing import Any

from fly_trace import expr as fx
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.gpu import scratch
from fly_trace.primitives import block_scans, exchange, ordering, threads
from fly_trace.values.conversion import scalar

_WHAT = "fx.block.sort"
_DIGIT = 4  # bits
_WORDS = 8  # of counters of a thread: 16 digits, two of them in each
_MOST = 1 << 16  # items: a counter has 16 bits


def sort(
    keys: Any,
    values: Any = None,
    *,
    descending: bool = False,
    begin_bit: int = 0,
    end_bit: int | None = None,
    valid: Any = None,
    barrier: bool = True,
) -> Any:
    """Sorts the keys of the block, stably.

    keys: an integer, float or bool of at most 64 bits, or a list of n of them, in blocked
    arrangement; so is the result. -0.0 is before 0.0; NaN is after all numbers. values: what moves
    with each key: a number, a vector, or a tuple, dictionary or object of them. begin_bit, end_bit:
    order by these bits of the keys alone, of integers that are not negative. valid: how many items
    there are; what is beyond comes last, and has no certain values. barrier: as of `reduce`.
    Returns the keys, or a pair of keys and values. Deterministic. Cost: for each 4 bits of the key
    a pass with 4 barriers (3 in a block of one wave), which stores and loads every item once, and
    for each thread 8 counters of 32 bits; shared memory for these and for threads · n items.
    """
    size = threads.size(_WHAT)
    several = isinstance(keys, list)
    given = threads.items_of(keys, _WHAT)
    if size * len(given) >= _MOST:
        tracing.refuse(f"{_WHAT} takes less than {_MOST} items, not {size * len(given)}")
    dtype = scalar(given[0], f"a key of {_WHAT}").dtype
    end = end_bits(begin_bit, end_bit, max(8, dtype.bits))
    words = [ordering.encoded(key, descending, _WHAT) for key in given]
    if valid is not None:
        most = words[0].dtype.range[1]
        places = exchange.blocked_places(len(words))
        words = [
            fx.where(place < valid, word, most) for word, place in zip(words, places, strict=True)
        ]
    items: list[Any]
    if values is None:
        items = [(word,) for word in words]
    else:
        moved = exchange.listed(values if several else [values], _WHAT)
        if len(moved) != len(words):
            tracing.refuse(
                f"{_WHAT} takes {len(words)} values, as many as keys, not {describe(values)}"
            )
        items = list(zip(words, moved, strict=True))
    for place in range(begin_bit, end, _DIGIT):
        digits = [digit(item[0], place, end) for item in items]
        items = exchange.scatter_to_blocked(items, ranks_of(digits, size), barrier=False)
    if barrier:
        fx.barrier()
    found = [ordering.decoded(item[0], dtype, descending) for item in items]
    if values is None:
        return found if several else found[0]
    return (found, [item[1] for item in items]) if several else (found[0], items[0][1])


def end_bits(begin: Any, end: Any, bits: int) -> int:
    """The bit behind the last one that is compared."""
    last = bits if end is None else end
    if not isinstance(begin, int) or not isinstance(last, int) or not 0 <= begin < last <= bits:
        tracing.refuse(
            f"{_WHAT} compares bits from begin_bit to end_bit, Python ints from 0 to {bits}, not"
            f" {describe(begin)} to {describe(last)}"
        )
    return last


def digit(word: Any, place: Any, end: int) -> Any:
    """The digit of a key that starts at bit `place`, without bits from `end` on."""
    if word.dtype.bits == 64:
        found = (word >> place.to(fx.Uint64)).to(fx.Uint32)
    else:
        found = word.to(fx.Uint32) >> place.to(fx.Uint32)
    found = found & 15
    if end % _DIGIT and end < word.dtype.bits:
        kept = fx.minimum(end - place, _DIGIT)
        found = found & ((fx.Uint32(1) << kept.to(fx.Uint32)) - 1)
    return found


def ranks_of(digits: list[Any], size: int) -> list[Any]:
    """The place of each item in the order of digits; items of one digit stay in order."""
    counters = scratch.array("counters", fx.Uint32, _WORDS * size)
    tid = threads.index()
    for word in fx.range_constexpr(_WORDS):
        counters[word * size + tid] = 0
    places, before = [], []
    for one in digits:
        place = (one & 7).to(fx.Int32) * size + tid
        shift = (one >> 3) * 16
        count = counters[place]
        counters[place] = count + (fx.Uint32(1) << shift)
        places = [*places, (place, shift)]
        before = [*before, count >> shift & 0xFFFF]
    fx.barrier()
    # Each thread adds eight consecutive counters: by digit, then by thread. The lower halves are
    # those of the digits 0 to 7, all of which are before the others.
    own = [counters[tid * _WORDS + word] for word in range(_WORDS)]
    sums = block_scans.running(own, "add")
    lower, total = block_scans.exclusive_scan(sums[-1], total=True, barrier=False)
    lower = lower + (total << 16)
    counters[tid * _WORDS] = lower
    for word in fx.range_constexpr(1, _WORDS):
        counters[tid * _WORDS + word] = lower + sums[word - 1]
    fx.barrier()
    found = [counters[place] >> shift & 0xFFFF for place, shift in places]
    return [(first + count).to(fx.Int32) for first, count in zip(found, before, strict=True)]
