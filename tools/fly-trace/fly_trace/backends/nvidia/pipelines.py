"""Rings of buffers in shared memory that are guarded by mbarriers (sm_90)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fly_trace.backends.nvidia.clusters import mapped
from fly_trace.backends.nvidia.intrinsics import intrinsic, require
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.gpu import cluster
from fly_trace.gpu.device import barrier, thread_idx
from fly_trace.gpu.immediates import number
from fly_trace.memory.pointers import Pointer
from fly_trace.values.conversion import convert, integer
from fly_trace.values.dtypes import BOOL, I32, I64, U32
from fly_trace.values.scalars import Scalar

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

    from fly_trace.session.builder import Builder

__all__ = [
    "Pipeline",
    "Slot",
    "mbarrier_arrive",
    "mbarrier_expect",
    "mbarrier_init",
    "mbarrier_wait",
]

MOST_ARRIVALS = (1 << 20) - 1
OWN = "cta"  # the block, as a scope


@contextmanager
def only_if(builder: Builder, condition: ir.Value) -> Iterator[None]:
    """Builds an scf.if around what is built meanwhile. No value leaves it."""
    op = builder.op("scf.if", [], [condition], {}, regions=2)
    block = op.regions[0].blocks.append()
    with inside(builder, block):
        yield
        builder.op("scf.yield", [], [])


@contextmanager
def inside(builder: Builder, block: ir.Block) -> Iterator[None]:
    """Builds at the end of a block."""
    from fly_dialect.bindings import ir

    before, builder.ip = builder.ip, ir.InsertionPoint(block)
    try:
        yield
    finally:
        builder.ip = before


def mbarrier_of(what: str, pointer: Any) -> Pointer:
    """The pointer to an mbarrier; refuses everything else."""
    if (
        not isinstance(pointer, Pointer)
        or pointer.spec.space != "shared"
        or pointer.spec.element != "i64"
    ):
        tracing.refuse(
            f"{what} takes a pointer to an i64 in shared memory, not {describe(pointer)}"
        )
    return pointer


def _address(what: str, pointer: Any) -> ir.Value:
    builder = tracing.kernel(what)
    return builder.fly_op("to_llvm_ptr", [mbarrier_of(what, pointer).value(builder)], {})


def mbarrier_init(mbarrier: Any, arrivals: int) -> None:
    """Initializes an mbarrier, an i64 in shared memory, whose phases end after so many arrivals.
    One thread does so; `fx.barrier` lets others see it."""
    what = "fx.nvvm.mbarrier_init"
    count = number(arrivals, f"the arrivals of {what}", MOST_ARRIVALS)
    builder = tracing.kernel(what)
    operands = [_address(what, mbarrier), builder.constant(count, I32)]
    intrinsic(what, "mbarrier.init.shared", operands)


def mbarrier_arrive(mbarrier: Any, rank: Any = None) -> None:
    """Arrives at an mbarrier, with `rank` at the one at the same place in that block of the
    cluster. Earlier accesses to memory of this thread are then visible to those that have waited
    for the phase."""
    what = "fx.nvvm.mbarrier_arrive"
    one = tracing.kernel(what).constant(1, I32)
    _arrive(what, "mbarrier.arrive", mbarrier, one, rank)


def mbarrier_expect(mbarrier: Any, nbytes: Any, rank: Any = None) -> None:
    """Arrives at an mbarrier, whose phase then also waits for copies of `nbytes` bytes. `rank`: see
    `mbarrier_arrive`."""
    _expect("fx.nvvm.mbarrier_expect", mbarrier, nbytes, rank)


def _expect(
    what: str, mbarrier: Any, nbytes: Any, rank: Any = None, scope: str | None = None
) -> None:
    builder = tracing.kernel(what)
    size = builder.ssa(convert(integer(nbytes, f"the bytes of {what}", I32, U32), I32))
    _arrive(what, "mbarrier.arrive.expect.tx", mbarrier, size, rank, scope)


def _arrive(
    what: str, name: str, mbarrier: Any, count: ir.Value, rank: Any, scope: str | None = None
) -> None:
    if rank is None:
        name = f"{name}.scope.{scope or _scope()}.space.cta"
        intrinsic(what, name, [_address(what, mbarrier), count], "i64")
        return
    there = mapped(what, mbarrier_of(what, mbarrier), cluster.in_cluster(what, rank))
    intrinsic(what, f"{name}.scope.{scope or 'cluster'}.space.cluster", [there, count])


def _scope() -> str:
    """The threads for which arrivals and waits order memory: in a cluster, all of its blocks'."""
    return "cta" if cluster.size() == 1 else "cluster"


def mbarrier_wait(mbarrier: Any, parity: Any) -> None:
    """Waits until the phase of this parity has ended: the first phase has parity 0. For 1, a fresh
    mbarrier counts as past it."""
    _wait("fx.nvvm.mbarrier_wait", mbarrier, parity, _scope())


def _wait(what: str, mbarrier: Any, parity: Any, scope: str) -> None:
    builder = tracing.kernel(what)
    address = _address(what, mbarrier)
    phase = builder.ssa(convert(integer(parity, f"the parity of {what}", I32, U32), I32))
    loop = builder.op("scf.while", [], [], {}, regions=2)
    with inside(builder, loop.regions[0].blocks.append()):
        name = f"mbarrier.try.wait.parity.scope.{scope}.space.cta"
        done = intrinsic(what, name, [address, phase], "i1")
        true = builder.constant(True, BOOL)
        again = builder.one("arith.xori", "i1", done, true)
        builder.op("scf.condition", [], [again])
    with inside(builder, loop.regions[1].blocks.append()):
        builder.op("scf.yield", [], [])


class Slot:
    """A buffer of a ring: its number, and the mbarrier that copies into it complete."""

    def __init__(self, stage: Scalar, barrier: Pointer):
        self.stage, self.barrier = stage, barrier


class Pipeline:
    """A ring of `stages` buffers. A producer fills them, in turn, and consumers read them:

        pipe = fx.nvvm.Pipeline(stages, consumers=2)
        slot = pipe.fill(count, nbytes)     the producer's thread: waits until the buffer is free
        slot = pipe.wait(count)             consumers: wait until it has been filled
        pipe.release(count)                 `consumers` threads: have read it

    `count` counts the buffers from 0, on both sides. All threads of the block make a pipeline
    together.

    In a `shared` one the blocks of the cluster fill each other's buffers, by copies with
    `multicast`: a buffer is free when it is so in every block, `consumers` threads of each of which
    have released it. Before a block ends, all of them have to be done (`fx.cluster.barrier`).

    Its mbarriers order memory for the block only, in a cluster too: what passes between blocks are
    copies by TMA, which complete the mbarrier of the block that they are for, and the news that a
    buffer is free. For all of the cluster, each arrival would be a fence of the whole device's
    memory, and each wait would empty the L1 cache.
    """

    def __init__(self, stages: int, consumers: int, shared: bool = False):
        from fly_trace.memory.shared_memory import SharedAllocator
        from fly_trace.memory.structs import Array

        what = "fx.nvvm.Pipeline"
        require(what, "sm_90+")
        self.stages = number(stages, f"the stages of {what}", 64)
        content = SharedAllocator().allocate(Array[I64, 2 * self.stages], 8).peek()
        self._full: Pointer = content.ptr
        self._empty: Pointer = content.ptr + self.stages
        builder = tracing.kernel(what)
        self._blocks = cluster.size() if shared else 1
        first: Any = thread_idx.x == 0
        with only_if(builder, builder.ssa(first)):
            for stage in range(self.stages):
                mbarrier_init(self._full + stage, 1)
                mbarrier_init(self._empty + stage, consumers * self._blocks)
            intrinsic(what, "fence.mbarrier_init.release.cluster", [])
        if self._blocks > 1:
            cluster.barrier()  # of other blocks', too, before they are used
        else:
            barrier()

    def _place(self, count: Any) -> tuple[Any, Any]:
        """The buffer's number, and the parity of its use."""
        counted = convert(integer(count, "the count of a pipeline", I32, U32), U32)
        uses = counted // self.stages
        return convert(counted % self.stages, I32), convert(uses % 2, I32)

    def fill(self, count: Any, nbytes: int) -> Slot:
        """Waits until the buffer is free, and expects copies of so many bytes."""
        what, (stage, parity) = "fx.nvvm.Pipeline.fill", self._place(count)
        _wait(what, self._empty + stage, 1 - parity, OWN)
        _expect(what, self._full + stage, nbytes, scope=OWN)
        return Slot(stage, self._full + stage)

    def wait(self, count: Any) -> Slot:
        """Waits until the buffer has been filled."""
        stage, parity = self._place(count)
        _wait("fx.nvvm.Pipeline.wait", self._full + stage, parity, OWN)
        return Slot(stage, self._full + stage)

    def release(self, count: Any) -> None:
        """The buffer may be filled again."""
        what, (stage, _) = "fx.nvvm.Pipeline.release", self._place(count)
        one = tracing.kernel(what).constant(1, I32)
        for rank in range(self._blocks) if self._blocks > 1 else (None,):
            _arrive(what, "mbarrier.arrive", self._empty + stage, one, rank, OWN)
