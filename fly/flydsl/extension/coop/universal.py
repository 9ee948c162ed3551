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
    BlockRadixRank as BlockRadixRank,
)
from fly.flydsl.extension.coop.block import (
    BlockRadixRankAlgorithm as BlockRadixRankAlgorithm,
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
from fly.flydsl.extension.coop.warp import (
    WarpBitonicSort as WarpBitonicSort,
)
from fly.flydsl.extension.coop.warp import (
    WarpExchange as WarpExchange,
)
from fly.flydsl.extension.coop.warp import (
    WarpExchangeAlgorithm as WarpExchangeAlgorithm,
)
from fly.flydsl.extension.coop.warp import (
    WarpLoad as WarpLoad,
)
from fly.flydsl.extension.coop.warp import (
    WarpLoadAlgorithm as WarpLoadAlgorithm,
)
from fly.flydsl.extension.coop.warp import (
    WarpMergeSort as WarpMergeSort,
)
from fly.flydsl.extension.coop.warp import (
    WarpStore as WarpStore,
)
from fly.flydsl.extension.coop.warp import (
    WarpStoreAlgorithm as WarpStoreAlgorithm,
)
from fly.flydsl.extension.coop.warp import batched as _batched
from fly.flydsl.extension.coop.warp import classes as _classes
from fly.flydsl.extension.coop.warp import reduce as _reduce
from fly.flydsl.extension.coop.warp import scan as _scan
from fly.flydsl.extension.coop.warp import sorts as _sorts

__all__ = [*_warp.__all__, *_block.__all__]

warp_bitonic_sort = _sorts.warp_bitonic_sort
warp_broadcast = _reduce.warp_broadcast
warp_head_segmented_reduce = _reduce.warp_head_segmented_reduce
warp_merge_sort = _sorts.warp_merge_sort
warp_tail_segmented_reduce = _reduce.warp_tail_segmented_reduce
warp_reduce_batched = _batched.warp_reduce_batched
warp_reduce_batched_to_blocked = _batched.warp_reduce_batched_to_blocked
warp_reduce_batched_to_striped = _batched.warp_reduce_batched_to_striped
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


class WarpReduce(_classes.WarpReduce):
    """The reduction of a group of lanes for any target."""

    functions = __name__


class WarpScan(_classes.WarpScan):
    """The scan of a group of lanes for any target."""

    functions = __name__


class WarpReduceBatched(_classes.WarpReduceBatched):
    """The reduction of several values of each lane for any target."""

    functions = __name__
