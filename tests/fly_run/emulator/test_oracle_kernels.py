"""Whole kernels on the emulator: against NumPy, and bit for bit against the oracle."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from oracle.launching import build, launch
from oracle.launching.cases import CASES, Case, check
from oracle.launching.device import on_emulator


@functools.cache
def expected(case: Case, target: str, level: int) -> launch.Run:
    """The oracle's result."""
    data = build.opencl(case.source, target, level)
    arguments = case.make(np.random.default_rng(7))
    return launch.on_oracle(data, case.kernel, case.grid, case.block, arguments)


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("target", [*build.TARGETS, *build.RDNA])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kernel)
def test_kernel(case, target, level):
    data = build.opencl(case.source, target, level)
    arguments = case.make(np.random.default_rng(7))
    mine = expected(case, target, level)
    other = on_emulator(data, case.kernel, case.grid, case.block, arguments)
    check(case, arguments, other.arguments)
    for position, (a, b) in enumerate(zip(mine.arguments, other.arguments, strict=True)):
        np.testing.assert_array_equal(b, a, err_msg=f"argument {position}")
