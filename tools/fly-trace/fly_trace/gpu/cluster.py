"""`fx.cluster`: blocks that are launched together by `launch(cluster=…)`, run at the same time, and
wait for one another.

How many blocks a cluster has is known while tracing, so a kernel may decide by `size()`. A kernel
that is launched without `cluster=` is its own cluster: `size()` is 1, and barriers are the block's.
"""

from __future__ import annotations

import importlib
from typing import Any

from fly_backend import registry as backends
from fly_target import registry as targets

from fly_trace.core import tracing
from fly_trace.core.target import chip
from fly_trace.gpu import device
from fly_trace.values.conversion import convert, integer
from fly_trace.values.dtypes import I32, I64, U32
from fly_trace.values.scalars import Scalar

__all__ = ["arrive", "barrier", "block_idx", "idx", "rank", "remote", "shape", "size", "wait"]

AXES = "xyz"


def shape() -> tuple[int, int, int]:
    """The blocks of a cluster along x, y and z, as Python numbers: what `launch(cluster=…)` says;
    (1, 1, 1) without it."""
    return tracing.kernel("fx.cluster.shape").known_cluster


def size() -> int:
    """The blocks of a cluster, as a Python number."""
    x, y, z = tracing.kernel("fx.cluster.size").known_cluster
    return x * y * z


class _Places:
    """i32 values along x, y and z, from the block's number in the grid: a grid is made of whole
    clusters."""

    def __init__(self, name: str, of_block: Any):
        self._name, self._of_block = name, of_block

    def __getattr__(self, axis: str) -> Any:
        if axis not in ("x", "y", "z"):
            raise AttributeError(axis)
        count = tracing.kernel(f"fx.cluster.{self._name}.{axis}").known_cluster[AXES.index(axis)]
        return self._of_block(getattr(device.block_idx, axis), count)

    def __iter__(self) -> Any:
        return (getattr(self, axis) for axis in AXES)


block_idx = _Places("block_idx", lambda block, count: block % count if count > 1 else 0)
block_idx.__doc__ = "The block's place in its cluster: i32 values x, y, z."
idx = _Places("idx", lambda block, count: block // count)
idx.__doc__ = "The cluster's place in the grid, in clusters: i32 values x, y, z."


def rank() -> Any:
    """The block's number in its cluster, from 0: x first, then y and z. The number 0 of Python in
    a kernel without clusters."""
    x, y, _ = shape()
    at = block_idx
    return at.x + x * (at.y + y * at.z)


def barrier() -> None:
    """Waits for all threads of the cluster. Their earlier writes to memory, to the shared memory of
    other blocks too, are then visible to each of them."""
    if size() == 1:
        device.barrier()
    else:
        _backend("fx.cluster.barrier").barrier()


def arrive() -> None:
    """Arrives at the cluster's barrier, and does not wait. Every thread of the cluster does so once
    before it does `wait`."""
    if size() > 1:
        _backend("fx.cluster.arrive").arrive()


def wait() -> None:
    """Waits until all threads of the cluster have arrived (`arrive`)."""
    if size() == 1:
        device.barrier()
    else:
        _backend("fx.cluster.wait").wait()


def remote(memory: Any, rank: Any) -> Any:
    """A tensor or a pointer of shared memory as that of the block `rank` of the cluster, in the
    address space `generic`: the memory at the same place there. It may be accessed from a barrier
    of the cluster on, by which that block has begun, to one before that block ends."""
    what = "fx.cluster.remote"
    found = _backend(what)
    if not hasattr(found, "remote"):
        tracing.refuse(f"{chip(what)} has no {what}: a block sees its own shared memory only")
    return found.remote(memory, in_cluster(what, rank))


def in_cluster(what: str, rank: Any) -> Any:
    """The number of a block of the cluster as an i32. InputError for one that there is not."""
    given = integer(rank, f"the rank of {what}", I32, U32, I64)
    number = given.number if isinstance(given, Scalar) else given
    if number is not None and not 0 <= number < size():
        tracing.refuse(
            f"{what}: the cluster has no block {number}, but {size()}",
            "launch the kernel with cluster=" if size() == 1 else None,
        )
    return tracing.kernel(what).ssa(convert(given, I32))


def _backend(what: str) -> Any:
    """The functions of the target's vendor; the trace is then specific to the target."""
    row = targets.find(chip(what))
    backend = backends.find(row.backend)
    if not backend.clusters:
        tracing.refuse(f"{row.name} has no {what}")
    return importlib.import_module(backend.clusters)
