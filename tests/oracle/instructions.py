"""The instructions that the probe kernel tries, by family."""

from __future__ import annotations

import re
from dataclasses import replace

from oracle.probe import Probe, known_to
from oracle.try_memory import buffers, memory, scalar_loads
from oracle.try_scalar import lanes, scalars
from oracle.try_vector import compares, masks, packed, vector

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
}


def probes_for(target: str, family: str) -> tuple[list[Probe], list[str]]:
    """The family's probes that llvm-mc knows on a target, and the mnemonics it knows none of."""
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
    """The mnemonic that a probe is about: that of its first line that is no preparation."""
    lines = [line.strip() for line in probe.text.split("\n")]
    chosen = next((line for line in lines if not _AROUND.match(line)), lines[0])
    return re.sub(r"_(e32|e64|dpp|sdwa)$", "", chosen.split()[0])
