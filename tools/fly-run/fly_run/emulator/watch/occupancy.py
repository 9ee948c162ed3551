"""How many waves and workgroups a compute unit holds at once, and what keeps it from more.

The numbers of registers, waves, barriers and bytes are the target's (`AmdFacts`), and LLVM's
(AMDGPUBaseInfo.cpp; GCNSubtarget: getOccupancyWithNumSGPRs), so that `waves` is what its ";
Occupancy:" remark says of a kernel with this workgroup size. As there, the granule in which LDS is
allocated is left out.

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
    """A compute unit as a kernel finds it: SIMDs, waves of a SIMD, vector registers of a SIMD for
    each lane and their granule, workgroups with a barrier, bytes of LDS."""

    simds: int
    waves: int
    registers: int
    granule: int
    barriers: int
    lds: int
    encoded: int  # the granule of the number in the kernel descriptor


@dataclass(frozen=True)
class Occupancy:
    """`waves` of a SIMD at most, out of `most`; `limits` names what allows no more (VGPR, SGPR,
    LDS, workgroups), and is empty where `waves` is `most`. `workgroups` and `unit_waves` are those
    that a compute unit holds at once; `vgprs` are those allocated to a lane."""

    waves: int
    most: int
    workgroups: int
    unit_waves: int
    vgprs: int
    limits: tuple[str, ...]


WGP_MODE = 1 << 29


def occupancy(target: str, kernel: Kernel, items: int, lds: int) -> Occupancy | None:
    """For workgroups of `items` work items with `lds` bytes, static and dynamic; None for a
    processor that is none of the targets."""
    row = registry.get(target)
    if row is None:
        return None
    files = facts_of(row).registers
    unit = _unit(row, kernel)
    group = -(-items // kernel.wavefront_size)  # waves of a workgroup
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
    # All waves of a workgroup are there at once, spread over the SIMDs.
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
    # Twice the lanes of a wave take twice the registers of the file.
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
    """Workgroups of `group` waves by wave slots and barriers; one wave needs no barrier."""
    most = unit.simds * unit.waves // group
    return most if group == 1 else min(most, unit.barriers)


def _per_simd(unit: Unit, group: int, workgroups: int) -> int:
    """Waves of the fullest SIMD with so many workgroups of `group` waves."""
    return max(1, min(unit.waves, -(-workgroups * group // unit.simds)))


def _sgpr_waves(files: RegisterFiles, unit: Unit, count: int) -> int:
    """The waves that so many scalar registers of each allow."""
    return next((waves for most, waves in files.sgpr_waves if count <= most), unit.waves)
