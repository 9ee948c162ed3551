"""Loads and stores of the tile of a group of lanes."""

from __future__ import annotations

from typing import Any

from fly.flydsl.expr.gpu import lane_id
from fly.flydsl.expr.typing import Vector as Vectors
from fly.flydsl.extension.coop._items import (
    blocked,
    converted,
    integer,
    items_of,
    put,
    read,
    striped,
)
from fly.flydsl.extension.coop._policies import policies
from fly.flydsl.extension.coop.warp._tile import WarpMeta, WarpTile
from fly.flydsl.extension.coop.warp.exchange import blocked_of, striped_of

__all__ = ["WarpLoad", "WarpLoadAlgorithm", "WarpStore", "WarpStoreAlgorithm"]

_MEMBERS = ("DIRECT", "STRIPED", "VECTORIZE", "TRANSPOSE")
# DIRECT and VECTORIZE: each lane its own items, which LLVM combines to wider accesses. STRIPED: the
# items are in striped order. TRANSPOSE exchanges items, so that lanes access neighbours.
WarpLoadAlgorithm = policies("WarpLoadAlgorithm", _MEMBERS, __name__)
WarpStoreAlgorithm = policies("WarpStoreAlgorithm", _MEMBERS, __name__)


class _Transfer(WarpTile):
    @classmethod
    def _places(cls, valid_items: Any) -> list[Any]:
        """Where the items are in the tile, as they are accessed."""
        tile = cls.warp_threads * cls.items_per_thread
        if isinstance(valid_items, int) and not 0 <= valid_items <= tile:
            raise ValueError(f"valid_items must be between 0 and {tile}, got {valid_items}")
        lane, count = lane_id() % cls.warp_threads, cls.items_per_thread
        is_striped = cls.algorithm.name in ("STRIPED", "TRANSPOSE")
        return striped(lane, count, cls.warp_threads) if is_striped else blocked(lane, count)


class _WarpLoadMeta(WarpMeta):
    _policies = WarpLoadAlgorithm
    _policy = WarpLoadAlgorithm["DIRECT"]


class WarpLoad(_Transfer, metaclass=_WarpLoadMeta):
    """`WarpLoad[dtype, width, items_per_thread, policy].load(source, …)`: the group's tile from
    `offset` on, in blocked order unless STRIPED. Items behind `valid_items` are not read, and are
    `default`."""

    @classmethod
    def load(
        cls,
        source: Any,
        *,
        offset: Any = 0,
        valid_items: Any = None,
        default: Any = None,
        storage: Any = None,
    ) -> Any:
        cls._check(storage)
        if default is not None and valid_items is None:
            raise ValueError("default is for items behind valid_items: give both")
        fill = converted(0 if default is None else default, cls.dtype)
        items = []
        for place in cls._places(valid_items):
            valid = None if valid_items is None else place < integer(valid_items)
            items.append(read(source, place + integer(offset), valid, fill, cls.dtype))
        if cls.algorithm.name == "TRANSPOSE":
            items = blocked_of(items, cls.warp_threads)
        return Vectors.from_elements(items)


class _WarpStoreMeta(WarpMeta):
    _policies = WarpStoreAlgorithm
    _policy = WarpStoreAlgorithm["DIRECT"]


class WarpStore(_Transfer, metaclass=_WarpStoreMeta):
    """`WarpStore[dtype, width, items_per_thread, policy].store(destination, value, …)`: the items
    of the group's tile, which are in blocked order unless STRIPED, from `offset` on."""

    @classmethod
    def store(
        cls,
        destination: Any,
        value: Any,
        *,
        offset: Any = 0,
        valid_items: Any = None,
        storage: Any = None,
    ) -> None:
        cls._check(storage)
        items = items_of(value, cls.dtype, cls.items_per_thread, cls.__name__)
        if cls.algorithm.name == "TRANSPOSE":
            items = striped_of(items, cls.warp_threads)
        for place, item in zip(cls._places(valid_items), items, strict=True):
            valid = None if valid_items is None else place < integer(valid_items)
            put(destination, place + integer(offset), item, valid)
