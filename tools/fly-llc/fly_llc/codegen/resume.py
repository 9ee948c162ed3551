"""Restores what MIR loses between the llc that prints it and the llc that resumes from it.

Both losses concern RDNA (LLVM 22):

- In waves of 32 lanes, instructions that use VCC implicitly use its lower half. LLVM prints the
  half but cannot parse it: it expects the full name and replaces it by the half itself.
- The number of user SGPRs in a kernel's descriptor. gfx11 initialises at least 16 scalar registers
  before a wave starts, so LLVM reserves user SGPRs before the workgroup IDs. MIR lacks their
  number, but it records the registers of the workgroup IDs, which follow them.
"""

from __future__ import annotations

import re
import struct

# Opcodes with VCC among their implicit operands (SIInstructions, VOP2, VOPC).
_USES_VCC = re.compile(
    rb"^.*\b(?:S_CBRANCH_VCCN?Z|V_CMPX?_\w+_(?:e32|sdwa)\w*"
    rb"|V_(?:CNDMASK_B(?:16|32)|ADDC_U32|SUBB_U32|SUBBREV_U32)_(?:e32|dpp|sdwa)\w*"
    rb"|V_(?:ADD|SUB|SUBREV)_(?:CO_U32|CO_CI_U32)_(?:e32|dpp|sdwa)\w*"
    rb"|V_DIV_FMAS_F(?:32|64)_e64\w*|V_DUAL_\w*CNDMASK\w*) .*$",
    re.MULTILINE,
)
_HALF = re.compile(rb"(implicit(?:-def)? (?:killed |dead |undef )*\$vcc)_lo\b")
_FUNCTION = re.compile(rb"^name: +(\S+)$", re.MULTILINE)
_FIRST_GROUP = re.compile(rb"^ +workGroupID[XYZ]: +\{ reg: '\$sgpr(\d{1,3})' \}$", re.MULTILINE)
_ASM_COUNT = re.compile(rb"(\.amdhsa_user_sgpr_count )\d+")

# The descriptor's compute_pgm_rsrc2: ENABLE_PRIVATE_SEGMENT is bit 0, USER_SGPR_COUNT bits 5:1
# (LLVM's guide for AMDGPU, "Kernel Descriptor").
_RSRC2 = 52
_COUNT_SHIFT, _COUNT_MASK = 1, 0x1F


def readable(mir: bytes) -> bytes:
    """Converts MIR that LLVM printed to MIR that it can parse."""
    if b"$vcc_lo" not in mir:
        return mir
    return _USES_VCC.sub(lambda line: _HALF.sub(rb"\1", line[0]), mir)


def user_registers(mir: bytes) -> dict[str, int]:
    """Returns the number of user SGPRs of each function that gets workgroup IDs in scalar
    registers: those before the workgroup IDs."""
    starts = [*_FUNCTION.finditer(mir)]
    ends = [match.start() for match in starts[1:]] + [len(mir)]
    found = {}
    for match, end in zip(starts, ends, strict=False):  # one end even without functions
        groups = [int(row[1]) for row in _FIRST_GROUP.finditer(mir, match.end(), end)]
        if groups:
            name = match[1].decode(errors="backslashreplace").strip("'\"")
            found[name] = min(groups)
    return found


def restore(made: bytes, mir: bytes, emit: str) -> bytes:
    """Returns llc's output for MIR, an object or assembly, with the number of user SGPRs set to the
    one that the MIR's registers imply."""
    counts = user_registers(mir)
    if emit == "asm":
        return _in_assembly(made, counts)
    return _in_object(made, counts) if emit == "obj" else made


def _in_object(obj: bytes, counts: dict[str, int]) -> bytes:
    from fly_image.elf import Elf

    elf = Elf.parse(obj)
    data = bytearray(obj)
    for name, count in counts.items():
        descriptor = elf.symbols.get(f"{name}.kd")
        if descriptor is None:  # not a kernel
            continue
        at = elf.sections[descriptor.section].offset + descriptor.value + _RSRC2
        (word,) = struct.unpack_from("<I", data, at)
        word = word & ~(_COUNT_MASK << _COUNT_SHIFT) | count << _COUNT_SHIFT
        struct.pack_into("<I", data, at, word)
    return bytes(data)


def _in_assembly(text: bytes, counts: dict[str, int]) -> bytes:
    pieces = re.split(rb"(^\t\.amdhsa_kernel \S+$)", text, flags=re.MULTILINE)
    for number in range(1, len(pieces), 2):
        count = counts.get(pieces[number].split()[1].decode(errors="backslashreplace"))
        if count is not None:
            pieces[number + 1] = _ASM_COUNT.sub(rb"\g<1>%d" % count, pieces[number + 1], count=1)
    return b"".join(pieces)
