"""`fx.block`: the primitives of a block's threads."""

from fly_trace.primitives.block_reductions import reduce
from fly_trace.primitives.block_scans import exclusive_scan, inclusive_scan
from fly_trace.primitives.block_sorts import sort
from fly_trace.primitives.exchange import (
    blocked_to_striped,
    scatter_to_blocked,
    scatter_to_striped,
    striped_to_blocked,
)
from fly_trace.primitives.histograms import add_to_histogram, histogram, init_histogram
from fly_trace.primitives.selection import top_k
from fly_trace.primitives.threads import index as thread_rank
from fly_trace.primitives.transfers import load, store

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
