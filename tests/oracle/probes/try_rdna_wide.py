"""Probes of gfx11 and gfx12 in waves of 64 lanes, whose lane masks are pairs of registers.

The families are try_rdna's. There is no VOPD in such waves, the emulator refuses transposed loads,
and what a wave's size has no part in is not tested again: moves of scalars, scalar loads.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace

from oracle.memory import rdna_memory
from oracle.probes import rdna_probe, try_rdna, try_scalar
from oracle.probes.probe import Probe, known_to
from oracle.probes.try_vector import masks
from oracle.vector import rdna_dots, rdna_valu

OPTION = "-mattr=+wavefrontsize64"
SAME = ("duals", "cdna5", "cdna5_memory", "scalar_loads", "transposed")
# Every sixth probe of what gfx9 has too is enough: its waves of 64 lanes are tested with all.
PART = 6
# But all of these families: they name lane masks, move data between lanes, or are gfx11's own.
WHOLE = ("masks", "lanes", "scalars", "atomics", "rare")
OWN = (*rdna_valu.TABLE, *rdna_dots.BITS, *rdna_memory.DS)


def widened(text: str) -> str:
    """Converts the lane masks of a probe for waves of 32 lanes."""
    text = re.sub(r"(v_cmp_\w+) s16,", r"\1 s[16:17],", text)
    text = re.sub(r"(v_cndmask_b16 .*), s22$", r"\1, s[22:23]", text)
    text = text.replace("s_mov_b32 s16, vcc_lo", "s_mov_b64 s[16:17], vcc")
    return text.replace("vcc_lo", "vcc")


def _probes(target: str, family: str) -> list[Probe]:
    if family == "masks":
        return masks()
    found = try_rdna.FAMILIES[family](target)
    if family == "scalars":
        found += [probe for probe in try_scalar.scalars() if "exec_b64" in probe.text]
    return [replace(probe, text=widened(probe.text)) for probe in found]


FAMILIES = tuple(family for family in try_rdna.FAMILIES if family not in SAME)


@functools.cache
def probes_for(target: str, family: str) -> list[Probe]:
    """Returns the family's probes that llvm-mc knows, in the target's spelling."""
    given = {
        rdna_probe.spelled(probe.text, target, wide=True).strip(): probe
        for probe in _probes(target, family)
    }
    known = known_to(target, list(given), OPTION)
    return [
        replace(probe, text=text, about=try_rdna.subject(probe, target))
        for (text, probe), good in zip(given.items(), known, strict=True)
        if good
    ]


def supported(target: str, family: str) -> list[Probe]:
    """Returns the probes for the emulator: of what gfx9 has too only some."""
    chosen = probes_for(target, family)
    if family in WHOLE:
        return chosen
    return [p for k, p in enumerate(chosen) if k % PART == 0 or p.about in OWN]
