"""Clusters of workgroups of gfx1250: their barrier. One wave of each workgroup signals it."""

from __future__ import annotations

from fly_target import registry
from fly_target.amd.facts import facts_of

from fly_trace.core import tracing
from fly_trace.core.target import chip
from fly_trace.gpu import device

BARRIER = -3  # the cluster's (LLVM, "llvm.amdgcn.s.cluster.barrier")


def barrier() -> None:
    """See `fx.cluster.barrier`."""
    _require("fx.cluster.barrier")
    arrive()
    wait()


def arrive() -> None:
    """See `fx.cluster.arrive`."""
    what = "fx.cluster.arrive"
    _require(what)
    device.barrier()
    builder = tracing.kernel(what)
    builder.load("rocdl")
    wave = builder.one("rocdl.wave.id", "i32")
    zero = builder.constant(0, device.I32)
    first = builder.one("arith.cmpi", "i1", wave, zero, predicate=builder.integer(0, "i64"))
    choice = builder.op("scf.if", [], [first], {}, regions=2)
    with builder.inside(choice.regions[0].blocks.append()):
        number = {"id": builder.integer(BARRIER, "i32")}
        builder.op("rocdl.s.barrier.signal", [], [], number)
        builder.op("scf.yield", [], [])


def wait() -> None:
    """See `fx.cluster.wait`."""
    what = "fx.cluster.wait"
    _require(what)
    builder = tracing.kernel(what)
    builder.load("rocdl")
    builder.op("rocdl.s.barrier.wait", [], [], {"id": builder.integer(BARRIER, "i16")})


def _require(what: str) -> None:
    row = registry.find(chip(what))
    if not facts_of(row).clusters:
        known = [one.name for one in registry.BUILT_IN.values() if one.amd and one.amd.clusters]
        tracing.refuse(f"{row.name} has no {what}", f"the targets that have it: {', '.join(known)}")
