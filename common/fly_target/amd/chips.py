"""AMD's chips: one row each. A new chip of a known generation is a new row.

A row gives the name, the generation and the products. Other fields are the generation's unless the
row overrides them. LLVM's name, the ELF file's processor number and the ISA version of the device
libraries follow from the chip's name.
"""

from __future__ import annotations

from fly_common.record import replace

from fly_target.amd import generations
from fly_target.amd.facts import RegisterFiles
from fly_target.amd.processors import MACHINES, version
from fly_target.target import Target


def chip(
    name: str, generation: Target, products: str, registers: RegisterFiles | None = None
) -> Target:
    """Returns the row of a chip that LLVM calls `name`."""
    facts, number = generation.amd, version(name)
    assert facts is not None
    assert number is not None
    major, minor, stepping = number
    facts = replace(
        facts,
        elf_machine=MACHINES[name],
        isa_version=1000 * major + 100 * minor + stepping,
        registers=registers or facts.registers,
    )
    return replace(generation, name=name, cpu=name, products=products, amd=facts)


CHIPS = (
    chip("gfx908", generations.CDNA1, "MI100"),
    chip("gfx90a", generations.CDNA2, "MI210, MI250, MI250X"),
    chip("gfx942", generations.CDNA3, "MI300A, MI300X, MI325X"),
    chip("gfx950", generations.CDNA4, "MI350X, MI355X"),
    chip("gfx1100", generations.RDNA3, "Radeon RX 7900"),
    chip("gfx1101", generations.RDNA3, "Radeon RX 7700, RX 7800"),
    chip("gfx1102", generations.RDNA3, "Radeon RX 7600", generations.RDNA_SMALL_FILE),
    chip("gfx1151", generations.RDNA3_5, "Ryzen AI Max: Radeon 8050S, 8060S"),
    chip("gfx1200", generations.RDNA4, "Radeon RX 9060"),
    chip("gfx1201", generations.RDNA4, "Radeon RX 9070"),
    chip("gfx1250", generations.CDNA5, "MI455X"),
)
