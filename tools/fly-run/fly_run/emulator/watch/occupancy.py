"""The number of waves and workgroups that a compute unit holds at once, and what limits it.

The numbers of registers, waves, barriers and bytes are the target's (`AmdFacts`) and LLVM's
(AMDGPUBaseInfo.cpp; GCNSubtarget: getOccupancyWithNumSGPRs), so `waves` equals LLVM's ";
Occupancy:" remark for a kernel with this workgroup size. As in LLVM, the LDS allocation granule is
ignored.

On gfx11 and gfx12 a "compute unit" is whatever shares LDS: a work-group processor of two units, or
one of them in CU mode (compute_pgm_rsrc1 bit 29, WGP_MODE).
"""

from __future__ import annotations

from dataclasses import dataclass

from fly_image.amd.code_object import Kernel
from fly_target import registry
from fly_target.amd.facts import RegisterFiles, facts_of
from fly_target.target import Target


@dataclass(frozen=True)
class Unit:
    """The resources of a compute unit for a kernel: SIMDs, waves per SIMD, vector registers per
    SIMD and lane and their granule, workgroups with a barrier, bytes of LDS."""

    simds: int
    waves: int
    registers: int
    granule: int
    barriers: int
    lds: int
    encoded: int  # the granule of the register count in the kernel descriptor


@dataclass(frozen=True)
class Occupancy:
    """`waves` is the number of waves per SIMD, at most `most`; `limits` names what limits it (VGPR,
    SGPR, LDS, workgroups), and is empty if `waves` is `most`. `workgroups` and `unit_waves` are the
    numbers that a compute unit holds at once; `vgprs` is the number allocated per lane."""

    waves: int
    most: int
    workgroups: int
    unit_waves: int
    vgprs: int
    limits: tuple[str, ...]


WGP_MODE = 1 << 29


def occupancy(target: str, kernel: Kernel, items: int, lds: int) -> Occupancy | None:
    """Returns the occupancy for workgroups of `items` work items with `lds` bytes, static and
    dynamic; None for an unknown processor."""
    row = registry.get(target)
    if row is None:
        return None
    files = facts_of(row).registers
    unit = _unit(row, kernel)
    group = -(-items // kernel.wavefront_size)  # waves per workgroup
    vgprs = ((kernel.compute_pgm_rsrc1 & 0x3F) + 1) * unit.encoded
    vgprs = -(-vgprs // unit.granule) * unit.granule
    slots = unit.simds * unit.waves
    room = {
        "VGPR": min(unit.waves, max(1, unit.registers // vgprs)),
        "SGPR": min(unit.waves, _sgpr_waves(files, unit, kernel.sgpr_count)),
        "LDS": _per_simd(unit, group, min(slots // group, unit.lds // lds if lds else slots)),
        "workgroups": _per_simd(unit, group, _slots(unit, group)),
    }
    waves = min(room.values())
    limits = tuple(name for name, most in room.items() if most == waves)
    # All waves of a workgroup are resident together, distributed over the SIMDs.
    held = min(
        min(room["VGPR"], room["SGPR"]) * unit.simds // group,
        _slots(unit, group),
        unit.lds // lds if lds else slots,
    )
    return Occupancy(
        waves,
        unit.waves,
        held,
        held * group,
        vgprs,
        limits if waves < unit.waves else (),
    )


def _unit(target: Target, kernel: Kernel) -> Unit:
    facts = facts_of(target)
    files, unit = facts.registers, facts.unit
    # A wave of twice the lanes uses twice the registers of the file.
    longer = kernel.wavefront_size // target.wave_size
    both = unit.work_group_processor and bool(kernel.compute_pgm_rsrc1 & WGP_MODE)
    return Unit(
        simds=unit.simds * (1 + both),
        waves=unit.waves,
        registers=files.vgprs // longer,
        granule=files.granule // longer,
        barriers=unit.barriers,
        lds=target.lds * (1 + both),
        encoded=files.encoded_granule // longer,
    )


def _slots(unit: Unit, group: int) -> int:
    """Returns the workgroups of `group` waves by wave slots and barriers; one wave needs no
    barrier."""
    most = unit.simds * unit.waves // group
    return most if group == 1 else min(most, unit.barriers)


def _per_simd(unit: Unit, group: int, workgroups: int) -> int:
    """Returns the waves of the fullest SIMD for this number of workgroups of `group` waves."""
    return max(1, min(unit.waves, -(-workgroups * group // unit.simds)))


def _sgpr_waves(files: RegisterFiles, unit: Unit, count: int) -> int:
    """Returns the number of waves possible with `count` scalar registers each."""
    return next((waves for most, waves in files.sgpr_waves if count <= most), unit.waves)
