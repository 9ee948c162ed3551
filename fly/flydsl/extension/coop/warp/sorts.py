"""Sorts of the keys of a group of lanes, with values."""

from __future__ import annotations

from typing import Any

from fly_trace.values.dtypes import I32

from fly.flydsl.expr.gpu import lane_id
from fly.flydsl.expr.typing import Vector as Vectors
from fly.flydsl.extension.coop._common import resolve_warp_width
from fly.flydsl.extension.coop._items import blocked, is_sequence, items_of, striped, truth
from fly.flydsl.extension.coop.warp._network import network, ordering, origins
from fly.flydsl.extension.coop.warp._tile import WarpMeta, WarpTile
from fly.flydsl.extension.coop.warp.exchange import blocked_of, gathered

__all__ = ["WarpBitonicSort", "WarpMergeSort", "warp_bitonic_sort", "warp_merge_sort"]


def warp_bitonic_sort(
    keys: Any,
    values: Any = None,
    *,
    width: int | None = None,
    compare_op: Any,
    valid_items: Any = None,
) -> Any:
    """Sorts the keys of a group of lanes, a sequence of each lane, in striped order, with as many
    values. `compare_op(a, b)` is a strict weak order. The first `valid_items` keys are sorted; what
    is behind them is of no use. Equal keys may change their order."""
    width = resolve_warp_width(width, "warp_bitonic_sort width")
    return _sorted(keys, values, width, compare_op, valid_items, True, "warp_bitonic_sort")


def warp_merge_sort(
    keys: Any,
    values: Any = None,
    *,
    width: int | None = None,
    compare_op: Any,
    valid_items: Any = None,
) -> Any:
    """As `warp_bitonic_sort`, in blocked order. Equal keys keep their order."""
    width = resolve_warp_width(width, "warp_merge_sort width")
    return _sorted(keys, values, width, compare_op, valid_items, False, "warp_merge_sort")


def _sorted(
    keys: Any, values: Any, width: int, compare_op: Any, valid_items: Any, is_striped: bool,
    what: str,
) -> Any:  # fmt: skip
    if not callable(compare_op):
        raise TypeError(f"compare_op of {what} is a function of two keys")
    if not is_sequence(keys):
        raise TypeError(f"{what} takes a sequence of keys; write [key] for one")
    given = items_of(keys, None, None, what)
    count = len(given)
    if isinstance(valid_items, int) and not 0 <= valid_items <= width * count:
        raise ValueError(f"valid_items must be between 0 and {width * count}, got {valid_items}")
    lane, padded = lane_id() % width, 1 << (count - 1).bit_length()
    places = striped(lane, count, width) if is_striped else blocked(lane, count)
    pads, is_stable = padded > count, not is_striped
    end = None if valid_items is None else I32(valid_items)
    if end is None and pads:
        end = I32(width * count)
    needs_origin = is_stable or values is not None or end is not None
    was = origins(places, padded)
    items = [*given, *given[-1:] * (padded - count)]
    tile = [[key, at] if needs_origin else [key] for key, at in zip(items, was, strict=True)]
    is_guarded = valid_items is not None
    before = ordering(lambda a, b: truth(compare_op(a, b)), is_stable, end, is_guarded)
    # What pads the lanes comes last: it is behind all items of a striped tile, whose first items
    # are then put into blocked order.
    network(tile, before, width, is_striped or pads)
    parts = [list(column)[:count] for column in zip(*tile, strict=True)]
    if pads and not is_striped:
        parts = [blocked_of(column, width) for column in parts]
    found = Vectors.from_elements(parts[0])
    if values is None:
        return found
    moved = items_of(values, None, count, "values")
    source = parts[1]
    if end is not None:  # what is behind the last valid key may come from beyond the tile
        source = [(at < width * count).select(at, I32(0)) for at in source]
    lanes = [at % width if is_striped else at // count for at in source]
    numbers = [at // width if is_striped else at % count for at in source]
    return found, Vectors.from_elements(gathered(moved, lanes, numbers, width))


class _SortMeta(WarpMeta):
    _pairs = True


class _Sort(WarpTile):
    @classmethod
    def _sorted(
        cls, function: Any, keys: Any, values: Any, compare_op: Any, valid_items: Any, storage: Any
    ) -> Any:
        cls._check(storage)
        if (values is None) != (cls.value_dtype is None):
            raise TypeError(f"{cls.__name__} with values is specialized for (key, value types)")
        if not is_sequence(keys):
            raise TypeError(f"{cls.__name__} takes a sequence of keys; write [key] for one")
        keys = cls._prepared(keys)
        values = None if values is None else cls._prepared(values, cls.value_dtype)
        named = {"compare_op": compare_op, "valid_items": valid_items}
        return function(keys, values, width=cls.warp_threads, **named)


class WarpBitonicSort(_Sort, metaclass=_SortMeta):
    """`WarpBitonicSort[key or (key, value), width, items_per_thread].sort(keys, values, …)`: as
    `warp_bitonic_sort`."""

    @classmethod
    def sort(
        cls,
        keys: Any,
        values: Any = None,
        *,
        compare_op: Any,
        valid_items: Any = None,
        storage: Any = None,
    ) -> Any:
        return cls._sorted(warp_bitonic_sort, keys, values, compare_op, valid_items, storage)


class WarpMergeSort(_Sort, metaclass=_SortMeta):
    """`WarpMergeSort[key or (key, value), width, items_per_thread].sort(keys, values, …)`: as
    `warp_merge_sort`."""

    @classmethod
    def sort(
        cls,
        keys: Any,
        values: Any = None,
        *,
        compare_op: Any,
        valid_items: Any = None,
        storage: Any = None,
    ) -> Any:
        return cls._sorted(warp_merge_sort, keys, values, compare_op, valid_items, storage)
