"""`flydsl.expr.rocdl.cluster`: clusters of workgroups, of gfx1250."""

from __future__ import annotations

from typing import Any

from fly_trace.gpu.device import barrier

from fly.flydsl._mlir.dialects import rocdl as _dialect
from fly.flydsl.expr.rocdl.moves import wave_id
from fly.flydsl.expr.typing import T
from fly.flydsl.numbers.types import Index

CLUSTER_BARRIER_ID = CLUSTER_WAIT_ALL = -3


def is_wave_leader() -> Any:
    """Whether this is the workgroup's first wave."""
    return wave_id() == 0


def cluster_signal_once_per_wg() -> None:
    """Tells the cluster's barrier that the workgroup is there, by one wave."""
    from fly_trace.control.branches import if_

    def signal() -> None:
        _dialect.s_barrier_signal(CLUSTER_BARRIER_ID)

    if_(is_wave_leader(), signal, lambda: None, tuple, lambda _: None, (), 0)


def cluster_wait() -> None:
    """Waits for all workgroups of the cluster."""
    _dialect.s_barrier_wait(CLUSTER_WAIT_ALL)


def cluster_barrier() -> None:
    """A barrier for all work items of the cluster."""
    barrier()
    cluster_signal_once_per_wg()
    cluster_wait()


def compute_cluster_position() -> tuple[Any, Any]:
    """The workgroup's place in its cluster, along x and y."""
    x, y = (getattr(_dialect, f"cluster_workgroup_id_{axis}")(T.i32) for axis in "xy")
    return Index(x), Index(y)
