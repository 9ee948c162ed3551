"""What the runtime, which is LLVM IR, and Python share: a record of 64-bit words, and fibers.

In the runtime's text, `$name` is the address of a word of the record, and `$_name` the offset of a
fiber's field.
"""

from __future__ import annotations

import re

# The record `fly_context`. Python writes the first part before a launch, the runtime the second.
WORDS = (
    *("entry", "arguments", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    *("threads", "tickets", "blocks", "stacks", "dynamic", "reads", "writes", "turns", "number"),
    *("status", "fuel", "kind", "address", "size", "site", "thread", "ctaid_x", "ctaid_y"),
    *("ctaid_z", "done", "waiting", "format", "values"),
    # Of a cluster: see `runtime.clusters`. Without one all of them are 0.
    *("cluster", "cluster_x", "cluster_y", "cluster_z", "rank", "peers", "meeting"),
    *("moved", "hopeless", "unseen"),
)
OFFSETS = {name: 8 * at for at, name in enumerate(WORDS)}

# A fiber: one thread of the block. `input` and `output` are its operand and result of an operation
# of its warp or of a barrier; `mask` the warp's members, or the number of the barrier.
FIBER = {
    "sp": 0,
    "state": 8,
    "site": 12,
    "mask": 16,
    "count": 20,
    "aligned": 24,
    "x": 28,
    "y": 32,
    "z": 36,
    "index": 40,
    "stack": 48,
    "input": 56,
    "output": 64,
    "met": 72,  # 1 more than the phase of the cluster's barrier at which it has arrived
}
FIBER_BYTES = 128

NEW, READY, WARP, BARRIER, DONE, ACTIVE, MBARRIER, CLUSTER = range(8)  # states of a fiber

# What `fly_run` returns. ENDING: AddressSanitizer is about to end the process. WAITING: all threads
# of the block wait for other blocks of the cluster.
FINISHED, SLICE, FAULT, PRINT, ENDING, WAITING = range(6)

KINDS = (
    *("unmapped", "read-only", "misaligned", "trap", "divergent", "deadlock", "mask", "barrier"),
    *("stack", "assert", "mbarrier", "map", "cluster"),
)
# What libraries of fly-link do not have: AddressSanitizer's reports, and races of strict mode.
REPORTED, RACE = len(KINDS), len(KINDS) + 1

MOST_THREADS = 1024
MOST_COPIES = 256  # of tiles, which are put off
MOST_REGIONS = 2048  # rows of each table of memory
STACK = 256 << 10  # bytes of a fiber
MARGIN = 8 << 10  # of those, for the runtime and the C library
SCHEDULER_STACK = 64 << 10
MOST_BARRIERS = 16
WARP_GROUP = 128  # threads
# Those of warp groups, where they wait for their products, have the numbers behind.
ALL_BARRIERS = MOST_BARRIERS + MOST_THREADS // WARP_GROUP
REPORT_BYTES = 1024  # kept of AddressSanitizer's report
POISON = 0x7FF7BAD0  # what shared memory holds at first, as on the emulator
FUEL = 4096  # iterations of loops between two yields of a thread
TURNS = 4096  # yields, or groups of threads, between two returns to Python


def expanded(text: str) -> str:
    """Replaces `$name` and `$_name`."""

    def place(match: re.Match[str]) -> str:
        name = match[1]
        if name.startswith("_"):
            return str(FIBER[name[1:]])
        return f"getelementptr inbounds (i8, ptr @fly_context, i64 {OFFSETS[name]})"

    return re.sub(r"\$(\w+)", place, text)
