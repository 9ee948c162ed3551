"""How many waves and workgroups a compute unit holds at once, and what keeps it from more.

The numbers of registers, waves, barriers and bytes are LLVM's (AMDGPUBaseInfo.cpp:
getTotalNumVGPRs, getVGPRAllocGranule, getMaxWavesPerEU, getMaxWorkGroupsPerCU, getLocalMemorySize;
GCNSubtarget: getOccupancyWithNumSGPRs), so that `waves` is what its "; Occupancy:" remark says of
a kernel with this workgroup size. As there, the granule in which LDS is allocated is left out.

On gfx11 and gfx12 a "compute unit" is whatever shares LDS: a work-group processor of two units, or
one of them in CU mode (compute_pgm_rsrc1 bit 29, WGP_MODE).
"""

from __future__ import annotations

from dataclasses import dataclass

from fly_image.amd.code_object import Kernel


@dataclass(frozen=True)
class Unit:
    """A compute unit of a target: SIMDs, waves of a SIMD, vector registers of a SIMD for each lane
    and their granule, workgroups with a barrier, bytes of LDS."""

    simds: int
    waves: int
    registers: int
    granule: int
    barriers: int
    lds: int
    encoded: int = 8  # the granule of the number in the kernel descriptor


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


CDNA = Unit(simds=4, waves=8, registers=512, granule=8, barriers=16, lds=64 << 10)
CDNA4 = Unit(simds=4, waves=8, registers=512, granule=8, barriers=16, lds=160 << 10)
UNITS = {"gfx90a": CDNA, "gfx942": CDNA, "gfx950": CDNA4}
# gfx1100 and gfx1201 have half as many registers again as others of their generations.
RDNA_WAVES, RDNA_REGISTERS, RDNA_GRANULE, RDNA_BARRIERS = 16, 1536, 24, 32
RDNA = ("gfx1100", "gfx1201")
WGP_MODE = 1 << 29
# On gfx9, SGPRs of a wave (VCC and the like included) and the waves that they allow.
SGPR_WAVES = ((80, 10), (88, 9), (100, 8))
SGPR_WAVES_BEYOND = 7


def occupancy(target: str, kernel: Kernel, items: int, lds: int) -> Occupancy | None:
    """For workgroups of `items` work items with `lds` bytes, static and dynamic; None for a target
    that is not in the tables."""
    unit = _unit(target, kernel)
    if unit is None:
        return None
    group = -(-items // kernel.wavefront_size)  # waves of a workgroup
    vgprs = ((kernel.compute_pgm_rsrc1 & 0x3F) + 1) * unit.encoded
    vgprs = -(-vgprs // unit.granule) * unit.granule
    slots = unit.simds * unit.waves
    room = {
        "VGPR": min(unit.waves, max(1, unit.registers // vgprs)),
        "SGPR": min(unit.waves, _sgpr_waves(target, kernel.sgpr_count)),
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


def _unit(target: str, kernel: Kernel) -> Unit | None:
    if target not in RDNA:
        return UNITS.get(target)
    wide = kernel.wavefront_size == 64
    whole = bool(kernel.compute_pgm_rsrc1 & WGP_MODE)
    return Unit(
        simds=4 if whole else 2,
        waves=RDNA_WAVES,
        registers=RDNA_REGISTERS >> wide,
        granule=RDNA_GRANULE >> wide,
        barriers=RDNA_BARRIERS,
        lds=(128 if whole else 64) << 10,
        encoded=4 if wide else 8,
    )


def _slots(unit: Unit, group: int) -> int:
    """Workgroups of `group` waves by wave slots and barriers; one wave needs no barrier."""
    most = unit.simds * unit.waves // group
    return most if group == 1 else min(most, unit.barriers)


def _per_simd(unit: Unit, group: int, workgroups: int) -> int:
    """Waves of the fullest SIMD with so many workgroups of `group` waves."""
    return max(1, min(unit.waves, -(-workgroups * group // unit.simds)))


def _sgpr_waves(target: str, count: int) -> int:
    """gfx10 and later give every wave all of them."""
    if target in RDNA:
        return RDNA_WAVES
    return next((waves for most, waves in SGPR_WAVES if count <= most), SGPR_WAVES_BEYOND)
