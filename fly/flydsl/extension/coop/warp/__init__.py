"""Algorithms of a wave's lanes."""

from __future__ import annotations

from fly.flydsl.extension._dispatch import Dispatcher
from fly.flydsl.extension.coop.warp.batched import (
    warp_reduce_batched,
    warp_reduce_batched_to_blocked,
    warp_reduce_batched_to_striped,
)
from fly.flydsl.extension.coop.warp.classes import WarpReduce, WarpReduceBatched, WarpScan
from fly.flydsl.extension.coop.warp.exchange import WarpExchange, WarpExchangeAlgorithm
from fly.flydsl.extension.coop.warp.reduce import (
    warp_broadcast,
    warp_head_segmented_reduce,
    warp_reduce,
    warp_tail_segmented_reduce,
)
from fly.flydsl.extension.coop.warp.scan import (
    warp_exclusive_scan,
    warp_inclusive_scan,
    warp_scan,
    warp_scan_with_aggregate,
)
from fly.flydsl.extension.coop.warp.sorts import (
    WarpBitonicSort,
    WarpMergeSort,
    warp_bitonic_sort,
    warp_merge_sort,
)
from fly.flydsl.extension.coop.warp.transfers import (
    WarpLoad,
    WarpLoadAlgorithm,
    WarpStore,
    WarpStoreAlgorithm,
)

__all__ = [
    "WarpBitonicSort",
    "WarpExchange",
    "WarpExchangeAlgorithm",
    "WarpLoad",
    "WarpLoadAlgorithm",
    "WarpMergeSort",
    "WarpReduce",
    "WarpReduceBatched",
    "WarpScan",
    "WarpStore",
    "WarpStoreAlgorithm",
    "warp_bitonic_sort",
    "warp_broadcast",
    "warp_exclusive_scan",
    "warp_head_segmented_reduce",
    "warp_inclusive_scan",
    "warp_merge_sort",
    "warp_reduce",
    "warp_reduce_batched",
    "warp_reduce_batched_to_blocked",
    "warp_reduce_batched_to_striped",
    "warp_scan",
    "warp_scan_with_aggregate",
    "warp_tail_segmented_reduce",
]

_dispatch = Dispatcher(__name__, targets={"rocm": "rocdl"})
__getattr__ = _dispatch.load_target
_dispatch.dispatch_all(globals(), [name for name in __all__ if name.startswith("warp_")])
