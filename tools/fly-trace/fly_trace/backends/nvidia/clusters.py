"""Clusters of blocks of sm_90: their barrier, and addresses of other blocks' shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fly_dialect.types import PtrSpec

from fly_trace.backends.nvidia.intrinsics import intrinsic, require
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.memory.pointers import Access, Pointer
from fly_trace.memory.tensors import Tensor

if TYPE_CHECKING:
    from fly_dialect.bindings import ir

CLUSTER_SPACE = "!llvm.ptr<7>"  # shared memory of a cluster's blocks


def barrier() -> None:
    """See `fx.cluster.barrier`."""
    require("fx.cluster.barrier", "sm_90+")
    arrive()
    wait()


def arrive() -> None:
    """See `fx.cluster.arrive`. Not `.aligned`: threads of a warp may arrive apart."""
    require("fx.cluster.arrive", "sm_90+")
    intrinsic("fx.cluster.arrive", "barrier.cluster.arrive", [])


def wait() -> None:
    """See `fx.cluster.wait`."""
    require("fx.cluster.wait", "sm_90+")
    intrinsic("fx.cluster.wait", "barrier.cluster.wait", [])


def remote(memory: Any, rank: ir.Value) -> Any:
    """See `fx.cluster.remote`; mapa."""
    what = "fx.cluster.remote"
    require(what, "sm_90+")
    if isinstance(memory, Tensor):
        from fly_trace.layouts.layouts import get_layout
        from fly_trace.memory.view_construction import get_iter, make_view

        if memory.space != "shared":
            tracing.refuse(f"{what} takes a tensor in shared memory, not {memory.describe()}")
        return make_view(remote(get_iter(memory), rank), get_layout(memory))
    if not isinstance(memory, Pointer) or memory.spec.space != "shared":
        tracing.refuse(
            f"{what} takes a tensor or a pointer of shared memory, not {describe(memory)}"
        )
    builder = tracing.kernel(what)
    there = mapped(what, memory, rank)
    plain = builder.one("llvm.addrspacecast", "!llvm.ptr", there)
    own: PtrSpec = memory.spec
    spec = PtrSpec(own.element, "generic", own.align, own.swizzle)
    address = builder.one("llvm.ptrtoint", "i64", plain)
    from fly_dialect.builders import ops

    made = builder.fly(ops.inttoptr, address, spec)
    return Pointer(spec, made, memory.dtype, Access(True, True), memory.name)


def mapped(what: str, pointer: Pointer, rank: ir.Value) -> ir.Value:
    """The address, as LLVM's pointer, of what a pointer to shared memory names in a block of the
    cluster."""
    builder = tracing.kernel(what)
    pointer.access.reads = pointer.access.writes = True
    own = builder.fly_op("to_llvm_ptr", [pointer.value(builder)], {})
    return intrinsic(what, "mapa.shared.cluster", [own, rank], CLUSTER_SPACE)
