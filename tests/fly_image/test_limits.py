"""Limits on launches, held against the vendors' tables.

CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": grids of 2^31 - 1 by
65535 by 65535 blocks, 227 KB of shared memory for a block of 9.0, 163 KB of 8.0. HSA's AQL packets
have grid sizes of 32 bits; LDS is 64 KB on CDNA3, 160 KB on gfx950.
"""

from __future__ import annotations

import pytest
from fly_image import limits


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_grids_of_cuda(target):
    assert limits.grid_of(target) == (2147483647, 65535, 65535)


@pytest.mark.parametrize("target", ["gfx942", "gfx1201", "unknown"])
def test_grids_of_amd_are_limited_by_work_items(target):
    assert limits.grid_of(target) is None
    assert limits.MOST_WORK_ITEMS == 4294967295


@pytest.mark.parametrize(
    ("target", "size"),
    [("gfx942", 65536), ("gfx950", 163840), ("sm_90a", 232448), ("sm_80", 166912)],
)
def test_shared_memory(target, size):
    assert limits.shared_of(target) == size


def test_shared_memory_of_an_unknown_target_is_the_most_of_any():
    assert limits.shared_of("other") == limits.MOST_SHARED
    assert limits.MOST_SHARED >= 232448
