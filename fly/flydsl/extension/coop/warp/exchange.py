"""Exchanges of the items of a group of lanes, by shuffles or through shared memory."""

from __future__ import annotations

import enum
from typing import Any

from fly.flydsl.expr import gpu
from fly.flydsl.expr.gpu import lane_id, shuffle_idx
from fly.flydsl.expr.struct import Array, Struct
from fly.flydsl.extension.coop._items import blocked, integer, items_of, shaped, striped
from fly.flydsl.extension.coop.warp._tile import WarpMeta, WarpTile

__all__ = ["WarpExchange", "WarpExchangeAlgorithm"]


class WarpExchangeAlgorithm(enum.Enum):
    """SHUFFLE: each item is the one that is wanted of all items of another lane. SHARED: the tile
    is in shared memory."""

    SHUFFLE = "shuffle"
    SHARED = "shared"

    Shuffle = SHUFFLE
    Shared = SHARED


def gathered(items: list[Any], lanes: list[Any], numbers: list[Any], width: int) -> list[Any]:
    """For each of `lanes`, the item with the number in `numbers` of that lane of the group."""
    base = (lane_id() // width) * width
    found = []
    for lane, number in zip(lanes, numbers, strict=True):
        moved = [shuffle_idx(item, base + lane, width) for item in items]
        one = moved[0]
        for at, other in enumerate(moved[1:], 1):
            one = (number == at).select(other, one)
        found.append(one)
    return found


def blocked_of(items: list[Any], width: int) -> list[Any]:
    """The items of a tile in striped order, in blocked order."""
    places = blocked(lane_id() % width, len(items))
    return gathered(items, [at % width for at in places], [at // width for at in places], width)


def striped_of(items: list[Any], width: int) -> list[Any]:
    """The items of a tile in blocked order, in striped order."""
    count = len(items)
    places = striped(lane_id() % width, count, width)
    return gathered(items, [at // count for at in places], [at % count for at in places], width)


class _WarpExchangeMeta(WarpMeta):
    _policies = WarpExchangeAlgorithm
    _policy = WarpExchangeAlgorithm.SHARED


class WarpExchange(WarpTile, metaclass=_WarpExchangeMeta):
    """`WarpExchange[dtype, width, items_per_thread, policy]`: items go from the lanes that have
    them to others. In blocked order, item `i` of lane `l` of `n` items each is at `l * n + i`; in
    striped order at `l + i * width`. SHUFFLE takes `width` items of each lane, as FlyDSL's does. A
    second use of the storage needs a barrier before it."""

    @classmethod
    def _storage(cls) -> Any:
        if cls.algorithm is WarpExchangeAlgorithm.SHARED:
            return Struct["slots" : Array[cls.dtype, cls.warp_threads * cls.items_per_thread]]
        if cls.items_per_thread != cls.warp_threads:
            raise ValueError("WarpExchange with SHUFFLE takes as many items as the group has lanes")
        return super()._storage()

    @classmethod
    def blocked_to_striped(cls, value: Any, *, storage: Any = None) -> Any:
        items = cls._items(value, storage)
        if cls.algorithm is WarpExchangeAlgorithm.SHUFFLE:
            return shaped(striped_of(items, cls.warp_threads), value)
        return shaped(cls._moved(items, cls._blocked(), cls._striped(), storage), value)

    @classmethod
    def striped_to_blocked(cls, value: Any, *, storage: Any = None) -> Any:
        items = cls._items(value, storage)
        if cls.algorithm is WarpExchangeAlgorithm.SHUFFLE:
            return shaped(blocked_of(items, cls.warp_threads), value)
        return shaped(cls._moved(items, cls._striped(), cls._blocked(), storage), value)

    @classmethod
    def scatter_to_striped(cls, value: Any, ranks: Any, *, storage: Any = None) -> Any:
        """Each item goes to the place of its rank; the ranks are a permutation of the tile."""
        if cls.algorithm is WarpExchangeAlgorithm.SHUFFLE:
            raise ValueError("scatter_to_striped is there with SHARED only")
        items = cls._items(value, storage)
        given = items_of(ranks, None, cls.items_per_thread, "ranks")
        if any(one.dtype.is_float for one in given):
            raise TypeError("ranks are integers")
        places = [integer(one) for one in given]
        return shaped(cls._moved(items, places, cls._striped(), storage), value)

    @classmethod
    def _items(cls, value: Any, storage: Any) -> list[Any]:
        cls._check(storage)
        if storage is None and cls.algorithm is WarpExchangeAlgorithm.SHARED:
            raise TypeError("WarpExchange with SHARED needs storage=, of its SharedStorage")
        return items_of(value, cls.dtype, cls.items_per_thread, cls.__name__)

    @classmethod
    def _blocked(cls) -> list[Any]:
        return blocked(lane_id() % cls.warp_threads, cls.items_per_thread)

    @classmethod
    def _striped(cls) -> list[Any]:
        return striped(lane_id() % cls.warp_threads, cls.items_per_thread, cls.warp_threads)

    @classmethod
    def _moved(
        cls, items: list[Any], places: list[Any], wanted: list[Any], storage: Any
    ) -> list[Any]:
        for place, item in zip(places, items, strict=True):
            storage.slots[place] = item
        gpu.barrier(scope=gpu.BarrierScope.Subgroup)
        return [storage.slots[place] for place in wanted]
