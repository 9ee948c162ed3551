"""The oracle on whole kernels, against NumPy: what gives it the right to judge."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.launching import build, launch
from oracle.launching.cases import CASES, check

# The other combinations run beside the emulator, in fly_run/emulator/test_oracle_kernels.py. Here
# is gfx90a -O0 for its scratch, which goes through buffer instructions.
# RDNA's machine code has waves of 32.
RUNS = [("gfx942", 0), ("gfx942", 3), ("gfx90a", 0), ("gfx1100", 0), ("gfx1201", 3)]


@pytest.mark.parametrize(("target", "level"), RUNS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kernel)
def test_kernel(case, target, level):
    data = build.opencl(case.source, target, level)
    arguments = case.make(np.random.default_rng(7))
    run = launch.on_oracle(data, case.kernel, case.grid, case.block, arguments)
    check(case, arguments, run.arguments)
