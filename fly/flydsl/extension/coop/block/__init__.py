"""Reductions and scans of a block's threads."""

from fly.flydsl.extension.coop.block.reduce import BlockReduce, BlockReduceAlgorithm
from fly.flydsl.extension.coop.block.scan import BlockScan, BlockScanAlgorithm

__all__ = ["BlockReduce", "BlockReduceAlgorithm", "BlockScan", "BlockScanAlgorithm"]
