"""Sorting of a block's items by radix (CUB's BlockRadixSort: Merrill and Grimshaw, "High
performance and scalable radix sorting", 2011)."""

from __future__ import annotations

from typing import Any

from fly_trace import expr as fx
from fly_trace.gpu import scratch
from fly_trace.primitives.blocks import block_scans, exchange, threads

DIGIT = 4  # bits
_WORDS = 8  # of counters of a thread: 16 digits, two of them in each


def sorted_items(items: list[Any], size: int, begin: int, end: int) -> list[Any]:
    """Sorts the items of a block of `size` threads stably, by the bits from `begin` to `end` of
    their first integers. They may be in shared memory that is still read."""
    for place in range(begin, end, DIGIT):
        digits = [digit(item[0], place, end) for item in items]
        items = exchange.scatter_to_blocked(items, ranks_of(digits, size), barrier=False)
    return items


def digit(word: Any, place: Any, end: int) -> Any:
    """The digit of a key that starts at bit `place`, without bits from `end` on."""
    if word.dtype.bits == 64:
        found = (word >> place.to(fx.Uint64)).to(fx.Uint32)
    else:
        found = word.to(fx.Uint32) >> place.to(fx.Uint32)
    found = found & 15
    if end % DIGIT and end < word.dtype.bits:
        kept = fx.minimum(end - place, DIGIT)
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
