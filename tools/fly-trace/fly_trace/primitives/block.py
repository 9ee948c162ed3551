"""`fx.block`: the primitives of a block's threads."""

from fly_trace.primitives.blocks.block_reductions import reduce
from fly_trace.primitives.blocks.block_scans import exclusive_scan, inclusive_scan
from fly_trace.primitives.blocks.exchange import (
    blocked_to_striped,
    scatter_to_blocked,
    scatter_to_striped,
    striped_to_blocked,
)
from fly_trace.primitives.blocks.histograms import add_to_histogram, histogram, init_histogram
from fly_trace.primitives.blocks.threads import index as thread_rank
from fly_trace.primitives.blocks.transfers import load, store
from fly_trace.primitives.sorting.block_sorts import sort
from fly_trace.primitives.sorting.selection import top_k

__all__ = [
    "add_to_histogram",
    "blocked_to_striped",
    "exclusive_scan",
    "histogram",
    "inclusive_scan",
    "init_histogram",
    "load",
    "reduce",
    "scatter_to_blocked",
    "scatter_to_striped",
    "sort",
    "store",
    "striped_to_blocked",
    "thread_rank",
    "top_k",
]
