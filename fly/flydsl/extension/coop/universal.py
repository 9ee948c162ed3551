"""The forms for any target, also where a target has its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fly.flydsl.extension.coop import block as _block
from fly.flydsl.extension.coop import warp as _warp
from fly.flydsl.extension.coop.block import (
    BlockAdjacentDifference as BlockAdjacentDifference,
)
from fly.flydsl.extension.coop.block import (
    BlockDiscontinuity as BlockDiscontinuity,
)
from fly.flydsl.extension.coop.block import (
    BlockExchange as BlockExchange,
)
from fly.flydsl.extension.coop.block import (
    BlockExchangeAlgorithm as BlockExchangeAlgorithm,
)
from fly.flydsl.extension.coop.block import (
    BlockHistogram as BlockHistogram,
)
from fly.flydsl.extension.coop.block import (
    BlockHistogramAlgorithm as BlockHistogramAlgorithm,
)
from fly.flydsl.extension.coop.block import (
    BlockLoad as BlockLoad,
)
from fly.flydsl.extension.coop.block import (
    BlockLoadAlgorithm as BlockLoadAlgorithm,
)
from fly.flydsl.extension.coop.block import (
    BlockMergeSort as BlockMergeSort,
)
from fly.flydsl.extension.coop.block import (
    BlockMergeSortAlgorithm as BlockMergeSortAlgorithm,
)
from fly.flydsl.extension.coop.block import (
    BlockRadixSort as BlockRadixSort,
)
from fly.flydsl.extension.coop.block import (
    BlockRadixSortAlgorithm as BlockRadixSortAlgorithm,
)
from fly.flydsl.extension.coop.block import (
    BlockReduceAlgorithm as BlockReduceAlgorithm,
)
from fly.flydsl.extension.coop.block import (
    BlockRunLengthDecode as BlockRunLengthDecode,
)
from fly.flydsl.extension.coop.block import (
    BlockRunLengthDecodeAlgorithm as BlockRunLengthDecodeAlgorithm,
)
from fly.flydsl.extension.coop.block import (
    BlockScanAlgorithm as BlockScanAlgorithm,
)
from fly.flydsl.extension.coop.block import (
    BlockShuffle as BlockShuffle,
)
from fly.flydsl.extension.coop.block import (
    BlockShuffleAlgorithm as BlockShuffleAlgorithm,
)
from fly.flydsl.extension.coop.block import (
    BlockStore as BlockStore,
)
from fly.flydsl.extension.coop.block import (
    BlockStoreAlgorithm as BlockStoreAlgorithm,
)
from fly.flydsl.extension.coop.block import (
    BlockTopK as BlockTopK,
)
from fly.flydsl.extension.coop.block import (
    BlockTopKAlgorithm as BlockTopKAlgorithm,
)
from fly.flydsl.extension.coop.block import reduce as _block_reduce
from fly.flydsl.extension.coop.block import scan as _block_scan
from fly.flydsl.extension.coop.warp import reduce as _reduce
from fly.flydsl.extension.coop.warp import scan as _scan

__all__ = [*_warp.__all__, *_block.__all__]

warp_broadcast = _reduce.warp_broadcast
warp_head_segmented_reduce = _reduce.warp_head_segmented_reduce
warp_tail_segmented_reduce = _reduce.warp_tail_segmented_reduce
warp_reduce_batched = _reduce.warp_reduce_batched
warp_reduce_batched_to_blocked = _reduce.warp_reduce_batched_to_blocked
warp_reduce_batched_to_striped = _reduce.warp_reduce_batched_to_striped
warp_reduce = _reduce.warp_reduce
warp_inclusive_scan = _scan.warp_inclusive_scan
warp_exclusive_scan = _scan.warp_exclusive_scan
warp_scan = _scan.warp_scan
warp_scan_with_aggregate = _scan.warp_scan_with_aggregate

_WARP = SimpleNamespace(warp_reduce=warp_reduce, warp_scan_with_aggregate=warp_scan_with_aggregate)


class BlockReduce(_block_reduce.BlockReduce):
    """The block's reduction with a wave's for any target."""

    warp_ops: Any = _WARP


class BlockScan(_block_scan.BlockScan):
    """The block's scan with a wave's for any target."""

    warp_ops: Any = _WARP
