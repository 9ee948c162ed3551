"""What the chips of one architecture share: rows without a name, from which `chips` makes chips.

Sources:

    LLVM     "User Guide for AMDGPU Backend" (Processors; Kernel Descriptor; Initial Kernel
             Execution State); AMDGPUBaseInfo.cpp (getTotalNumVGPRs, getVGPRAllocGranule,
             getMaxWavesPerEU, getMaxWorkGroupsPerCU, getLocalMemorySize); GCNSubtarget
             (getOccupancyWithNumSGPRs); AMDGPUTargetMachine (data layout). Wave sizes, LDS,
             registers, waves, barriers.
    manuals  the ISA manuals of MI100, MI200, MI300, MI350, RDNA3, RDNA3.5 and RDNA4: formats,
             matrix instructions, MODE, descriptors, waits.
    papers   lines of the first cache: CDNA 2 and CDNA 3 white papers ("vector L1 cache"), RDNA
             white paper ("L0 vector cache"). Banks of LDS: the head of `fly_target.bank_conflicts`.
"""

from __future__ import annotations

from fly_common.record import replace

from fly_target.amd import waits
from fly_target.amd.facts import SEPARATE, UNIFIED, AmdFacts, ComputeUnit, RegisterFiles
from fly_target.amd.triple import DATA_LAYOUT, TRIPLE
from fly_target.target import FNUZ, OCP, LdsBanks, Target

BACKEND = "rocm"
# RDNA: bit 24 of a buffer descriptor's fourth word is always set. Bits 28 and 29 select the bounds
# check; 3 compares offset + size with the number of bytes. CDNA always does that check.
RDNA_BUFFER_FLAGS = 1 << 24 | 3 << 28

# SGPRs of a wave (including VCC and other special ones) and the waves per SIMD that they allow.
GFX9_SGPR_WAVES = ((80, 10), (88, 9), (100, 8), (1 << 16, 7))

_CDNA2 = AmdFacts(
    generation=9,
    waits=waits.GFX9,
    registers=RegisterFiles(512, 8, accumulation=UNIFIED, sgpr_waves=GFX9_SGPR_WAVES),
    unit=ComputeUnit(simds=4, waves=8, barriers=16),
    packed_f32=True,
    sums="flushing",
    sums_note="exact, by the published model of CDNA2",
)
CDNA2 = Target(
    name="",
    backend=BACKEND,
    family="CDNA2",
    products="",
    cpu="",
    triple=TRIPLE,
    data_layout=DATA_LAYOUT,
    wave_sizes=(64,),
    max_workgroup=1024,
    lds=64 << 10,
    lds_banks=LdsBanks(crossed=True),
    cache_line=64,
    matrix="CDNA2",
    emulated=True,
    amd=_CDNA2,
)
# MI100: two files of 256 registers. Only the second can hold C and D of matrix instructions.
CDNA1 = replace(
    CDNA2,
    family="CDNA1",
    matrix="CDNA1",
    amd=replace(
        _CDNA2,
        registers=RegisterFiles(256, 4, 4, SEPARATE, GFX9_SGPR_WAVES),
        unit=ComputeUnit(simds=4, waves=10, barriers=16),
        packed_work_item_ids=False,
        packed_f32=False,
        sums="chained",
        sums_note="chains of fused multiply-adds; no model of CDNA1 is published",
    ),
)
_CDNA3 = replace(_CDNA2, sums="truncating", sums_note="exact, by the published model of CDNA3")
CDNA3 = replace(
    CDNA2,
    family="CDNA3",
    cache_line=128,
    float8=FNUZ,
    matrix="CDNA3",
    amd=_CDNA3,
)
CDNA4 = replace(
    CDNA3,
    family="CDNA4",
    lds=160 << 10,
    lds_banks=LdsBanks(crossed=True, doubled=(("load", 8), ("load", 16))),
    float8=OCP,
    block_floats=("f6E2M3FN", "f6E3M2FN", "f4E2M1FN"),
    matrix="CDNA4",
    amd=replace(_CDNA3, sums_note="by the model of CDNA3; none is published for this target"),
)

# The larger chips of a generation have 1.5 times as many vector registers as the others (LLVM's
# feature allocate1_5xvgprs).
RDNA_LARGE_FILE = RegisterFiles(1536, 24)
RDNA_SMALL_FILE = RegisterFiles(1024, 16)
_RDNA3 = AmdFacts(
    generation=11,
    waits=waits.GFX11,
    registers=RDNA_LARGE_FILE,
    unit=ComputeUnit(simds=2, waves=16, barriers=32, work_group_processor=True),
    buffer_flags=RDNA_BUFFER_FLAGS,
    sums="complements",
    sums_note="floats as measured on gfx1100",
)
RDNA3 = replace(
    CDNA2,
    family="RDNA3",
    wave_sizes=(32, 64),
    lds_banks=LdsBanks(),
    cache_line=128,
    matrix="RDNA3",
    amd=_RDNA3,
)
RDNA3_5 = replace(
    RDNA3,
    family="RDNA3.5",
    amd=replace(_RDNA3, sums_note="floats as measured on gfx1100, of the generation before"),
)
_RDNA4 = replace(
    _RDNA3,
    generation=12,
    waits=waits.GFX12,
    # Encodings name register halves; without this feature, the disassembly of some is ambiguous.
    features="+real-true16",
    smem_offset_bits=24,
    workgroup_ids_in_ttmp=True,
    split_barriers=True,
    mode_has_ieee=False,
    clamps_poles=True,
    sums="pairs",
    sums_note="dense f16 and bf16 as measured on gfx1201; others by the model of CDNA3",
)
RDNA4 = replace(
    RDNA3,
    family="RDNA4",
    float8=OCP,
    matrix="RDNA4",
    amd=_RDNA4,
)

# LLVM calls it gfx1250. Its LDS banks and cache lines are not published; those of RDNA4 are
# assumed.
CDNA5 = replace(
    RDNA4,
    family="CDNA5",
    wave_sizes=(32,),
    lds=320 << 10,
    matrix="gfx1250",
    emulated=True,
    amd=replace(
        _RDNA4,
        registers=RegisterFiles(1024, 16, 16),
        unit=ComputeUnit(simds=4, waves=16, barriers=32),
        buffer_flags=0,
        clusters=True,
        preload_prologue=False,
        user_sgpr_bits=6,
        vgprs=1024,
        # LLVM 22 moves s_set_vgpr_msb before an instruction that needs the setting before it
        # (llvm/llvm-project#176206).
        generated_vgprs=256,
        global_scratch=True,
        wide_resources=True,
        named_barriers=16,
        signed_offsets=True,
        sums="",
        sums_note="by the model of CDNA3; none is published for this target",
    ),
)
