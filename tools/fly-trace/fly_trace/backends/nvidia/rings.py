"""What NVIDIA's targets have for `fx.pipeline`: `cp.async`, and on Hopper TMA and mbarriers."""

from __future__ import annotations

from typing import Any

from fly_target import registry

from fly_trace.atoms.atom import make_copy_atom
from fly_trace.atoms.movement import copy
from fly_trace.backends.nvidia.atoms import CpAsync, cp_async_commit, cp_async_wait
from fly_trace.backends.nvidia.intrinsics import intrinsic
from fly_trace.backends.nvidia.pipelines import (
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
    only_if,
)
from fly_trace.backends.nvidia.tensor_maps import TensorMap, tensor_map, tma_load
from fly_trace.backends.nvidia.warpgroups import ALL_LANES, set_registers
from fly_trace.core import tracing
from fly_trace.core.target import chip
from fly_trace.gpu.device import barrier, lane_id, thread_idx
from fly_trace.memory.pointers import Pointer
from fly_trace.pipelines.mechanisms import Direct
from fly_trace.values.dtypes import I32, I64
from fly_trace.values.scalars import Scalar

WARP = 32
MOST_REGISTERS, FILE = 255, 65536  # of a thread, and of a multiprocessor
WHAT = "fx.pipeline"


class Mbarriers:
    """Guards: two mbarriers for each buffer. One thread fills; each warp that reads arrives."""

    def __init__(self, stages: int, consumers: int):
        from fly_trace.memory.shared_memory import SharedAllocator
        from fly_trace.memory.structs import Array

        content = SharedAllocator().allocate(Array[I64, 2 * stages], 8).peek()
        self._full: Pointer = content.ptr
        self._free: Pointer = content.ptr + stages
        builder = tracing.kernel(WHAT)
        first: Any = thread_idx.x == 0
        with only_if(builder, builder.ssa(first)):
            for stage in range(stages):
                mbarrier_init(self._full + stage, 1)
                mbarrier_init(self._free + stage, consumers // WARP)
            intrinsic(WHAT, "fence.mbarrier_init.release.cluster", [])
        barrier()

    def expect(self, stage: Any, parity: Any, nbytes: int) -> None:
        # A fresh mbarrier counts as past the phase of parity 1: the first buffers are free.
        mbarrier_wait(self._free + stage, 1 - parity)
        mbarrier_expect(self._full + stage, nbytes)

    def load(self, source: Any, coordinate: tuple[Any, ...], tile: Any, stage: Any) -> None:
        tma_load(source, coordinate, tile, self._full + stage)

    def filled(self, stage: Any, parity: Any) -> None:
        mbarrier_wait(self._full + stage, parity)

    def release(self, stage: Any) -> None:
        from fly_trace.backends.nvidia.nvvm import syncwarp

        syncwarp()
        builder = tracing.kernel(WHAT)
        first: Any = lane_id() == 0
        with only_if(builder, builder.ssa(first)):
            mbarrier_arrive(self._free + stage)


def _copy(source: Any, target: Any, dtype: Any) -> None:
    copy(make_copy_atom(CpAsync(128), dtype), source, target)


class NvidiaRings:
    """See `fly_trace.pipelines.mechanisms.Rings`."""

    def is_specialised(self, target: str) -> bool:
        return "sm_90+" in registry.find(target).traits

    def direct(self, target: str) -> Direct | None:
        return Direct(_copy, cp_async_commit, cp_async_wait)

    def guards(self, stages: int, consumers: int) -> Mbarriers:
        target = chip(WHAT)
        if not self.is_specialised(target):
            tracing.refuse(
                f"{target} has no TMA, by which a warp group copies for others",
                "launch with block=fx.pipeline_threads(…), which knows the target",
            )
        return Mbarriers(stages, consumers)

    def source(self, tensor: Any, layout: Any) -> Any:
        return tensor_map(tensor, layout) if self.is_specialised(chip(WHAT)) else tensor

    def is_source(self, value: Any) -> bool:
        return isinstance(value, TensorMap)

    def uniform(self, value: Any) -> Any:
        builder = tracing.kernel(WHAT)
        masks = [builder.constant(number, I32) for number in (ALL_LANES, 0, 31)]
        operands = [masks[0], builder.ssa(value), *masks[1:]]
        return Scalar(I32, intrinsic(WHAT, "shfl.sync.idx.i32", operands, "i32"))

    def set_registers(self, count: int, threads: int) -> None:
        if "Hopper" not in registry.find(chip(WHAT)).traits:
            return
        begins = min(MOST_REGISTERS, FILE // threads // 8 * 8)
        set_registers(count, count > begins)

    def barrier(self, number: int, threads: int) -> None:
        from fly_trace.backends.nvidia.nvvm import barrier_sync

        barrier_sync(number, threads)


RINGS = NvidiaRings()
