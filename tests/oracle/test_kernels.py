"""The oracle on whole kernels, against NumPy: what gives it the right to judge."""

from __future__ import annotations

import numpy as np
import pytest

from oracle import build, launch
from oracle.cases import CASES, check


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("target", build.TARGETS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kernel)
def test_kernel(case, target, level):
    data = build.opencl(case.source, target, level)
    arguments = case.make(np.random.default_rng(7))
    run = launch.on_oracle(data, case.kernel, case.grid, case.block, arguments)
    check(case, arguments, run.arguments)
