"""All comparisons of single instructions that the suite makes: what is tried, on which target.

tests/fly_run/test_oracle_instructions.py and test_oracle_rdna.py make them; so does the mutation
run, which therefore sees what they would see.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from oracle import build, instructions, probe, rdna_probe, try_rdna

# With f32 denormals off (FLOAT_DENORM_MODE_32 = 0) f32 operations flush them, f64 don't.
SINGLE = re.compile(
    r"v_(add|sub|subrev|mul|fma|fmac|fmamk|min|max|cmpx?_\w+|pk_(add|mul|fma))_f(32|64)"
)
# With FLOAT_DENORM_MODE_16_64 = 0, f16 and f64 are flushed, and f32 is not. Of packed f16 the
# oracle has no such model: tests/fly_run/test_engine_rare.py.
SHORT = re.compile(
    r"v_((add|sub|subrev|mul|fma|mad|mac|madak|madmk|min3?|max3?|med3|floor|ceil|trunc|rndne)"
    r"|fract|cmpx?_\w+)_f(16|64)|v_(pk_)?(add|mul|min)_f32"
)


@dataclass(frozen=True)
class Run:
    """Probes of a target that go together. `denormals`, `short_denormals`: as probe.batch's."""

    target: str
    family: str
    denormals: int = 3
    short_denormals: int = 3

    def __str__(self) -> str:
        off = "f32" if self.denormals == 0 else "f16-f64" if self.short_denormals == 0 else ""
        return "-".join(part for part in (self.target, self.family, off) if part)

    @property
    def frame(self) -> probe.Frame:
        return rdna_probe.frame(self.target) if self.target in build.RDNA else probe.GFX9

    def probes(self) -> list[probe.Probe]:
        if self.target in build.RDNA:
            return try_rdna.supported(self.target, self.family)
        if self.family == "flushed":
            return flushed(self.target, SINGLE if self.denormals == 0 else SHORT)
        return instructions.supported(self.target, self.family)

    def batch(self, probes: list[probe.Probe]) -> probe.Batch:
        modes = {"denormals": self.denormals, "short_denormals": self.short_denormals}
        return probe.batch(probes, frame=self.frame, **modes)


def flushed(target: str, names: re.Pattern[str]) -> list[probe.Probe]:
    """The probes of instructions so named. A result that rounds up to the smallest normal number is
    left open."""
    return [
        replace(p, tininess=True)
        for family in ("vector", "compares", "packed")
        for p in instructions.supported(target, family)
        if names.match(instructions.subject(p)) and "class" not in p.text
    ]


FLUSHED = (
    Run("gfx942", "flushed", denormals=0),
    Run("gfx942", "flushed", short_denormals=0),
)


def gfx9() -> list[Run]:
    return [
        Run(target, family)
        for target in build.TARGETS
        for family in instructions.FAMILIES
        if instructions.supported(target, family)
    ]


def rdna() -> list[Run]:
    return [Run(target, family) for target in build.RDNA for family in try_rdna.FAMILIES]
