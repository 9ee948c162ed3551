"""NVIDIA's chips: one row per compute capability.

Sources: CUDA C++ Programming Guide 13.0, "Compute Capabilities", tables "Feature Support per
Compute Capability" and "Technical Specifications per Compute Capability" (blocks, warps, registers
and shared memory), and "Shared Memory" of each compute capability (32 banks of 4 bytes, 1 KB
reserved per block); PTX ISA 8.8, "cvt" (8-bit floats from sm_89 on); the tuning guides of Ampere,
Ada, Hopper and Blackwell (lines of 128 bytes).
"""

from __future__ import annotations

from fly_target.nvidia.facts import NvidiaFacts
from fly_target.nvidia.triple import DATA_LAYOUT, TRIPLE
from fly_target.target import OCP, LdsBanks, Target

BACKEND = "cuda"


def chip(
    name: str, family: str, products: str, lds: int, facts: NvidiaFacts, float8: str = ""
) -> Target:
    """Returns a row. `lds` is the most shared memory of a block, in KB."""
    return Target(
        name=name,
        backend=BACKEND,
        family=family,
        products=products,
        cpu=name,
        triple=TRIPLE,
        data_layout=DATA_LAYOUT,
        wave_sizes=(32,),
        max_workgroup=1024,
        lds=lds << 10,
        lds_banks=LdsBanks(),
        cache_line=128,
        float8=float8,
        nvidia=facts,
    )


CHIPS = (
    chip("sm_80", "Ampere", "A100, A30", 163, NvidiaFacts((8, 0), 32, 64, 164 << 10)),
    chip("sm_86", "Ampere", "A10, A40, RTX 30", 99, NvidiaFacts((8, 6), 16, 48, 100 << 10)),
    chip("sm_89", "Ada", "L4, L40, RTX 40", 99, NvidiaFacts((8, 9), 24, 48, 100 << 10), OCP),
    chip(
        "sm_90a",
        "Hopper",
        "H100, H200",
        227,
        NvidiaFacts((9, 0), 32, 64, 228 << 10, architecture_specific=True),
        OCP,
    ),
    chip(
        "sm_100a",
        "Blackwell",
        "B100, B200",
        227,
        NvidiaFacts((10, 0), 32, 64, 228 << 10, architecture_specific=True),
        OCP,
    ),
)
