"""Loads and stores of a block's tile."""

from __future__ import annotations

from typing import Any

from fly.flydsl.extension.coop._items import (
    blocked,
    converted,
    integer,
    items_of,
    put,
    read,
    shaped,
    striped,
    warp_striped,
)
from fly.flydsl.extension.coop._policies import policies
from fly.flydsl.extension.coop.block._tile import Tile, TileMeta, struct_of
from fly.flydsl.extension.coop.block.exchange import BlockExchange, BlockExchangeAlgorithm

__all__ = ["BlockLoad", "BlockLoadAlgorithm", "BlockStore", "BlockStoreAlgorithm"]

_MEMBERS = (
    *("DIRECT", "STRIPED", "VECTORIZE"),
    *("TRANSPOSE", "WARP_TRANSPOSE", "WARP_TRANSPOSE_TIMESLICED"),
)
# DIRECT and VECTORIZE: each thread its own items, which LLVM combines to wider accesses. STRIPED:
# the items are in striped order. The others exchange items, so that lanes access neighbours.
BlockLoadAlgorithm = policies("BlockLoadAlgorithm", _MEMBERS, __name__)
BlockStoreAlgorithm = policies("BlockStoreAlgorithm", _MEMBERS, __name__)


class _Transfer(Tile):
    exchange_type: Any = None

    @classmethod
    def _storage(cls) -> Any:
        if not cls.algorithm.name.startswith(("TRANSPOSE", "WARP_")):
            return struct_of(slots=(cls.dtype, 1))  # a struct has a field
        is_sliced = cls.algorithm.name.endswith("TIMESLICED")
        policy = BlockExchangeAlgorithm[["SHARED_MEMORY", "WARP_TIME_SLICING"][is_sliced]]
        cls.exchange_type = BlockExchange[cls.dtype, cls.block_size, cls.count, policy]
        return cls.exchange_type.SharedStorage

    @classmethod
    def _places(cls) -> list[Any]:
        name, thread = cls.algorithm.name, cls.thread()
        if name in ("STRIPED", "TRANSPOSE"):
            return striped(thread, cls.count, cls.block_threads)
        if name.startswith("WARP_"):
            return warp_striped(thread, cls.count, cls.warp_threads)
        return blocked(thread, cls.count)

    @classmethod
    def _transpose(cls, items: Any, storage: Any, is_load: bool) -> Any:
        if storage is None:
            raise ValueError(f"{cls.__name__} with {cls.algorithm.name} needs storage=")
        order = "warp_striped" if cls.algorithm.name.startswith("WARP_") else "striped"
        name = f"{order}_to_blocked" if is_load else f"blocked_to_{order}"
        return getattr(cls.exchange_type, name)(items, storage=storage)


class _BlockLoadMeta(TileMeta):
    _policies = BlockLoadAlgorithm

    def __call__(
        cls: Any,
        source: Any,
        *,
        storage: Any = None,
        offset: Any = 0,
        valid_items: Any = None,
        default: Any = 0,
    ) -> Any:
        fill = converted(default, cls.dtype)
        items = []
        for place in cls._places():
            valid = None if valid_items is None else place < integer(valid_items)
            items.append(read(source, place + integer(offset), valid, fill, cls.dtype))
        shape = items if cls.count > 1 else items[0]
        found = shaped(items, shape)
        return found if cls.exchange_type is None else cls._transpose(found, storage, True)


class BlockLoad(_Transfer, metaclass=_BlockLoadMeta):
    """`BlockLoad[dtype, block_size, items_per_thread, policy](source, …)`: a tile from `offset`
    on, in blocked order unless STRIPED. Items behind `valid_items` are `default`."""


class _BlockStoreMeta(TileMeta):
    _policies = BlockStoreAlgorithm

    def __call__(
        cls: Any,
        destination: Any,
        value: Any,
        *,
        storage: Any = None,
        offset: Any = 0,
        valid_items: Any = None,
    ) -> None:
        items = items_of(value, cls.dtype, cls.count, cls.__name__)
        if cls.exchange_type is not None:
            moved = cls._transpose(shaped(items, value), storage, False)
            items = items_of(moved, cls.dtype, cls.count, cls.__name__)
        for place, item in zip(cls._places(), items, strict=True):
            valid = None if valid_items is None else place < integer(valid_items)
            put(destination, place + integer(offset), item, valid)


class BlockStore(_Transfer, metaclass=_BlockStoreMeta):
    """`BlockStore[dtype, block_size, items_per_thread, policy](destination, value, …)`: the items
    of a tile, which are in blocked order unless STRIPED, from `offset` on."""
