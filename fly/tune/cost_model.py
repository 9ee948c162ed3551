"""The cost of a launch in cycles, from what the emulator counts: a model, not a measurement.

It ranks configurations of one kernel. The page docs/autotune.md has the formula and its figures,
with what is known about each.
"""

from __future__ import annotations

from fly_common.record import record
from fly_target import registry
from fly_target.amd.facts import facts_of

VERSION = 1  # part of every measurement's method

# Cycles. Assumptions of this model, of the order of published pointer chases: a load that is served
# between L2 and memory, a load from LDS or the scalar cache, a barrier that nobody waits at, and
# the time between two launches, 5 µs at 2 GHz.
GLOBAL_LATENCY = 500
LOCAL_LATENCY = 64
BARRIER = 32
LAUNCH = 10_000

TRANSCENDENTAL = 4  # times as long as another vector instruction
# Compute units of one product with each chip: AMD's data sheets and product pages of MI100,
# MI210, MI300X, MI355X, RX 7900 XTX, RX 7800 XT, RX 7600, Radeon 8060S, RX 9060 XT, RX 9070 XT.
COMPUTE_UNITS = {
    "gfx908": 120,
    "gfx90a": 104,
    "gfx942": 304,
    "gfx950": 256,
    "gfx1100": 96,
    "gfx1101": 60,
    "gfx1102": 32,
    "gfx1151": 40,
    "gfx1200": 32,
    "gfx1201": 64,
}
OTHER_UNITS = 64  # of a chip that is not listed, as gfx1250: no figure of it is published

# FLOPs that a SIMD's matrix instructions do in a cycle, for 16-bit elements: the peaks of the same
# data sheets, divided by units, SIMDs and clock. Elements of 8 bits and fewer take half the time,
# those of 32 and 64 bits eight times as long.
MATRIX_FLOPS = {
    "CDNA1": 256,
    "CDNA2": 256,
    "CDNA3": 512,
    "CDNA4": 1024,
    "RDNA3": 256,
    "RDNA3.5": 256,
    "RDNA4": 512,
}
OTHER_MATRIX_FLOPS = 256  # of a family that is not listed, as CDNA5
# Bytes that a compute unit's first vector cache gives in a cycle (papers on CDNA 3 and RDNA).
CACHE_BYTES = {"CDNA": 64, "RDNA": 128}
SIMD_LANES = {"CDNA": 16, "RDNA": 32}


@record
class Work:
    """What a launch did, over all its `waves`, of which `working` ones had something to do.
    Instructions are of waves: `vector` without the
    `transcendental` ones, `matrix_flops` in FLOPs of 16-bit elements, `other` all that is neither
    vector nor matrix. `lds_cycles` have bank conflicts in them; `lines` are cache lines touched;
    `global_waits` and `local_waits` are waits for loads and stores.

    `shared_simds` is the number of SIMDs of the unit that shares LDS, `units` that of compute units
    in it, `resident` the number of workgroups that it holds at once."""

    target: str
    workgroups: int
    waves: int
    working: int
    lanes: int
    vector: float = 0
    transcendental: float = 0
    matrix_flops: float = 0
    matrix: float = 0
    other: float = 0
    lds_cycles: float = 0
    lines: float = 0
    global_waits: float = 0
    local_waits: float = 0
    barriers: float = 0
    shared_simds: int = 4
    units: int = 1
    resident: int = 1


@record
class Cost:
    """`cycles` of a launch, and what decides about them: "vector", "scalar", "matrix", "LDS",
    "memory", or "latency"."""

    cycles: float
    limit: str


def cost(work: Work) -> Cost:
    """The modelled cycles of a launch, without those between launches."""
    if not work.workgroups:
        return Cost(0.0, "nothing")
    chip = registry.find(work.target)
    kind = chip.family[:4] if chip.family[:4] in SIMD_LANES else "RDNA"
    interval = 4 if facts_of(chip).is_gfx9 else 1  # cycles between two instructions of a wave
    vector = max(interval, work.lanes / SIMD_LANES[kind])
    line = chip.cache_line / CACHE_BYTES[kind]
    flops = MATRIX_FLOPS.get(chip.family, OTHER_MATRIX_FLOPS)

    groups = -(-work.workgroups // max(1, COMPUTE_UNITS.get(chip.name, OTHER_UNITS) // work.units))
    resident = max(1, min(work.resident, groups))
    group_waves = work.waves / work.workgroups
    simds = min(work.shared_simds, resident * group_waves)

    # Cycles of all waves, of each unit that works beside the others.
    busy = {
        "vector": vector * (work.vector + TRANSCENDENTAL * work.transcendental) / simds,
        "matrix": work.matrix_flops / flops / simds,
        "scalar": interval * work.other / simds,
        "LDS": work.lds_cycles / work.units,
        "memory": work.lines * line / work.units,
    }
    # A wave by itself: one instruction after the other, and its waits.
    alone = (
        vector * (work.vector + TRANSCENDENTAL * work.transcendental)
        + work.matrix_flops / flops
        + interval * (work.other + work.matrix)
        + work.lds_cycles
        + work.lines * line
        + work.global_waits * GLOBAL_LATENCY
        + work.local_waits * LOCAL_LATENCY
        + work.barriers * BARRIER
    ) / max(1, work.working)

    limit = max(busy, key=lambda name: busy[name])
    throughput = groups * busy[limit] / work.workgroups
    latency = -(-groups // resident) * alone
    return Cost(throughput, limit) if throughput > latency else Cost(latency, "latency")
