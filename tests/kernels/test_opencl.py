"""Kernels that nobody traced, compiled by clang from OpenCL: three judges that share nothing.

Each kernel at each level on each target against NumPy; all of them against each other, bit for bit;
and against the same source on the host's processor.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from kernels import build
from kernels.case import TARGETS, Case, assert_same_bits
from kernels.cases import CASES
from kernels.launching import on_emulator, on_host

BUILDS = [(target, level) for target in TARGETS for level in build.LEVELS]
RUNS = [
    pytest.param(case, *built, id="-".join((case.name, built[0], built[1][1:])))
    for built in BUILDS
    for case in CASES
    if built[0] in case.targets
]
REFERENCE = "-O3"


def name(case: Case) -> str:
    return case.name


@pytest.fixture(scope="session", autouse=True)
def _compiled(request: pytest.FixtureRequest) -> None:
    """What the chosen tests need, compiled on all processors."""
    chosen = [getattr(item, "callspec", None) for item in request.session.items]
    wanted = {
        (spec.params["target"], spec.params["level"])
        for spec in chosen
        if spec is not None and {"target", "level", "case"} <= spec.params.keys()
    }
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda pair: build.device(*pair), sorted(wanted & set(BUILDS))))


@pytest.mark.parametrize(("case", "target", "level"), RUNS)
def test_against_numpy(case: Case, target: str, level: str) -> None:
    on_emulator(case, target, level)


@pytest.mark.parametrize("case", [case for case in CASES if case.portable], ids=name)
def test_same_everywhere(case: Case) -> None:
    first = case.targets[0]
    reference = on_emulator(case, first, REFERENCE)
    for target, level in BUILDS:
        if target in case.targets:
            for position, found in on_emulator(case, target, level).items():
                what = f"argument {position}, {target} {level} against {first} {REFERENCE}"
                assert_same_bits(found, reference[position], what)


@pytest.mark.parametrize("case", [case for case in CASES if case.host], ids=name)
def test_same_on_host(case: Case) -> None:
    reference = on_emulator(case, *build.LAYOUT)
    for position, found in on_host(case).items():
        what = f"argument {position}, the host against {' '.join(build.LAYOUT)}"
        assert_same_bits(found, reference[position], what)
