"""The barrier of a cluster (gfx1250), which has the number -3.

It counts signals: when there are as many as the cluster has workgroups, it is complete,
and every wave that waits at it, or will wait at it next, goes on. One wave of a workgroup signals
(LLVM's lowering of llvm.amdgcn.s.cluster.barrier: the first at the workgroup's own barrier). A
workgroup that has ended still counts, so the others wait in vain. Outside of a cluster, signals and
waits have no effect.
"""

from __future__ import annotations

from collections.abc import Callable

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import Handler


def _signal(h: Handler) -> Value:
    """Returns whether the signal is the first one since the barrier was complete."""
    barrier = h.wave.at(state.CLUSTER_BARRIER).load("ptr")
    expected = barrier.at(state.EXPECTED).load("i32")
    arrived = barrier.at(state.ARRIVED).load("i32")
    complete = (arrived + 1).compare("uge", expected)
    counted = expected.compare("ne", 0)
    barrier.at(state.ARRIVED).store((counted & ~complete).select(arrived + 1, 0))
    times = barrier.at(state.COMPLETED)
    times.store(times.load("i32") + (counted & complete).zext("i32"))
    return arrived.compare("eq", 0)


def _signal_cluster(h: Handler) -> None:
    _signal(h)
    h.next()


def _signal_cluster_first(h: Handler) -> None:
    h.set_scc(_signal(h))
    h.next()


def _wait_cluster(h: Handler) -> None:
    barrier = h.wave.at(state.CLUSTER_BARRIER).load("ptr")
    times, seen = barrier.at(state.COMPLETED).load("i32"), h.wave.at(state.CLUSTER_SEEN)
    counted = barrier.at(state.EXPECTED).load("i32").compare("ne", 0)

    def stop() -> None:
        h.wave.at(state.WAITS_AT).store(h.constant("i32", state.AT_CLUSTER))
        h.stop(state.STATUS_BARRIER, h.op.at(state.OP_SIZE))

    h.when(counted & times.compare("eq", seen.load("i32")), stop)
    seen.store(times)
    h.next()


# Emitted by the lowering, by the barrier's number.
BODIES: dict[str, Callable[[Handler], None]] = {
    "fly_cluster_signal": _signal_cluster,
    "fly_cluster_signal_first": _signal_cluster_first,
    "fly_cluster_wait": _wait_cluster,
}
