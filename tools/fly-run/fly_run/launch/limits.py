"""Limits of the hardware on launches.

Sources: the AQL dispatch packet of the HSA Runtime specification (grid sizes are 32-bit counts of
work items); the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"
(grid sizes are counts of blocks).
"""

from __future__ import annotations

from fly_common.errors import InputError
from fly_image.image import KernelInterface
from fly_target import registry

MOST_SHARED = max(row.lds for row in registry.BUILT_IN.values())  # bytes per workgroup
MOST_WORK_ITEMS = (1 << 32) - 1  # per dimension of a grid
_CUDA_GRID = ((1 << 31) - 1, 65535, 65535)

Triple = tuple[int, int, int]


def check_launch(
    target: str, kernel: KernelInterface, grid: Triple, block: Triple, lds: int
) -> None:
    """Raises InputError for a launch that the kernel or the hardware does not allow. A grid of 0
    workgroups is allowed and runs nothing."""
    name = kernel.name
    if min(block) < 1:
        raise InputError(f"{name}: a block of {show(block)} work items")
    size = block[0] * block[1] * block[2]
    if size > kernel.max_threads:
        raise InputError(
            f"{name}: a block of {show(block)} is {size} work items, but the kernel was compiled"
            " for"
            f" at most {kernel.max_threads}"
        )
    required = kernel.required_block
    if required is not None and required != block:
        raise InputError(
            f"{name}: a block of {show(block)}, but the kernel was compiled for {show(required)}"
        )
    if min(grid) < 0:
        raise InputError(f"{name}: a grid of {show(grid)} workgroups")
    most = grid_of(target)
    if most is not None:
        for count, limit, axis in zip(grid, most, "xyz", strict=True):
            if count > limit:
                raise InputError(f"{name}: {count} workgroups in {axis}; {target} has {limit}")
    for count, items, axis in zip(grid, block, "xyz", strict=True):
        if most is None and count * items > MOST_WORK_ITEMS:
            raise InputError(
                f"{name}: {count} workgroups of {items} in {axis} are more than"
                f" {MOST_WORK_ITEMS} work items"
            )
    row = registry.get(target)
    room = row.lds if row else MOST_SHARED  # the device itself rejects an unknown target
    if lds < 0 or lds + kernel.shared_bytes > room:
        raise InputError(
            f"{name}: {kernel.shared_bytes} bytes of static and {lds} of dynamic LDS;"
            f" {target} has {room}"
        )


def grid_of(target: str) -> Triple | None:
    """The most workgroups of a grid in each dimension; None where work items are limited."""
    return _CUDA_GRID if target.startswith("sm_") else None


def show(triple: Triple) -> str:
    """Formats (64, 1, 1) as "64", (8, 8, 1) as "8×8"."""
    count = 3 if triple[2] != 1 else 2 if triple[1] != 1 else 1
    return "×".join(str(n) for n in triple[:count])
