"""The runtime: fibers, the scheduler of a block's threads, barriers, checks of memory.

Each thread of a block is a fiber with a stack of its own. The scheduler runs them warp by warp.
A fiber gives way where it waits for others, and now and then in a loop. A library serves one host
thread at a time; each host thread that helps loads a copy, with variables of its own.

    fly_run(fresh)    starts a launch, or continues it; called by Python or a library
    fly.schedule      takes blocks of the grid, until there are none        on its own stack
    fly.block         runs a block's fibers until all have ended            on that stack
    fly.thread        runs the kernel                                       on a fiber's stack

Python gets the processor back at the end, after a slice of time, and for what only it can do
(`fly.leave`); it then calls `fly_run(0)`, unless there was a fault.
"""

from __future__ import annotations

from fly_cpu.runtime.barriers import BARRIERS
from fly_cpu.runtime.block import BLOCK
from fly_cpu.runtime.clusters import CLUSTERS
from fly_cpu.runtime.grid import ASSEMBLY, GRID
from fly_cpu.runtime.groups import GROUPS
from fly_cpu.runtime.mbarriers import MBARRIERS
from fly_cpu.runtime.memory import FAULTS, check, look
from fly_cpu.runtime.races import NOT_STRICT, STRICT, shared_checks
from fly_cpu.runtime.sanitizer import SANITIZER
from fly_cpu.runtime.tiles import TILES
from fly_cpu.runtime.warps import WARPS
from fly_cpu.state import (
    ALL_BARRIERS,
    FIBER_BYTES,
    MOST_REGIONS,
    MOST_THREADS,
    SCHEDULER_STACK,
    WORDS,
    expanded,
)

_DATA = f"""
@fly_context = protected global [{len(WORDS)} x i64] zeroinitializer, align 64
@fly_read = protected global [{MOST_REGIONS} x [2 x i64]] zeroinitializer, align 64
@fly_write = protected global [{MOST_REGIONS} x [2 x i64]] zeroinitializer, align 64
@fly.fibers = internal global [{MOST_THREADS} x [{FIBER_BYTES} x i8]] zeroinitializer, align 64
@fly.free = internal global [{MOST_THREADS} x i64] zeroinitializer
@fly.frees = internal global i64 0
@fly.used = internal global i64 0
@fly.ended = internal global i64 0
@fly.current = internal global ptr null
@fly.limit = internal global i64 0
@fly.x = internal global i32 0
@fly.y = internal global i32 0
@fly.z = internal global i32 0
@fly.next.x = internal global i32 0
@fly.next.y = internal global i32 0
@fly.next.z = internal global i32 0
@fly.index = internal global i64 0
@fly.host = internal global i64 0
@fly.paused = internal global i64 0
@fly.scheduler = internal global i64 0
@fly.unused = internal global i64 0
@fly.stack = internal global [{SCHEDULER_STACK} x i8] zeroinitializer, align 64
@fly.arrived = internal global [{ALL_BARRIERS} x i64] zeroinitializer
@fly.waiters = internal global [{ALL_BARRIERS} x i64] zeroinitializer
@fly.trues = internal global [{ALL_BARRIERS} x i64] zeroinitializer
@fly.freed = internal global [{ALL_BARRIERS} x i1] zeroinitializer
declare void @fly.switch(ptr, i64)
declare void @fly.first()
declare void @fly.begin()
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.read_register.i64(metadata)
"""


def assembly() -> str:
    """The functions that LLVM IR cannot express, as `module asm`."""
    return "".join(f'module asm "{line}"\n' for line in ASSEMBLY.strip().splitlines())


def text(sanitized: bool, strict: bool = False) -> str:
    """The runtime, without what depends on the module (`@fly.fill`, `@fly.cache`)."""
    parts = [_DATA, GRID, BLOCK, WARPS, BARRIERS, MBARRIERS, CLUSTERS, TILES, GROUPS]
    parts += [FAULTS, look(sanitized)]
    parts += [check("read", "unmapped", sanitized), check("write", "read-only", sanitized)]
    parts += [SANITIZER] if sanitized else []
    parts += [STRICT if strict else NOT_STRICT, shared_checks(strict)]
    return expanded("".join(parts))
