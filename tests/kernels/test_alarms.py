"""Right kernels of all sorts have nothing to fear from `--strict`: the beginnings of some of them.

`PYTHONPATH=tests python -m alarms` looks at all of them, and at the examples, from end to end.
"""

from __future__ import annotations

import pytest
from alarms import watching

from kernels.build import LEVELS
from kernels.case import TARGETS
from kernels.cases import CASES

# Calls, private memory, LDS, moves between lanes, atomics, matrices, divergence.
CHOSEN = (
    *("indirect", "sort_private", "gemm_tiled", "scan_wave", "scan_dpp", "histogram_bytes"),
    *("spin_lock", "gemm_f16", "mandelbrot", "transpose", "packed_half", "generic_pointers"),
)
LIMIT = 200


# gfx1250 at every level: its waits have counters of their own, and each level has other waits.
RUNS = [(one, level) for one in TARGETS for level in LEVELS if level != "-O2" or one == "gfx1250"]


@pytest.mark.parametrize(("target", "level"), RUNS)
def test_no_false_alarm(target: str, level: str) -> None:
    cases = [case for case in CASES if case.name in CHOSEN and target in case.targets]
    assert len(cases) >= 10
    for case in cases:
        seen = watching.kernel(case, target, level, watching.Extent(LIMIT))
        assert seen.fault is None, f"{case.name}: {seen.fault}"
        assert seen.looked


def test_chosen_workgroups():
    """Asked for three workgroups: the first, the last and one between, in x, then y, then z."""
    chosen = watching.Extent(groups=3).chosen((4, 3, 2))
    assert chosen == {(0, 0, 0), (3, 2, 0), (3, 2, 1)}
    assert watching.Extent(groups=24).chosen((4, 3, 2)) is None
    assert watching.Extent(groups=1).chosen((4, 3, 2)) == {(0, 0, 0)}
