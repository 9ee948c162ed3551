"""The forms for any target, also where a target has its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fly.flydsl.extension.coop.block import reduce as _block_reduce
from fly.flydsl.extension.coop.block import scan as _block_scan
from fly.flydsl.extension.coop.warp import reduce as _reduce
from fly.flydsl.extension.coop.warp import scan as _scan

__all__ = [
    "BlockReduce",
    "BlockReduceAlgorithm",
    "BlockScan",
    "BlockScanAlgorithm",
    "warp_exclusive_scan",
    "warp_inclusive_scan",
    "warp_reduce",
    "warp_scan",
    "warp_scan_with_aggregate",
]

warp_reduce = _reduce.warp_reduce
warp_inclusive_scan = _scan.warp_inclusive_scan
warp_exclusive_scan = _scan.warp_exclusive_scan
warp_scan = _scan.warp_scan
warp_scan_with_aggregate = _scan.warp_scan_with_aggregate
BlockReduceAlgorithm = _block_reduce.BlockReduceAlgorithm
BlockScanAlgorithm = _block_scan.BlockScanAlgorithm

_WARP = SimpleNamespace(warp_reduce=warp_reduce, warp_scan_with_aggregate=warp_scan_with_aggregate)


class BlockReduce(_block_reduce.BlockReduce):
    """The block's reduction with a wave's for any target."""

    warp_ops: Any = _WARP


class BlockScan(_block_scan.BlockScan):
    """The block's scan with a wave's for any target."""

    warp_ops: Any = _WARP
