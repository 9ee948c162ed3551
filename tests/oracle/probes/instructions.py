"""The instructions tested by the probe kernel, by family."""

from __future__ import annotations

import functools
import re
from dataclasses import replace

from oracle.launching import device
from oracle.probes.probe import Probe, known_to
from oracle.probes.try_buffers import private_to_lds, structured, to_lds
from oracle.probes.try_matrix import matrix, rounded_matrices
from oracle.probes.try_memory import buffers, memory, scalar_loads
from oracle.probes.try_mode import mode
from oracle.probes.try_narrow import narrow_matrices, transposed
from oracle.probes.try_rare import rare
from oracle.probes.try_runs import runs
from oracle.probes.try_scalar import lanes, scalars
from oracle.probes.try_scalar_memory import scalar_memory
from oracle.probes.try_small import small
from oracle.probes.try_spaces import buffer_atomics, buffer_stores, flat, lds_more, scratch
from oracle.probes.try_vector import compares, masks, packed, vector

FAMILIES = {
    "vector": vector,
    "compares": compares,
    "masks": masks,
    "packed": packed,
    "lanes": lanes,
    "scalars": scalars,
    "memory": memory,
    "scalar_loads": scalar_loads,
    "buffers": buffers,
    "small": small,
    "buffer_stores": buffer_stores,
    "buffer_atomics": buffer_atomics,
    "flat": flat,
    "scratch": scratch,
    "lds_more": lds_more,
    "matrix": matrix,
    "rounded_matrices": rounded_matrices,
    "narrow_matrices": narrow_matrices,
    "transposed": transposed,
    "mode": mode,
    "rare": rare,
    "runs": runs,
    "scalar_memory": scalar_memory,
    "structured": structured,
    "to_lds": to_lds,
    "private_to_lds": private_to_lds,
}


# Families whose instructions are target-specific: the formats of small floats.
OWN = ("small",)


@functools.cache
def probes_for(target: str, family: str) -> tuple[list[Probe], list[str]]:
    """Returns the family's probes that llvm-mc knows on a target, and mnemonics without any."""
    if family in ("scratch", "private_to_lds") and target == "gfx90a":
        return [], []  # the kernel would have to set up FLAT_SCRATCH: whole kernels do
    returning = "glc" if target == "gfx90a" else "sc0"
    probes = [
        replace(probe, text=probe.text.replace("{rtn}", returning)) for probe in FAMILIES[family]()
    ]
    known = known_to(target, [probe.text for probe in probes])
    kept = [probe for probe, good in zip(probes, known, strict=True) if good]
    refused = [probe for probe, good in zip(probes, known, strict=True) if not good]
    return kept, sorted({subject(p) for p in refused} - {subject(p) for p in kept})


_AROUND = re.compile(
    r"s_waitcnt|s_mov|s_and_b32 s37|v_mov_b32|v_xor|v_add(c)?_co|ds_(write|read)_b(32|64|128) "
    r"|global_(store|load)_dword"
)


def subject(probe: Probe) -> str:
    """Returns the mnemonic that a probe tests: that of its first line that is not preparation."""
    lines = [line.strip() for line in probe.text.split("\n")]
    chosen = next((line for line in lines if not _AROUND.match(line)), lines[0])
    return probe.about or re.sub(r"_(e32|e64|dpp|sdwa)$", "", chosen.split()[0])


@functools.cache
def named(target: str, family: str) -> frozenset[str]:
    """Returns the mnemonics that a family's probes execute on a target."""
    lines = [line for probe in probes_for(target, family)[0] for line in probe.text.split("\n")]
    return frozenset(re.sub(r"_(e32|e64|dpp|sdwa)$", "", line.split()[0]) for line in lines)


def supported(target: str, family: str) -> list[Probe]:
    """Returns the probes for the emulator. The targets share most instructions: all forms of those
    are tested on gfx942, every third on the others."""
    implemented = device.implemented(target)
    chosen = [p for p in probes_for(target, family)[0] if subject(p) in implemented]
    if target == "gfx942" or len(chosen) < 200 or family in OWN:
        return chosen
    shared = named("gfx942", family)
    return [p for k, p in enumerate(chosen) if k % 3 == 0 or subject(p) not in shared]
