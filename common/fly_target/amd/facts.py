"""`AmdFacts`: the properties that only AMD's chips have."""

from __future__ import annotations

from fly_common.record import record

from fly_target.amd.waits import Waits

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from fly_target.target import Target

# Location of the accumulation registers (a0 …).
NONE = "none"
SEPARATE = "separate"  # a register file of their own, of the same size
UNIFIED = "unified"  # the upper part of the one file, starting at the descriptor's accum_offset


@record
class RegisterFiles:
    """The registers of a SIMD. Numbers of vector registers are per lane, for waves of the default
    size. Waves of 64 on a chip whose default is 32 have half as many, and half the granules.

    `vgprs` is the total. They are allocated to waves in units of `granule`; the kernel descriptor
    counts in units of `encoded_granule`. `accumulation` is NONE, SEPARATE or UNIFIED. `sgpr_waves`
    holds (scalar registers of a wave, waves) pairs: a wave with at most so many registers allows so
    many waves. The last entry has no bound. It is empty if every wave has all scalar registers.
    """

    vgprs: int
    granule: int
    encoded_granule: int = 8
    accumulation: str = NONE
    sgpr_waves: tuple[tuple[int, int], ...] = ()


@record
class ComputeUnit:
    """The unit that shares LDS. `work_group_processor`: kernels choose between one unit and a
    processor of two, which has twice the SIMDs and LDS; `simds` counts those of one unit.
    `barriers` is the maximum number of resident workgroups of more than one wave."""

    simds: int
    waves: int  # per SIMD
    barriers: int
    work_group_processor: bool = False


@record
class AmdFacts:
    """`generation` is the major version of the instruction set: 9, 11, 12.

    `elf_machine` is EF_AMDGPU_MACH. `isa_version` is the device libraries' __oclc_ISA_version.
    `features` are LLVM's subtarget features that the disassembler needs. `smem_offset_bits` is the
    width of a scalar load's constant offset, including the sign. `buffer_flags` are the bits of a
    buffer descriptor's fourth word that raw, bounds-checked accesses need. `packed_work_item_ids`:
    x, y and z of a work item are in 10 bits each of v0, instead of v0, v1 and v2. `packed_f32`: it
    pays to compute two f32 by v_pk_add_f32; gfx1250 has it too, but also does any two operations of
    f32 at once (VOPD).
    `workgroup_ids_in_ttmp`: the workgroup ids are in ttmp9 and ttmp7, instead of SGPRs.
    `split_barriers`: has s_barrier_signal and s_barrier_wait. `clusters`: workgroups may form
    clusters, whose ids are in ttmp6. `preload_prologue`: kernels with preloaded arguments start
    with 256 bytes of code for firmware without preloading. `user_sgpr_bits` is the width of the
    descriptor's number of user SGPRs. `vgprs` is the number of vector registers that a kernel can
    address; more than 256 need s_set_vgpr_msb. `generated_vgprs` is the number that LLVM may use,
    if it is less. `named_barriers`: their number. `global_scratch`: addresses of private memory
    name the lane, and start at src_flat_scratch_base. `wide_resources`: buffer resources have a
    base of 57 bits and NUM_RECORDS of 45 bits. `signed_offsets`: the vector offset of an access
    with a scalar base is signed. `mode_has_ieee`: MODE has IEEE and DX10_CLAMP. `clamps_poles`:
    FP16_OVFL also clamps the results of divisions by zero. `sums` names the emulator's
    arithmetic for sums of products of f16 and bf16; `sums_note` gives its source.
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
    packed_f32: bool = False
    workgroup_ids_in_ttmp: bool = False
    split_barriers: bool = False
    clusters: bool = False
    preload_prologue: bool = True
    user_sgpr_bits: int = 5
    vgprs: int = 256
    generated_vgprs: int | None = None
    global_scratch: bool = False
    wide_resources: bool = False
    named_barriers: int = 0
    signed_offsets: bool = False
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
    """Returns the facts of a target that is known to be AMD's."""
    assert target.amd is not None, f"{target.name} is none of AMD's chips"
    return target.amd
