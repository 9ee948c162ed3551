"""Reductions and scans of a wave's lanes."""

from __future__ import annotations

from fly.flydsl.extension._dispatch import Dispatcher
from fly.flydsl.extension.coop.warp.reduce import (
    warp_broadcast,
    warp_head_segmented_reduce,
    warp_reduce,
    warp_reduce_batched,
    warp_reduce_batched_to_blocked,
    warp_reduce_batched_to_striped,
    warp_tail_segmented_reduce,
)
from fly.flydsl.extension.coop.warp.scan import (
    warp_exclusive_scan,
    warp_inclusive_scan,
    warp_scan,
    warp_scan_with_aggregate,
)

__all__ = [
    "warp_broadcast",
    "warp_exclusive_scan",
    "warp_head_segmented_reduce",
    "warp_inclusive_scan",
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
_dispatch.dispatch_all(globals(), __all__)
