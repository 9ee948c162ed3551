"""Exchanges of the items of a block's threads."""

from __future__ import annotations

from typing import Any

from fly.flydsl.expr.gpu import barrier
from fly.flydsl.extension.coop._items import (
    blocked,
    both,
    converted,
    integer,
    items_of,
    put,
    shaped,
    striped,
    truth,
    warp_striped,
)
from fly.flydsl.extension.coop._policies import policies
from fly.flydsl.extension.coop.block._tile import Tile, TileMeta, struct_of

__all__ = ["BlockExchange", "BlockExchangeAlgorithm"]

# SHARED_MEMORY: the whole tile is in shared memory. WARP_TIME_SLICING: one part of it after
# another, of a wave's items.
BlockExchangeAlgorithm = policies(
    "BlockExchangeAlgorithm", ("SHARED_MEMORY", "WARP_TIME_SLICING"), __name__
)


class _BlockExchangeMeta(TileMeta):
    _policies = BlockExchangeAlgorithm


class BlockExchange(Tile, metaclass=_BlockExchangeMeta):
    """`BlockExchange[dtype, block_size, items_per_thread, policy]`: items go from the threads that
    have them to others. A second use of the storage needs a barrier before it."""

    @classmethod
    def _window(cls) -> int:
        is_whole = cls.algorithm is BlockExchangeAlgorithm.SHARED_MEMORY
        return cls.tile if is_whole else cls.warp_threads * cls.count

    @classmethod
    def _storage(cls) -> Any:
        return struct_of(slots=(cls.dtype, cls._window()))

    @classmethod
    def blocked_to_striped(cls, value: Any, *, storage: Any) -> Any:
        thread = cls.thread()
        to = striped(thread, cls.count, cls.block_threads)
        return cls._moved(value, blocked(thread, cls.count), to, storage)

    @classmethod
    def striped_to_blocked(cls, value: Any, *, storage: Any) -> Any:
        thread = cls.thread()
        at = striped(thread, cls.count, cls.block_threads)
        return cls._moved(value, at, blocked(thread, cls.count), storage)

    @classmethod
    def blocked_to_warp_striped(cls, value: Any, *, storage: Any) -> Any:
        thread = cls.thread()
        to = warp_striped(thread, cls.count, cls.warp_threads)
        return cls._moved(value, blocked(thread, cls.count), to, storage)

    @classmethod
    def warp_striped_to_blocked(cls, value: Any, *, storage: Any) -> Any:
        thread = cls.thread()
        at = warp_striped(thread, cls.count, cls.warp_threads)
        return cls._moved(value, at, blocked(thread, cls.count), storage)

    @classmethod
    def scatter_to_blocked(cls, value: Any, ranks: Any, *, storage: Any) -> Any:
        """Each item goes to the place of its rank; the ranks are a permutation of the tile."""
        places = cls._ranks(ranks)
        return cls._moved(value, places, blocked(cls.thread(), cls.count), storage)

    @classmethod
    def scatter_to_striped(cls, value: Any, ranks: Any, *, storage: Any) -> Any:
        to = striped(cls.thread(), cls.count, cls.block_threads)
        return cls._moved(value, cls._ranks(ranks), to, storage)

    @classmethod
    def scatter_to_striped_guarded(
        cls, value: Any, ranks: Any, *, storage: Any, default: Any = 0
    ) -> Any:
        """As `scatter_to_striped`. Items whose rank is not in the tile are left out, and places
        that no item goes to get `default`."""
        to = striped(cls.thread(), cls.count, cls.block_threads)
        return cls._moved(value, cls._ranks(ranks), to, storage, [None] * cls.count, default)

    @classmethod
    def scatter_to_striped_flagged(
        cls, value: Any, ranks: Any, is_valid: Any, *, storage: Any, default: Any = 0
    ) -> Any:
        """As `scatter_to_striped_guarded`, for items whose flag is not 0."""
        to = striped(cls.thread(), cls.count, cls.block_threads)
        flags = items_of(is_valid, None, cls.count, "is_valid")
        valid = [truth(one) for one in flags]
        return cls._moved(value, cls._ranks(ranks), to, storage, valid, default)

    @classmethod
    def _ranks(cls, ranks: Any) -> list[Any]:
        return [integer(one) for one in items_of(ranks, None, cls.count, "ranks")]

    @classmethod
    def _moved(
        cls,
        value: Any,
        places: list[Any],
        wanted: list[Any],
        storage: Any,
        valid: list[Any] | None = None,
        default: Any = None,
    ) -> Any:
        """Items go to `places` of the tile; returns what is at `wanted`. With `valid`, only items
        that are valid and whose place is in the tile."""
        items = items_of(value, cls.dtype, cls.count, cls.__name__)
        window, slots = cls._window(), storage.slots
        found: list[Any] = []
        for first in range(0, cls.tile, window):
            if first:
                barrier()
            if valid is not None:
                _fill(slots, window, cls.thread(), cls.block_threads, converted(default, cls.dtype))
                barrier()
            guarded = window < cls.tile or valid is not None
            for number, (item, place) in enumerate(zip(items, places, strict=True)):
                inside = (place >= first) & (place < first + window) if guarded else None
                if valid is not None:
                    inside = both(inside, valid[number])
                put(slots, place - first, item, inside)
            barrier()
            for number, place in enumerate(wanted):
                if window == cls.tile:
                    found.append(slots[place])
                    continue
                inside = (place >= first) & (place < first + window)
                one = slots[inside.select(place - first, 0)]
                found[number : number + 1] = [inside.select(one, found[number]) if first else one]
        return shaped(found, value)


def _fill(slots: Any, size: int, thread: Any, threads: int, value: Any) -> None:
    for first in range(0, size, threads):
        place = thread + first
        put(slots, place, value, None if first + threads <= size else place < size)
