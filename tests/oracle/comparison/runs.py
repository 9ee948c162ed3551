"""All comparisons of single instructions in the suite: the probes of each target.

tests/fly_run/emulator/test_oracle_instructions.py and test_oracle_rdna.py run them; so does the
mutation run, which therefore detects what they detect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from oracle.launching import build
from oracle.probes import instructions, probe, rdna_probe, try_rdna, try_rdna_wide

# With f32 denormals off (FLOAT_DENORM_MODE_32 = 0) f32 operations flush them, f64 don't.
SINGLE = re.compile(
    r"v_(add|sub|subrev|mul|fma|fmac|fmamk|min|max|cmpx?_\w+|pk_(add|mul|fma))_f(32|64)"
    r"|v_(frexp_mant|frexp_exp_i(16|32)|ldexp)_f(16|32|64)"
)
# With FLOAT_DENORM_MODE_16_64 = 0, f16 and f64 are flushed, and f32 is not.
SHORT = re.compile(
    r"v_((add|sub|subrev|mul|fma|mad|mac|madak|madmk|fmaak|fmamk|min3?|max3?|med3|floor|ceil|trunc)"
    r"|rndne|fract|cmpx?_\w+|frexp_mant|frexp_exp_i(16|32)|ldexp)_f(16|64)"
    r"|v_(pk_)?(add|mul|min)_f32|v_pk_(add|mul|fma|min|max)_f16"
)
# gfx9 has none of these.
LITERAL = re.compile(r"v_fma[am]k_f16")
# With IEEE off a signalling NaN is treated like a quiet one.
QUIET = re.compile(r"v_(pk_)?(min3?|max3?|med3|minmax|maxmin)_f(16|32|64)")


@dataclass(frozen=True)
class Run:
    """Probes of a target that form one run: those of a family, or of instructions matching
    `names`. `wide`: on gfx11 and gfx12, in waves of 64 lanes."""

    target: str
    family: str
    mode: probe.Mode = probe.LLVMS
    names: re.Pattern[str] | None = None
    wide: bool = False

    def __str__(self) -> str:
        return f"{self.target}-{'wide-' if self.wide else ''}{self.family}"

    @property
    def frame(self) -> probe.Frame:
        if self.target in build.RDNA:
            return rdna_probe.frame(self.target, self.wide)
        return probe.GFX9

    def probes(self) -> list[probe.Probe]:
        if self.names is not None:
            return named(self.target, self.names)
        if self.wide:
            return try_rdna_wide.supported(self.target, self.family)
        return _supported(self.target, self.family)

    def batch(self, probes: list[probe.Probe]) -> probe.Batch:
        return probe.batch(probes, frame=self.frame, mode=self.mode)


def _supported(target: str, family: str) -> list[probe.Probe]:
    tried = try_rdna if target in build.RDNA else instructions
    return tried.supported(target, family)


def named(target: str, names: re.Pattern[str]) -> list[probe.Probe]:
    """Returns the probes of instructions that match. A result that rounds up to the smallest normal
    number is unspecified."""
    families = ("vector", "compares", "packed")
    listed = [p for family in families for p in _supported(target, family)]
    return [
        replace(p, tininess=True)
        for p in listed
        if names.fullmatch(instructions.subject(p)) and "class" not in p.text
    ]


# Runs in other MODEs than LLVM's default.
OTHERWISE = (
    Run("gfx942", "flushed-f32", probe.Mode(denormals=0), SINGLE),
    Run("gfx942", "flushed-f16-f64", probe.Mode(short_denormals=0), SHORT),
    Run("gfx1100", "flushed-f16", probe.Mode(short_denormals=0), LITERAL),
    Run("gfx942", "quiet", probe.Mode(ieee=False), QUIET),
    Run("gfx1100", "quiet", probe.Mode(ieee=False), QUIET),
)


def gfx9() -> list[Run]:
    return [
        Run(target, family)
        for target in build.TARGETS
        for family in instructions.FAMILIES
        if instructions.supported(target, family)
    ]


def rdna() -> list[Run]:
    return [
        Run(target, family)
        for target in build.RDNA
        for family in try_rdna.FAMILIES
        if try_rdna.supported(target, family)
    ]


def wide() -> list[Run]:
    return [
        Run(target, family, wide=True)
        for target in build.EITHER
        for family in try_rdna_wide.FAMILIES
    ]
