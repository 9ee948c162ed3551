"""The size of a launch's clusters of workgroups.

LLVM writes a kernel's `amdgpu-cluster-dims` to its metadata (`.cluster_dims`) if they are constant;
otherwise the launch says. A workgroup's number in its cluster has four bits, and so has each of its
coordinates (LLVM's lowering of llvm.amdgcn.cluster.workgroup.*).
"""

from __future__ import annotations

import math

from fly_common.errors import InputError, UsageError
from fly_image.amd.code_object import Kernel
from fly_target import registry
from fly_target.amd.facts import facts_of

Triple = tuple[int, int, int]
MOST = 16  # workgroups of a cluster


def of(kernel: Kernel, target: str, grid: Triple, asked: Triple | None = None) -> Triple:
    """Returns the workgroups of a cluster along x, y and z for a launch of `grid` workgroups, where
    `asked` is what the caller wants. InputError if kernel and caller disagree or the target has no
    such clusters, UsageError if the grid is not made of whole clusters."""
    own = kernel.cluster
    if own and asked and asked != own:
        raise InputError(
            f"{kernel.name} was compiled for clusters of {shown(own)} workgroups, not of"
            f" {shown(asked)}"
        )
    cluster = own or asked or (1, 1, 1)
    if cluster == (1, 1, 1):
        return cluster
    if not facts_of(registry.find(target)).clusters:
        raise InputError(f"{target} has no clusters of workgroups: {kernel.name} needs some")
    if min(cluster) < 1 or math.prod(cluster) > MOST:
        raise InputError(
            f"a cluster of {shown(cluster)} workgroups can't be launched: it has 1 to {MOST}"
        )
    if any(groups % size for groups, size in zip(grid, cluster, strict=True)):
        raise UsageError(
            f"a grid of {shown(grid)} workgroups is not made of whole clusters: {kernel.name} has"
            f" clusters of {shown(cluster)}",
            hint="make each size of the grid a multiple of the cluster's",
        )
    return cluster


def shown(sizes: Triple) -> str:
    return "×".join(map(str, sizes))
