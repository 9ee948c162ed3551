"""What only AMD's chips have: `AmdFacts`."""

from __future__ import annotations

from fly_common.record import record

from fly_target.amd.waits import Waits

TYPE_CHECKING = False  # typing's own costs 5 ms
if TYPE_CHECKING:
    from fly_target.target import Target

# Where accumulation registers (a0 …) are.
NONE = "none"
SEPARATE = "separate"  # a file of their own, as large as the other one
UNIFIED = "unified"  # the upper part of one file, from the descriptor's accum_offset on


@record
class RegisterFiles:
    """The registers of a SIMD. Numbers of vector registers are for each lane of waves of the
    default size; waves of 64 on a chip whose default is 32 have half as many and half the granules.

    `vgprs` in all, allocated to a wave by the `granule`; the kernel descriptor counts in
    `encoded_granule`. `accumulation` is NONE, SEPARATE or UNIFIED. `sgpr_waves`: up to so many
    scalar registers of a wave allow so many waves; the last entry has no bound. Empty where every
    wave has all of them.
    """

    vgprs: int
    granule: int
    encoded_granule: int = 8
    accumulation: str = NONE
    sgpr_waves: tuple[tuple[int, int], ...] = ()


@record
class ComputeUnit:
    """What shares LDS. `work_group_processor`: kernels choose between one unit and a processor of
    two, which has twice the SIMDs and LDS; `simds` are those of one unit. `barriers`: the
    workgroups of more than one wave that it holds at most."""

    simds: int
    waves: int  # of a SIMD
    barriers: int
    work_group_processor: bool = False


@record
class AmdFacts:
    """`generation` is the major version of the instruction set: 9, 11, 12.

    `elf_machine` is EF_AMDGPU_MACH; `isa_version` what the device libraries count by
    (__oclc_ISA_version); `features` are LLVM's subtarget features that the disassembler needs.
    `smem_offset_bits` is the width of a scalar load's constant offset, sign included.
    `buffer_flags` are bits of a buffer descriptor's fourth word that raw, checked accesses need.
    `packed_work_item_ids`: a work item finds its x, y and z in 10 bits each of v0, not in v0, v1
    and v2. `workgroup_ids_in_ttmp`: a wave finds its workgroup in ttmp9 and ttmp7, not in SGPRs.
    `split_barriers`: s_barrier_signal and s_barrier_wait. `mode_has_ieee`: MODE has IEEE and
    DX10_CLAMP. `clamps_poles`: FP16_OVFL also clamps what divisions by zero give.
    `sums` names the arithmetic by which the emulator sums products of f16 and bf16, of which
    `sums_note` says where it is known from.
    """

    generation: int
    waits: Waits
    registers: RegisterFiles
    unit: ComputeUnit
    elf_machine: int = 0
    isa_version: int = 0
    features: str = ""
    smem_offset_bits: int = 21
    buffer_flags: int = 0
    packed_work_item_ids: bool = True
    workgroup_ids_in_ttmp: bool = False
    split_barriers: bool = False
    mode_has_ieee: bool = True
    clamps_poles: bool = False
    sums: str = ""
    sums_note: str = ""

    @property
    def is_gfx9(self) -> bool:
        return self.generation == 9

    @property
    def traits(self) -> set[str]:
        return {f"gfx{self.generation}", self.sums}


def facts_of(target: Target) -> AmdFacts:
    """The record of one of AMD's chips, where no other can be meant."""
    assert target.amd is not None, f"{target.name} is none of AMD's chips"
    return target.amd
