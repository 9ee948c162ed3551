"""`fx.warp`: the primitives of a wave's lanes."""

from fly_trace.primitives.sorting.bitonic import sort
from fly_trace.primitives.waves.lanes import (
    broadcast,
    shuffle,
    shuffle_down,
    shuffle_up,
    shuffle_xor,
)
from fly_trace.primitives.waves.reductions import reduce
from fly_trace.primitives.waves.scans import exclusive_scan, inclusive_scan
from fly_trace.primitives.waves.votes import all_lanes as all
from fly_trace.primitives.waves.votes import any_lane as any
from fly_trace.primitives.waves.votes import ballot, count, match_all, match_any

__all__ = [
    "all",
    "any",
    "ballot",
    "broadcast",
    "count",
    "exclusive_scan",
    "inclusive_scan",
    "match_all",
    "match_any",
    "reduce",
    "shuffle",
    "shuffle_down",
    "shuffle_up",
    "shuffle_xor",
    "sort",
]
