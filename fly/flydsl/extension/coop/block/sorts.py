"""Sorts of a block's keys, with values, and the selection of the first of them."""

from __future__ import annotations

from typing import Any

from fly_trace.values.dtypes import BOOL, I32

from fly.flydsl.expr.gpu import barrier
from fly.flydsl.extension.coop._items import (
    blocked,
    converted,
    integer,
    items_of,
    shaped,
    striped,
    truth,
)
from fly.flydsl.extension.coop._policies import policies
from fly.flydsl.extension.coop.block._bits import bits_less
from fly.flydsl.extension.coop.block._merging import Less, merged
from fly.flydsl.extension.coop.block._tile import Tile, TileMeta, struct_of

__all__ = [
    "BlockMergeSort",
    "BlockMergeSortAlgorithm",
    "BlockRadixSort",
    "BlockRadixSortAlgorithm",
    "BlockTopK",
    "BlockTopKAlgorithm",
]

BlockMergeSortAlgorithm = policies("BlockMergeSortAlgorithm", ("MERGE",), __name__)
# FlyDSL's ways to sort by bits. Here both are a merge sort by these bits, with the same results.
BlockRadixSortAlgorithm = policies(
    "BlockRadixSortAlgorithm", ("RADIX_SCAN", "RADIX_DIGIT"), __name__
)
# MERGE: sorted. AIR: in the order of the input.
BlockTopKAlgorithm = policies("BlockTopKAlgorithm", ("MERGE", "AIR"), __name__)


def _order(descending: bool, compare_op: Any) -> Less:
    if compare_op is None:
        return (lambda a, b: a > b) if descending else (lambda a, b: a < b)
    if descending:
        return lambda a, b: truth(compare_op(b, a))
    return lambda a, b: truth(compare_op(a, b))


class _Sorting(Tile):
    @classmethod
    def _storage(cls) -> Any:
        arrays = {"keys": (cls.dtype, cls.tile), "order": (I32, cls.tile)}
        if cls.value_dtype is not None:
            arrays["values"] = (cls.value_dtype, cls.tile)
        return struct_of(**arrays)

    @classmethod
    def _values(cls, values: Any) -> list[Any] | None:
        if values is None:
            return None
        if cls.value_dtype is None:
            raise TypeError(f"{cls.__name__} with values is specialized for (key type, value type)")
        return items_of(values, cls.value_dtype, cls.count, "values")

    @classmethod
    def _sorted(
        cls, keys: Any, values: Any, less: Less, storage: Any, valid: Any
    ) -> tuple[list[Any], list[Any] | None, list[Any]]:
        """The sorted keys, their values, and where each was."""
        items = items_of(keys, cls.dtype, cls.count, cls.__name__)
        given, thread = cls._values(values), cls.thread()
        found, was = merged(items, less, storage.keys, storage.order, thread, cls.tile, valid)
        if given is None:
            return found, None, was
        for place, one in zip(blocked(thread, cls.count), given, strict=True):
            storage.values[place] = one
        barrier()
        return found, [storage.values[place] for place in was], was


class _BlockMergeSortMeta(TileMeta):
    _policies = BlockMergeSortAlgorithm
    _pairs = True

    def __call__(
        cls: Any,
        keys: Any,
        values: Any = None,
        *,
        storage: Any,
        descending: bool = False,
        compare_op: Any = None,
        valid_items: Any = None,
        oob_default: Any = None,
    ) -> Any:
        less = _order(descending, compare_op)
        found, moved, was = cls._sorted(keys, values, less, storage, valid_items)
        if valid_items is not None:
            valid = [at < integer(valid_items) for at in was]
            if oob_default is not None:
                fill = converted(oob_default, cls.dtype)
                found = [is_.select(one, fill) for is_, one in zip(valid, found, strict=True)]
            if moved is not None:
                nothing = cls.value_dtype(0)
                moved = [is_.select(one, nothing) for is_, one in zip(valid, moved, strict=True)]
        result = shaped(found, keys)
        return result if moved is None else (result, shaped(moved, values))


class BlockMergeSort(_Sorting, metaclass=_BlockMergeSortMeta):
    """`BlockMergeSort[key or (key, value), block_size, items_per_thread](keys, values, …)`: a
    stable sort in blocked order by `compare_op(a, b)`, a strict weak order. Keys from `valid_items`
    on come last, as `oob_default`, with values 0."""

    @classmethod
    def sort(cls: Any, keys: Any, values: Any = None, **named: Any) -> Any:
        return cls(keys, values, **named)

    @classmethod
    def stable_sort(cls: Any, keys: Any, values: Any = None, **named: Any) -> Any:
        return cls(keys, values, **named)


class _BlockRadixSortMeta(TileMeta):
    _policies = BlockRadixSortAlgorithm
    _pairs = True

    def __call__(
        cls: Any,
        keys: Any,
        values: Any = None,
        *,
        storage: Any,
        descending: bool = False,
        begin_bit: int = 0,
        end_bit: int | None = None,
        decomposer: Any = None,
        radix_bits: int | None = None,
        blocked_to_striped: bool = False,
    ) -> Any:
        if radix_bits is not None and (not isinstance(radix_bits, int) or radix_bits < 1):
            raise ValueError(f"radix_bits must be a positive Python int, got {radix_bits!r}")
        less = bits_less(descending, begin_bit, end_bit, decomposer)
        found, moved, _ = cls._sorted(keys, values, less, storage, None)
        if blocked_to_striped:
            places = striped(cls.thread(), cls.count, cls.block_threads)
            found = [storage.keys[place] for place in places]
            if moved is not None:
                moved = [storage.values[storage.order[place]] for place in places]
        result = shaped(found, keys)
        return result if moved is None else (result, shaped(moved, values))


class BlockRadixSort(_Sorting, metaclass=_BlockRadixSortMeta):
    """`BlockRadixSort[key or (key, value), block_size, items_per_thread](keys, values, …)`: a
    stable sort by bits `begin_bit` to `end_bit` of the keys' ordered bits, or of those of the
    fields that `decomposer(key)` returns, the last of which has bit 0. `radix_bits` has no effect
    on the result, nor on how it is computed here."""

    @classmethod
    def sort_blocked_to_striped(cls: Any, keys: Any, values: Any = None, **named: Any) -> Any:
        return cls(keys, values, blocked_to_striped=True, **named)


class _BlockTopKMeta(TileMeta):
    _policies = BlockTopKAlgorithm
    _pairs = True

    def __call__(
        cls: Any,
        keys: Any,
        k: Any,
        values: Any = None,
        *,
        storage: Any,
        largest: bool = True,
        num_valid: Any = None,
        compare_op: Any = None,
    ) -> Any:
        is_air = cls.algorithm is BlockTopKAlgorithm.AIR
        if is_air and compare_op is not None:
            raise TypeError("BlockTopK with AIR orders keys by their bits; MERGE takes compare_op")
        less = bits_less(largest, 0, None, None) if is_air else _order(largest, compare_op)
        found, moved, was = cls._sorted(keys, values, less, storage, num_valid)
        places = blocked(cls.thread(), cls.count)
        valid = [place < integer(k) for place in places]
        if is_air:
            found, moved = cls._in_order(found, moved, was, storage, k)
        flags: list[Any] = [BOOL(one) if isinstance(one, bool) else one for one in valid]
        made = shaped(found, keys), shaped(flags, keys)
        return made if moved is None else (made[0], shaped(moved, values), made[1])


class BlockTopK(_Sorting, metaclass=_BlockTopKMeta):
    """`BlockTopK[key or (key, value), block_size, items_per_thread, policy](keys, k, values, …)`:
    the `k` largest or smallest keys, in the first places of the tile, and flags of these places.
    Of equal keys the first ones."""

    @classmethod
    def max_keys(cls: Any, keys: Any, k: Any, num_valid: Any = None, *, storage: Any) -> Any:
        return cls(keys, k, storage=storage, largest=True, num_valid=num_valid)

    @classmethod
    def min_keys(cls: Any, keys: Any, k: Any, num_valid: Any = None, *, storage: Any) -> Any:
        return cls(keys, k, storage=storage, largest=False, num_valid=num_valid)

    @classmethod
    def max_pairs(
        cls: Any, keys: Any, values: Any, k: Any, num_valid: Any = None, *, storage: Any
    ) -> Any:
        return cls(keys, k, values, storage=storage, largest=True, num_valid=num_valid)

    @classmethod
    def min_pairs(
        cls: Any, keys: Any, values: Any, k: Any, num_valid: Any = None, *, storage: Any
    ) -> Any:
        return cls(keys, k, values, storage=storage, largest=False, num_valid=num_valid)

    @classmethod
    def _in_order(
        cls, keys: list[Any], values: list[Any] | None, was: list[Any], storage: Any, k: Any
    ) -> tuple[list[Any], list[Any] | None]:
        """The first `k` of the sorted items, in the order in which they were given: another sort,
        by where they were."""
        thread, count = cls.thread(), cls.count
        places = blocked(thread, count)
        # An item that is not selected comes behind all.
        rank = [
            (place < integer(k)).select(at, at + cls.tile)
            for place, at in zip(places, was, strict=True)
        ]
        barrier()
        for number, (place, key) in enumerate(zip(places, keys, strict=True)):
            storage.keys[place] = key
            if values is not None:
                storage.values[place] = values[number]
        _, source = merged(
            rank, lambda a, b: a < b, storage.ranks, storage.order, thread, cls.tile, None
        )
        found = [storage.keys[place] for place in source]
        if values is None:
            return found, None
        return found, [storage.values[place] for place in source]

    @classmethod
    def _storage(cls) -> Any:
        arrays = {"keys": (cls.dtype, cls.tile), "order": (I32, cls.tile)}
        if cls.algorithm is BlockTopKAlgorithm.AIR:
            arrays["ranks"] = (I32, cls.tile)
        if cls.value_dtype is not None:
            arrays["values"] = (cls.value_dtype, cls.tile)
        return struct_of(**arrays)
