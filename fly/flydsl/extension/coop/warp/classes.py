"""Reductions and scans of a group of lanes as classes, `WarpReduce[fx.Float32, 16]`."""

from __future__ import annotations

import importlib
from typing import Any

from fly.flydsl.extension.coop.warp._tile import WarpMeta, WarpTile

__all__ = ["WarpReduce", "WarpReduceBatched", "WarpScan"]


class _ScalarMeta(WarpMeta):
    _least = None


class _BatchedMeta(WarpMeta):
    _least = 0


class _Functions(WarpTile):
    # The module of the functions: those that a target may have its own forms of.
    functions = "fly.flydsl.extension.coop.warp"

    @classmethod
    def _call(cls, name: str, storage: Any, value: Any, *words: Any, **named: Any) -> Any:
        cls._check(storage)
        function = getattr(importlib.import_module(cls.functions), name)
        return function(cls._prepared(value), *words, width=cls.warp_threads, **named)


class WarpReduce(_Functions, metaclass=_ScalarMeta):
    """`WarpReduce[dtype, width].reduce(value, op)`: as the functions of the same names, for values
    that are converted to `dtype`."""

    @classmethod
    def reduce(cls, value: Any, op: Any, *, valid_items: Any = None, storage: Any = None) -> Any:
        return cls._call("warp_reduce", storage, value, op, valid_items=valid_items)

    @classmethod
    def head_segmented_reduce(
        cls, value: Any, head_flag: Any, op: Any, *, storage: Any = None
    ) -> Any:
        return cls._call("warp_head_segmented_reduce", storage, value, head_flag, op)

    @classmethod
    def tail_segmented_reduce(
        cls, value: Any, tail_flag: Any, op: Any, *, storage: Any = None
    ) -> Any:
        return cls._call("warp_tail_segmented_reduce", storage, value, tail_flag, op)


class WarpScan(_Functions, metaclass=_ScalarMeta):
    """`WarpScan[dtype, width].inclusive_scan(value, op)`: as the functions of the same names, for
    values that are converted to `dtype`."""

    @classmethod
    def inclusive_scan(
        cls, value: Any, op: Any, *, init: Any = None, valid_items: Any = None, storage: Any = None
    ) -> Any:
        named = {"init": init, "valid_items": valid_items}
        return cls._call("warp_inclusive_scan", storage, value, op, **named)

    @classmethod
    def exclusive_scan(
        cls, value: Any, op: Any, *, init: Any = None, valid_items: Any = None, storage: Any = None
    ) -> Any:
        named = {"init": init, "valid_items": valid_items}
        return cls._call("warp_exclusive_scan", storage, value, op, **named)

    @classmethod
    def scan(
        cls, value: Any, op: Any, *, init: Any = None, valid_items: Any = None, storage: Any = None
    ) -> tuple[Any, Any]:
        named = {"init": init, "valid_items": valid_items}
        return cls._call("warp_scan", storage, value, op, **named)

    @classmethod
    def scan_with_aggregate(
        cls, value: Any, op: Any, *, init: Any = None, valid_items: Any = None, storage: Any = None
    ) -> tuple[Any, Any, Any]:
        named = {"init": init, "valid_items": valid_items}
        return cls._call("warp_scan_with_aggregate", storage, value, op, **named)

    @classmethod
    def broadcast(cls, value: Any, source_lane: Any, *, storage: Any = None) -> Any:
        return cls._call("warp_broadcast", storage, value, source_lane)


class WarpReduceBatched(_Functions, metaclass=_BatchedMeta):
    """`WarpReduceBatched[dtype, width, number].reduce(values, op)`: as the functions
    `warp_reduce_batched…`, for `number` values of each lane, which are converted to `dtype`."""

    @classmethod
    def reduce(
        cls, value: Any, op: Any, *, sync_physical_warp: bool = False, storage: Any = None
    ) -> Any:
        named = {"sync_physical_warp": sync_physical_warp}
        return cls._call("warp_reduce_batched", storage, value, op, **named)

    @classmethod
    def reduce_to_blocked(
        cls, value: Any, op: Any, *, sync_physical_warp: bool = False, storage: Any = None
    ) -> Any:
        named = {"sync_physical_warp": sync_physical_warp}
        return cls._call("warp_reduce_batched_to_blocked", storage, value, op, **named)

    @classmethod
    def reduce_to_striped(
        cls, value: Any, op: Any, *, sync_physical_warp: bool = False, storage: Any = None
    ) -> Any:
        named = {"sync_physical_warp": sync_physical_warp}
        return cls._call("warp_reduce_batched_to_striped", storage, value, op, **named)
