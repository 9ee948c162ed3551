"""`fx.nvvm`: features of NVIDIA's targets: operations of a warp, barriers of a part of a block,
fences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_common.quoting import quoted

from fly_trace.backends.nvidia.atoms import (
    MMA,
    WGMMA,
    CpAsync,
    LoadMatrix,
    StoreMatrix,
    cp_async_commit,
    cp_async_wait,
)
from fly_trace.backends.nvidia.dependencies import (
    griddepcontrol_launch_dependents,
    griddepcontrol_wait,
)
from fly_trace.backends.nvidia.intrinsics import intrinsic, require
from fly_trace.backends.nvidia.pipelines import (
    Pipeline,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
)
from fly_trace.backends.nvidia.tensor_maps import (
    SharedTiles,
    TensorMap,
    fence_async,
    tensor_map,
    tile_layout,
    tma_commit,
    tma_load,
    tma_store,
    tma_wait,
)
from fly_trace.backends.nvidia.warpgroups import (
    accumulators,
    operand_a,
    set_registers,
    wait_after,
    warp_group_index,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)
from fly_trace.core import tracing
from fly_trace.core.target import chip
from fly_trace.core.tracing import describe
from fly_trace.gpu.immediates import number
from fly_trace.values.conversion import convert, integer, scalar
from fly_trace.values.dtypes import BOOL, I32, I64, U32, U64, DType
from fly_trace.values.scalars import Scalar

__all__ = [
    "MMA",
    "WGMMA",
    "CpAsync",
    "LoadMatrix",
    "Pipeline",
    "SharedTiles",
    "StoreMatrix",
    "SyncScope",
    "TensorMap",
    "accumulators",
    "ballot",
    "barrier_arrive",
    "barrier_sync",
    "clock",
    "cp_async_commit",
    "cp_async_wait",
    "elect",
    "fence",
    "fence_async",
    "get_cuda_arch",
    "griddepcontrol_launch_dependents",
    "griddepcontrol_wait",
    "match_any",
    "mbarrier_arrive",
    "mbarrier_expect",
    "mbarrier_init",
    "mbarrier_wait",
    "nanosleep",
    "operand_a",
    "redux",
    "set_registers",
    "syncwarp",
    "tensor_map",
    "tile_layout",
    "tma_commit",
    "tma_load",
    "tma_store",
    "tma_wait",
    "vote_all",
    "vote_any",
    "vote_uni",
    "wait_after",
    "warp_group_index",
    "wgmma_commit",
    "wgmma_fence",
    "wgmma_wait",
]

ALL_LANES = -1
MOST_BARRIERS = 16  # of a block; fx.barrier uses the first
MOST_THREADS = 1024


class SyncScope:
    """LLVM's NVPTX synchronization scopes."""

    Block, Cluster, Device = "block", "cluster", "device"


def _mask(what: str, mask: Any) -> Any:
    """The lanes that take part, as an i32 value."""
    value = integer(mask, f"the mask of {what}", I32, U32)
    return tracing.kernel(what).ssa(convert(value, I32))


def _condition(what: str, value: Any) -> Any:
    condition = scalar(value, f"the condition of {what}")
    if condition.dtype is not BOOL:
        tracing.refuse(
            f"{what} takes a condition, not {describe(value)}", "compare it, as in x != 0"
        )
    return tracing.kernel(what).ssa(condition)


def _vote(name: str, result: DType, doc: str) -> Callable[..., Scalar]:
    what = f"fx.nvvm.{'ballot' if name == 'ballot' else f'vote_{name}'}"

    def vote(condition: Any, mask: Any = ALL_LANES) -> Scalar:
        operands = [_mask(what, mask), _condition(what, condition)]
        return Scalar(result, intrinsic(what, f"vote.{name}.sync", operands, result.ir))

    vote.__name__ = vote.__qualname__ = what.rpartition(".")[2]
    vote.__doc__ = f"{doc} `mask` has a bit for each lane that takes part."
    return vote


ballot = _vote("ballot", U32, "A u32 whose bit i says whether the condition holds in lane i.")
vote_any = _vote("any", BOOL, "Whether the condition holds in any lane of the warp.")
vote_all = _vote("all", BOOL, "Whether the condition holds in all lanes of the warp.")
vote_uni = _vote("uni", BOOL, "Whether the condition is the same in all lanes of the warp.")

# Operation of redux → the intrinsic's name for signed and for unsigned integers.
_REDUCTIONS = {
    "add": ("add", "add"),
    "min": ("min", "umin"),
    "max": ("max", "umax"),
    "and": ("and", "and"),
    "or": ("or", "or"),
    "xor": ("xor", "xor"),
}


def redux(value: Any, op: str, mask: Any = ALL_LANES) -> Scalar:
    """Combines an i32 or u32 of the warp's lanes by `op`: add, min, max, and, or, xor. All lanes
    of `mask` get the result."""
    what = "fx.nvvm.redux"
    if op not in _REDUCTIONS:
        tracing.refuse(f"{what} has no operation {quoted(op)}: it has {', '.join(_REDUCTIONS)}")
    given = scalar(value, f"the value of {what}")
    if given.dtype not in (I32, U32):
        tracing.refuse(f"{what} takes an i32 or a u32, not {describe(value)}")
    name = _REDUCTIONS[op][given.dtype is U32]
    operands = [tracing.kernel(what).ssa(given), _mask(what, mask)]
    return Scalar(given.dtype, intrinsic(what, f"redux.sync.{name}", operands, "i32"))


def match_any(value: Any, mask: Any = ALL_LANES) -> Scalar:
    """A u32 whose bit i says whether lane i has the same integer of 32 or 64 bits."""
    what = "fx.nvvm.match_any"
    given = scalar(value, f"the value of {what}")
    if given.dtype not in (I32, U32, I64, U64):
        tracing.refuse(f"{what} takes an integer of 32 or 64 bits, not {describe(value)}")
    operands = [_mask(what, mask), tracing.kernel(what).ssa(given)]
    return Scalar(U32, intrinsic(what, f"match.any.sync.{given.dtype.ir}", operands, "i32"))


def elect(mask: Any = ALL_LANES) -> Scalar:
    """True in one lane of the warp, from sm_90 on."""
    what = "fx.nvvm.elect"
    require(what, "sm_90+")
    pair = intrinsic(what, "elect.sync", [_mask(what, mask)], "!llvm.struct<(i32, i1)>")
    builder = tracing.kernel(what)
    second = builder.attribute("array<i64: 1>")
    return Scalar(BOOL, builder.one("llvm.extractvalue", "i1", pair, position=second))


def syncwarp(mask: Any = ALL_LANES) -> None:
    """Waits for the lanes of a warp. Their earlier writes to memory are then visible to them."""
    what = "fx.nvvm.syncwarp"
    intrinsic(what, "bar.warp.sync", [_mask(what, mask)])


def barrier_sync(barrier: int, threads: int) -> None:
    """Waits until `threads` threads of the block, a multiple of 32, have arrived at the barrier
    `barrier`, from 1 to 15, the same number in each warp; fx.barrier is 0."""
    _partial("fx.nvvm.barrier_sync", "sync", barrier, threads)


def barrier_arrive(barrier: int, threads: int) -> None:
    """Arrives at a barrier of barrier_sync without waiting."""
    _partial("fx.nvvm.barrier_arrive", "arrive", barrier, threads)


def _partial(what: str, name: str, barrier: Any, threads: Any) -> None:
    if isinstance(barrier, Scalar) and barrier.number is None:
        which = convert(integer(barrier, f"the barrier of {what}", I32, U32), I32)
    else:
        which = number(barrier, f"the barrier of {what}", MOST_BARRIERS - 1)
    count = number(threads, f"the threads of {what}", MOST_THREADS)
    if count == 0 or count % 32:
        tracing.refuse(f"the threads of {what} must be a positive multiple of 32, not {count}")
    builder = tracing.kernel(what)
    first = builder.ssa(which) if isinstance(which, Scalar) else builder.constant(which, I32)
    operands = [first, builder.constant(count, I32)]
    intrinsic(what, f"barrier.cta.{name}.aligned.count", operands)


def fence(scope: str = SyncScope.Device) -> None:
    """Orders this thread's accesses to memory before it and after it, as the threads of `scope`
    see them: an acquire and release fence."""
    what = "fx.nvvm.fence"
    scopes = (SyncScope.Block, SyncScope.Cluster, SyncScope.Device, "")
    if scope not in scopes:
        tracing.refuse(
            f"{what} has no scope {quoted(scope)}", "use fx.nvvm.SyncScope, or fx.SyncScope.System"
        )
    builder = tracing.kernel(what)
    attributes = {"ordering": builder.integer(_ACQUIRE_RELEASE, "i64")}
    if scope:
        attributes["syncscope"] = builder.attribute(f'"{scope}"')
    builder.op("llvm.fence", [], [], attributes)


_ACQUIRE_RELEASE = 6  # LLVM's ordering


def nanosleep(nanoseconds: Any) -> None:
    """Suspends the thread for about this time, up to 1 ms."""
    what = "fx.nvvm.nanosleep"
    value = convert(integer(nanoseconds, f"the time of {what}", I32, U32), I32)
    intrinsic(what, "nanosleep", [tracing.kernel(what).ssa(value)])


def clock() -> Scalar:
    """The multiprocessor's cycle counter, u64."""
    return Scalar(U64, intrinsic("fx.nvvm.clock", "read.ptx.sreg.clock64", [], "i64"))


def get_cuda_arch() -> str:
    """The name of the target, such as "sm_90a". The trace is then specific to that target."""
    return chip("fx.nvvm.get_cuda_arch")
