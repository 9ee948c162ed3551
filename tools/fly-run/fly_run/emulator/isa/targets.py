"""The processors that the emulator runs, and what of a launch depends on them.

Sources: LLVM's "User Guide for AMDGPU Backend", "Processors", "Kernel Descriptor" (register
granules, wave sizes) and "Initial Kernel Execution State" (where workgroup numbers arrive).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """`wave_size` is that of kernels that ask for none. `lds` is in bytes, for one workgroup.
    `granule` is the number of vector registers that the descriptor counts in, in waves of that
    size. `true16`: the halves of a vector register are named, v0.l and v0.h.
    `ids_in_ttmp`: workgroup numbers arrive in ttmp9 and ttmp7; the barrier is in two parts and
    MODE has neither IEEE nor DX10_CLAMP. `smem_bits` is the width of a scalar load's constant
    offset, sign included."""

    name: str
    wave_size: int
    lds: int
    granule: int
    is_rdna: bool = False
    features: str = ""  # LLVM subtarget features for the disassembler
    ids_in_ttmp: bool = False
    smem_bits: int = 21

    @property
    def wave_sizes(self) -> tuple[int, ...]:
        """The sizes that a kernel's waves may have."""
        return (32, 64) if self.is_rdna else (64,)


TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("gfx90a", wave_size=64, lds=64 << 10, granule=8),
        Target("gfx942", wave_size=64, lds=64 << 10, granule=8),
        Target("gfx950", wave_size=64, lds=160 << 10, granule=8),
        Target("gfx1100", wave_size=32, lds=64 << 10, granule=8, is_rdna=True),
        Target(
            "gfx1201",
            wave_size=32,
            lds=64 << 10,
            granule=8,
            is_rdna=True,
            # Encodings name halves of registers; without this the text of some says nothing.
            features="+real-true16",
            ids_in_ttmp=True,
            smem_bits=24,
        ),
    )
}
CDNA = frozenset(name for name, target in TARGETS.items() if not target.is_rdna)
RDNA = frozenset(name for name, target in TARGETS.items() if target.is_rdna)
