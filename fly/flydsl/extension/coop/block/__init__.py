"""Algorithms of a block's threads and of its tile."""

from fly.flydsl.extension.coop.block.exchange import BlockExchange, BlockExchangeAlgorithm
from fly.flydsl.extension.coop.block.histogram import BlockHistogram, BlockHistogramAlgorithm
from fly.flydsl.extension.coop.block.ranks import BlockRadixRank, BlockRadixRankAlgorithm
from fly.flydsl.extension.coop.block.reduce import BlockReduce, BlockReduceAlgorithm
from fly.flydsl.extension.coop.block.run_length_decode import (
    BlockRunLengthDecode,
    BlockRunLengthDecodeAlgorithm,
)
from fly.flydsl.extension.coop.block.scan import BlockScan, BlockScanAlgorithm
from fly.flydsl.extension.coop.block.shuffle import (
    BlockAdjacentDifference,
    BlockDiscontinuity,
    BlockShuffle,
    BlockShuffleAlgorithm,
)
from fly.flydsl.extension.coop.block.sorts import (
    BlockMergeSort,
    BlockMergeSortAlgorithm,
    BlockRadixSort,
    BlockRadixSortAlgorithm,
    BlockTopK,
    BlockTopKAlgorithm,
)
from fly.flydsl.extension.coop.block.transfers import (
    BlockLoad,
    BlockLoadAlgorithm,
    BlockStore,
    BlockStoreAlgorithm,
)

__all__ = [
    "BlockAdjacentDifference",
    "BlockDiscontinuity",
    "BlockExchange",
    "BlockExchangeAlgorithm",
    "BlockHistogram",
    "BlockHistogramAlgorithm",
    "BlockLoad",
    "BlockLoadAlgorithm",
    "BlockMergeSort",
    "BlockMergeSortAlgorithm",
    "BlockRadixRank",
    "BlockRadixRankAlgorithm",
    "BlockRadixSort",
    "BlockRadixSortAlgorithm",
    "BlockReduce",
    "BlockReduceAlgorithm",
    "BlockRunLengthDecode",
    "BlockRunLengthDecodeAlgorithm",
    "BlockScan",
    "BlockScanAlgorithm",
    "BlockShuffle",
    "BlockShuffleAlgorithm",
    "BlockStore",
    "BlockStoreAlgorithm",
    "BlockTopK",
    "BlockTopKAlgorithm",
]
