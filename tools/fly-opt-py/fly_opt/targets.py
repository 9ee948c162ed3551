"""The targets: one row each. A new chip is a new row.

Sources: LLVM's AMDGPU usage guide (Processors; Memory model per chip; data layout in
AMDGPUTargetMachine), the MI200, MI300, MI350, RDNA3 and RDNA4 instruction set manuals. RDNA chips
run waves of 32 or 64 lanes; LLVM's code for them has 32 unless a function asks otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from fly_common.errors import UsageError
from fly_common.quoting import quoted

TRIPLE = "amdgcn-amd-amdhsa"

# Code object version 6: what LLVM 22 and ROCm 6 and 7 share. It is said in the IR, because a
# compiler's default for it moves with its version, and one input must give one HSACO.
CODE_OBJECT_VERSION = 600

# LLVM 22's layout of amdgcn. Address spaces: 1 global, 3 LDS, 4 constant, 5 private (allocas).
DATA_LAYOUT = (
    "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32"
    "-p8:128:128:128:48-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256"
    "-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
)


@dataclass(frozen=True)
class Target:
    """A chip this compiler makes code for. Sizes are in bytes."""

    chip: str  # what LLVM calls it: -mcpu
    pipeline: str  # the pipeline that lowers to it
    wavefront: int  # lanes
    lds: int  # per workgroup
    max_workgroup: int  # work items
    isa_version: int  # as the device libraries count: __oclc_ISA_version
    mfma: bool  # matrix cores
    triple: str = TRIPLE
    data_layout: str = DATA_LAYOUT


TARGETS: dict[str, Target] = {
    row.chip: row
    for row in (
        #      chip      pipeline wave  lds         items isa    mfma
        Target("gfx90a", "rocm", 64, 64 * 1024, 1024, 9010, True),  # MI210, MI250
        Target("gfx942", "rocm", 64, 64 * 1024, 1024, 9402, True),  # MI300
        Target("gfx950", "rocm", 64, 160 * 1024, 1024, 9500, True),  # MI350
        Target("gfx1100", "rocm", 32, 64 * 1024, 1024, 11000, False),  # Radeon RX 7900
        Target("gfx1201", "rocm", 32, 64 * 1024, 1024, 12001, False),  # Radeon RX 9070
    )
}


def find(chip: str) -> Target:
    """The row of `chip`. UsageError names the targets there are."""
    if chip not in TARGETS:
        from fly_opt.pipeline.suggestions import did_you_mean

        raise UsageError(
            f"unknown target {quoted(chip)}", hint=did_you_mean(chip, TARGETS, "the targets are")
        )
    return TARGETS[chip]
