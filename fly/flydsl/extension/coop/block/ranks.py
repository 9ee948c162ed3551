"""Ranks of a block's keys by digits of their bits."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from fly_trace.values.dtypes import I32, U32, U64

from fly.flydsl.expr.gpu import barrier
from fly.flydsl.expr.typing import Vector as Vectors
from fly.flydsl.extension.coop._common import number
from fly.flydsl.extension.coop._items import (
    blocked,
    converted,
    items_of,
    shaped,
    warp_striped,
)
from fly.flydsl.extension.coop.block._bits import word_of
from fly.flydsl.extension.coop.block._merging import merged
from fly.flydsl.extension.coop.block._tile import Tile, TileMeta, struct_of

__all__ = ["BlockRadixRank", "BlockRadixRankAlgorithm"]


class BlockRadixRankAlgorithm(enum.Enum):
    """FlyDSL's ways to rank digits. Here all are a stable merge sort. BASIC and MEMOIZE take items
    in blocked order, the others in warp-striped order: of a wave's tile, the lane comes first."""

    BASIC = "basic"
    MEMOIZE = "memoize"
    MATCH = "match"
    MATCH_EARLY_COUNTS_ANY = "match_early_counts_any"
    MATCH_EARLY_COUNTS_ATOMIC_OR = "match_early_counts_atomic_or"
    EARLY_COUNTS = MATCH_EARLY_COUNTS_ANY

    Basic = BASIC
    Memoize = MEMOIZE
    Match = MATCH
    MatchEarlyCountsAny = MATCH_EARLY_COUNTS_ANY  # noqa: PIE796  two spellings of an alias
    MatchEarlyCountsAtomicOr = MATCH_EARLY_COUNTS_ATOMIC_OR
    EarlyCounts = EARLY_COUNTS


_IN_BLOCKED_ORDER = (BlockRadixRankAlgorithm.BASIC, BlockRadixRankAlgorithm.MEMOIZE)


class _BlockRadixRankMeta(TileMeta):
    _policies = BlockRadixRankAlgorithm

    def __call__(cls: Any, keys: Any, **named: Any) -> Any:
        return cls.rank(keys, **named)


class BlockRadixRank(Tile, metaclass=_BlockRadixRankMeta):
    """`BlockRadixRank[dtype, block_size, items_per_thread, policy](keys, storage=…)`: the place of
    each key, if the keys were sorted stably by their unsigned bits `begin_bit` to `end_bit`, or by
    what `digit_extractor(key)` returns, an integer of `radix_bits` bits. A second use of the
    storage needs a barrier before it."""

    configured_radix_bits: int = 8

    @classmethod
    def with_radix_bits(cls, radix_bits: int) -> Any:
        """A class, not specialized yet, for digits of up to that many bits."""
        if cls.block_threads is not None:
            raise TypeError(f"{cls.__name__} is specialized already: choose radix bits before")
        if type(radix_bits) is not int or not 1 <= radix_bits < 31:
            raise ValueError(f"radix_bits must be a Python int from 1 to 30, got {radix_bits!r}")
        body = {"configured_radix_bits": radix_bits}
        return type(cls)(f"{cls.__name__}[radix_bits={radix_bits}]", (cls,), body)

    @classmethod
    def rank(
        cls,
        keys: Any,
        *,
        storage: Any,
        descending: bool = False,
        begin_bit: int = 0,
        end_bit: int | None = None,
        digit_extractor: Callable[[Any], Any] | None = None,
        radix_bits: int | None = None,
        count_callback: Callable[[Any], Any] | None = None,
        with_prefix: bool = False,
    ) -> Any:
        """The ranks, one i32 or a vector; and with `with_prefix`, the ranks of the first keys of
        digits, a vector of `ceil(digits / threads)` consecutive ones for each thread. The callback
        gets as many counts of digits, 0 beyond the last digit, for each `radix_bits` of the range.
        What is behind the last digit among the ranks is of no use."""
        if cls.block_threads is None:
            raise TypeError(f"specialize first, e.g. {cls.__name__}[fx.Int32, 256, 4]")
        first, last = cls._range(begin_bit, end_bit, digit_extractor, radix_bits)
        is_match = cls.algorithm not in _IN_BLOCKED_ORDER
        if count_callback is not None and not is_match:
            raise ValueError("count_callback is there with the MATCH policies only")
        is_told = count_callback is not None or with_prefix
        if is_told and last - first > cls.configured_radix_bits:
            raise ValueError(
                f"{last - first} bits are more than the {cls.configured_radix_bits} of a digit: "
                "use BlockRadixRank.with_radix_bits(bits)"
            )
        step = radix_bits or max(1, last - first)
        passes = range(first, last, step) if last > first else range(first, first + 1)
        if with_prefix and len(passes) > 1:
            raise ValueError("with_prefix is for one digit: radix_bits has all bits of the range")
        items = items_of(keys, cls.dtype, cls.count, cls.__name__)
        if count_callback is not None and len(passes) > 1:
            for bit in passes:
                end = min(bit + step, last)
                cls._ranks(cls._digits(items, bit, end, digit_extractor), storage, descending)
                count_callback(cls._bins(storage, end - bit, descending)[0])
                barrier()
        ranks = cls._ranks(cls._digits(items, first, last, digit_extractor), storage, descending)
        found = shaped(ranks, keys)
        if not is_told:
            return found
        counts, prefix = cls._bins(storage, last - first, descending)
        if count_callback is not None and len(passes) == 1:
            count_callback(counts)
        return (found, prefix) if with_prefix else found

    @classmethod
    def _range(
        cls, begin: int, end: int | None, extractor: Any, radix_bits: int | None
    ) -> tuple[int, int]:
        """The first bit, and the one behind the last. Checks the options."""
        most = cls.configured_radix_bits
        if radix_bits is not None:
            if type(radix_bits) is not int or not 1 <= radix_bits <= most:
                raise ValueError(
                    f"radix_bits must be a Python int from 1 to {most}, got {radix_bits!r}: "
                    "use BlockRadixRank.with_radix_bits(bits)"
                )
            end = begin + radix_bits if end is None else end
        elif extractor is not None:
            raise ValueError("digit_extractor needs radix_bits=")
        if extractor is not None:
            last = begin + (radix_bits or 0)
            if type(begin) is not int or begin < 0 or end != last:
                raise ValueError("digit_extractor gives one digit: end_bit is radix_bits behind")
            return begin, last
        if cls.dtype.kind not in ("int", "uint"):
            raise TypeError(f"keys of {cls.dtype.__name__} need digit_extractor= and radix_bits=")
        end = cls.dtype.bits if end is None else end
        if (
            type(begin) is not int
            or type(end) is not int
            or not 0 <= begin <= end <= cls.dtype.bits
        ):
            raise ValueError(f"bits {begin} to {end} of keys of {cls.dtype.bits} bits")
        return begin, end

    @classmethod
    def _digits(cls, items: list[Any], begin: int, end: int, extractor: Any) -> list[Any]:
        word = cls._word()
        if extractor is None:
            mask = (1 << (end - begin)) - 1
            return [(converted(word_of(one), word) >> word(begin % word.bits)) & word(mask)
                    for one in items]  # fmt: skip
        found = []
        for one in items:
            digit = extractor(one)
            if isinstance(digit, int) and not 0 <= digit < 1 << (end - begin):
                raise ValueError(f"the digit {digit} has more than {end - begin} bits")
            digit = I32(digit) if isinstance(digit, int) else number(digit)
            if digit.dtype.is_float:
                raise TypeError("digit_extractor returns an integer")
            found.append(converted(digit, word))
        return found

    @classmethod
    def _places(cls) -> list[Any]:
        """Where the items are in the order in which equal digits stay."""
        if cls.algorithm in _IN_BLOCKED_ORDER:
            return blocked(cls.thread(), cls.count)
        return warp_striped(cls.thread(), cls.count, cls.warp_threads)

    @classmethod
    def _ranks(cls, digits: list[Any], storage: Any, descending: bool) -> list[Any]:
        """The ranks of the thread's items. `storage.digits` has the sorted digits then."""
        own, thread = cls._places(), cls.thread()
        places = blocked(thread, cls.count)
        if cls.algorithm not in _IN_BLOCKED_ORDER:
            for place, digit in zip(own, digits, strict=True):
                storage.digits[place] = digit
            barrier()
            digits = [storage.digits[place] for place in places]
            barrier()
        less = (lambda a, b: a > b) if descending else (lambda a, b: a < b)
        _, was = merged(digits, less, storage.digits, storage.order, thread, cls.tile, None)
        barrier()
        for place, at in zip(places, was, strict=True):
            storage.order[at] = place
        barrier()
        return [storage.order[place] for place in own]

    @classmethod
    def _bins(cls, storage: Any, bits: int, descending: bool) -> tuple[Any, Any]:
        """For the thread's digits, how many keys have them, and the rank of the first of these."""
        word, bins = cls._word(), 1 << bits
        each = -(-bins // cls.block_threads)
        counts, prefix = [], []
        for at in range(each):
            digit = cls.thread() * each + at
            own = converted(digit % bins, word)
            start = cls._leading(storage, lambda one, own=own: _before(one, own, descending))
            end = cls._leading(storage, lambda one, own=own: ~_before(own, one, descending))
            counts.append((digit < bins).select(end - start, I32(0)))
            prefix.append(start)
        return Vectors.from_elements(counts), Vectors.from_elements(prefix)

    @classmethod
    def _leading(cls, storage: Any, holds: Callable[[Any], Any]) -> Any:
        """How many sorted digits a condition holds for, which holds for the first ones."""
        low, high = I32(0), I32(cls.tile)
        for _ in range(cls.tile.bit_length()):
            middle = (low + high) // 2
            goes = (low < high) & holds(storage.digits[(low < high).select(middle, I32(0))])
            low, high = (
                goes.select(middle + 1, low),
                ((low < high) & ~goes).select(middle, high),
            )
        return low

    @classmethod
    def _word(cls) -> Any:
        return U64 if cls.dtype.bits > 32 and cls.dtype.kind in ("int", "uint") else U32

    @classmethod
    def _storage(cls) -> Any:
        return struct_of(digits=(cls._word(), cls.tile), order=(I32, cls.tile))


def _before(one: Any, other: Any, descending: bool) -> Any:
    return one > other if descending else one < other
