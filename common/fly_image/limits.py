"""Limits of the hardware on launches.

Sources: the AQL dispatch packet of the HSA Runtime specification (grid sizes are 32-bit counts of
work items); the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"
(grid sizes are counts of blocks), and "Thread Block Clusters"; LLVM's lowering of
llvm.amdgcn.cluster.workgroup.* (a workgroup's number in its cluster has four bits).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fly_host.program import Launch, Program
from fly_target import registry
from fly_target.amd.facts import facts_of

from fly_image.image import Image, Triple

if TYPE_CHECKING:
    from fly_host.native.specialisation import KernelLimits

MOST_SHARED = max(row.lds for row in registry.BUILT_IN.values())  # bytes per workgroup
MOST_WORK_ITEMS = (1 << 32) - 1  # per dimension of a grid
_CUDA_GRID = ((1 << 31) - 1, 65535, 65535)
_CUDA_CLUSTER, _AMD_CLUSTER = 8, 16  # more than 8 blocks are not portable among NVIDIA's chips


def grid_of(target: str) -> Triple | None:
    """The most workgroups of a grid in each dimension; None where work items are limited."""
    return _CUDA_GRID if target.startswith("sm_") else None


def cluster_of(target: str) -> int:
    """The most workgroups of a cluster; 1 on targets without clusters, and on unknown ones."""
    row = registry.get(target)
    if row is None:
        return 1
    if row.amd is not None:
        return _AMD_CLUSTER if facts_of(row).clusters else 1
    return _CUDA_CLUSTER if "sm_90+" in row.traits else 1


def shared_of(target: str) -> int:
    """The shared memory of a workgroup, in bytes. The device itself rejects an unknown target."""
    row = registry.get(target)
    return row.lds if row else MOST_SHARED


def limits_of(program: Program, image: Image) -> list[KernelLimits]:
    """The interfaces of the kernels that a program launches. InputError for one that is missing."""
    return [_limits(launch, image) for launch in program.launches]


def _limits(launch: Launch, image: Image) -> KernelLimits:
    from fly_host.native.specialisation import KernelLimits

    kernel = image.kernel(launch.kernel)
    return KernelLimits(
        kernel.argument_bytes,
        tuple((argument.offset, argument.size) for argument in kernel.arguments),
        kernel.max_threads,
        shared_of(image.target) - kernel.shared_bytes,
        kernel.required_block,
        grid_of(image.target),
        image.target,
        kernel.shared_bytes,
        kernel.cluster,
    )
