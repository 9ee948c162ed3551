"""Launches held against the limits of kernels and of the hardware."""

from __future__ import annotations

import math

from fly_common.errors import InputError
from fly_host import refusals
from fly_host.refusals import show
from fly_image.image import KernelInterface, Triple
from fly_image.limits import MOST_WORK_ITEMS, cluster_of, grid_of, shared_of


def check_launch(
    target: str,
    kernel: KernelInterface,
    grid: Triple,
    block: Triple,
    lds: int,
    cluster: Triple | None = None,
) -> None:
    """Raises InputError for a launch that the kernel or the hardware does not allow. A grid of 0
    workgroups is allowed and runs nothing. `cluster` is that of a launch that says it."""
    name = kernel.name
    if min(block) < 1:
        raise InputError(refusals.no_items(name, show(block)))
    size = block[0] * block[1] * block[2]
    if size > kernel.max_threads:
        raise InputError(refusals.many_items(name, show(block), size, kernel.max_threads))
    required = kernel.required_block
    if required is not None and required != block:
        raise InputError(refusals.other_block(name, show(block), show(required)))
    if min(grid) < 0:
        raise InputError(refusals.negative_grid(name, show(grid)))
    if cluster is not None:
        _check_cluster(target, kernel, cluster)
    cluster = kernel.cluster or cluster or (1, 1, 1)
    if any(count % each for count, each in zip(grid, cluster, strict=True)):
        raise InputError(
            refusals.part_clusters(name, show(grid), show(cluster)),
            hint="make each size of the grid a multiple of the cluster's",
        )
    most = grid_of(target)
    if most is not None:
        for count, limit, axis in zip(grid, most, "xyz", strict=True):
            if count > limit:
                raise InputError(refusals.wide_grid(name, count, axis, target, limit))
    for count, items, axis in zip(grid, block, "xyz", strict=True):
        if most is None and count * items > MOST_WORK_ITEMS:
            raise InputError(refusals.many_workgroups(name, count, items, axis, MOST_WORK_ITEMS))
    room = shared_of(target)
    if lds < 0 or lds + kernel.shared_bytes > room:
        raise InputError(refusals.shared(name, kernel.shared_bytes, lds, target, room))


def _check_cluster(target: str, kernel: KernelInterface, cluster: Triple) -> None:
    name, most = kernel.name, cluster_of(target)
    own = kernel.cluster
    if own is not None and own != cluster:
        raise InputError(refusals.other_clusters(name, show(cluster), show(own)))
    if min(cluster) < 1:
        raise InputError(refusals.no_cluster(name, show(cluster)))
    if most == 1 and cluster != (1, 1, 1):
        raise InputError(
            f"{target} has no clusters of workgroups", hint=f"launch {name} without a cluster"
        )
    if math.prod(cluster) > most:
        raise InputError(refusals.large_cluster(name, show(cluster), target, most))
