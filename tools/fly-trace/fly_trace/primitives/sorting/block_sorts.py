"""Sorting of a block's items, by radix or by a bitonic network."""

from __future__ import annotations

from typing import Any

from fly_trace import expr as fx
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.primitives.blocks import exchange, threads
from fly_trace.primitives.sorting import bitonic, ordering, radix_sort
from fly_trace.values.conversion import scalar

_WHAT = "fx.block.sort"
_MOST = 1 << 16  # items: a counter of the radix sort has 16 bits
# The bits of a key, and with how many keys of a thread a network executes fewer instructions than
# the radix sort on gfx942, in blocks of 64 to 1024 threads.
_NETWORK = {8: 0, 16: 1, 32: 8, 64: 4}


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
    Returns the keys, or a pair of keys and values. Deterministic. Cost: by radix, for each 4 bits
    of the key a pass with 4 barriers (3 in a block of one wave), which stores and loads every item
    once, and for each thread 8 counters of 32 bits; shared memory for these and for threads · n
    items. Few keys without values, compared by all of their bits, are sorted by a bitonic network
    instead (up to 8 of a thread of 32 bits, 4 of 64, 1 of 16, if n and the block are powers of
    two): for N keys log2(N) · (log2(N) + 1) / 2 steps, of which log2(W) · (log2(W) + 1) / 2, with
    W waves, store and load every key, with 2 barriers; shared memory for the keys, in a block of
    one wave none.
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
    if values is None:
        items: list[Any] = [(word,) for word in words]
    else:
        moved = exchange.listed(values if several else [values], _WHAT)
        if len(moved) != len(words):
            tracing.refuse(
                f"{_WHAT} takes {len(words)} values, as many as keys, not {describe(values)}"
            )
        items = list(zip(words, moved, strict=True))
    compares_all = begin_bit == 0 and end == max(8, dtype.bits)
    if values is None and compares_all and is_network_shorter(size, len(items), end):
        items = bitonic.sorted_block(items, size)
    else:
        items = radix_sort.sorted_items(items, size, begin_bit, end)
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


def is_network_shorter(size: int, count: int, bits: int) -> bool:
    """Whether a bitonic network sorts `count` keys of each thread with fewer instructions."""
    is_power = size & (size - 1) == 0 and count & (count - 1) == 0
    return is_power and count <= _NETWORK[bits]
