"""The processors that LLVM 22 knows: their names and ELF numbers.

Source: LLVM's "User Guide for AMDGPU Backend", "Processors" and "ELF Code Object" (EF_AMDGPU_MACH).
The table is complete, so that an error can name an unsupported processor. `chips` has the supported
ones.
"""

from __future__ import annotations

# EF_AMDGPU_MACH, the low byte of e_flags → processor.
PROCESSORS = {
    0x20: "gfx600", 0x21: "gfx601", 0x3A: "gfx602", 0x22: "gfx700", 0x23: "gfx701", 0x24: "gfx702",
    0x25: "gfx703", 0x26: "gfx704", 0x3B: "gfx705", 0x28: "gfx801", 0x29: "gfx802", 0x2A: "gfx803",
    0x3C: "gfx805", 0x2B: "gfx810", 0x2C: "gfx900", 0x2D: "gfx902", 0x2E: "gfx904", 0x2F: "gfx906",
    0x30: "gfx908", 0x31: "gfx909", 0x32: "gfx90c", 0x3F: "gfx90a", 0x4C: "gfx942", 0x4F: "gfx950",
    0x51: "gfx9-generic", 0x5F: "gfx9-4-generic",
    0x33: "gfx1010", 0x34: "gfx1011", 0x35: "gfx1012", 0x42: "gfx1013", 0x52: "gfx10-1-generic",
    0x36: "gfx1030", 0x37: "gfx1031", 0x38: "gfx1032", 0x39: "gfx1033", 0x3E: "gfx1034",
    0x3D: "gfx1035", 0x45: "gfx1036", 0x53: "gfx10-3-generic",
    0x41: "gfx1100", 0x46: "gfx1101", 0x47: "gfx1102", 0x44: "gfx1103", 0x43: "gfx1150",
    0x4A: "gfx1151", 0x55: "gfx1152", 0x58: "gfx1153", 0x54: "gfx11-generic",
    0x48: "gfx1200", 0x4E: "gfx1201", 0x59: "gfx12-generic", 0x49: "gfx1250", 0x5A: "gfx1251",
}  # fmt: skip
MACHINES = {name: number for number, name in PROCESSORS.items()}


def version(name: str) -> tuple[int, int, int] | None:
    """Returns (major, minor, stepping) of a processor's instruction set: (9, 4, 2) for gfx942,
    (9, 0, 10) for gfx90a. Returns None for other names, such as gfx9-generic."""
    digits = name.removeprefix("gfx")
    if not name.startswith("gfx") or len(digits) not in (3, 4) or not digits[:-1].isdecimal():
        return None
    try:
        return int(digits[:-2]), int(digits[-2]), int(digits[-1], 16)
    except ValueError:
        return None
