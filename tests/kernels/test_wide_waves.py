"""The same kernels in waves of 64 lanes on gfx11 and gfx12, where 32 are usual."""

from __future__ import annotations

import pytest

from kernels import build
from kernels.cases import CASES
from kernels.launching import on_device

# Without effort, where masks go through memory, and with.
BUILDS = (("gfx1100", "-O3"), ("gfx1201", "-O0"))


@pytest.mark.parametrize(("target", "level"), BUILDS)
def test_against_numpy(target: str, level: str) -> None:
    from fly_run.emulator.machine import Emulator

    device = Emulator(target)
    code = build.device(target, level, wide=True)
    cases = [c for c in CASES if target in c.targets and c.kernel in code.kernels]
    assert len(cases) > 25
    for case in cases:
        assert code.kernel(case.kernel).wavefront_size == 64
        on_device(case, device, level, wide=True)
