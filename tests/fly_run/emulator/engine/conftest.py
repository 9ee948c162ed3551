"""Fixtures of tests of the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator_support.engine import LEVELS, TARGETS, compile_opencl, launch

from .engine_runs import Run


@pytest.fixture(params=[(t, o) for t in TARGETS for o in LEVELS], ids=lambda p: p[0] + p[1])
def run(request: pytest.FixtureRequest) -> Run:
    target, level = request.param

    def compiled(source: str, arguments: list[Any], grid: Any = 4, block: Any = 256) -> None:
        launch(compile_opencl(source, target, level), arguments, grid, block)

    return compiled


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261121)
