"""Random programs of the Python that kernels accept, each run by CPython and on the emulator.

    PYTHONPATH=tests python -m python_programs                         5,000 programs
    PYTHONPATH=tests python -m python_programs --programs 200 --seed 7
    PYTHONPATH=tests python -m python_programs --traced                interprets MLIR's ops instead

hypothesis makes the programs, and shortens one whose results differ, which ends the run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

from python_programs.judge import compare
from python_programs.programs import bodies, scalars

# hypothesis keeps all programs of a run, in 4 MB each, and compares a new one with them.
BATCH = 250


def main() -> int:
    parser = argparse.ArgumentParser(prog="python_programs", description=__doc__.split("\n")[0])
    parser.add_argument("--programs", type=int, default=5000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--traced", action="store_true", help="interpret the traced module")
    wanted = parser.parse_args()
    started, ran = time.monotonic(), 0
    for batch in range(-(-wanted.programs // BATCH)):
        count = min(BATCH, wanted.programs - batch * BATCH)
        ran += run_batch(count, wanted.seed * 1000 + batch, emulator=not wanted.traced)
    print(f"python_programs: {ran} programs, none differs ({time.monotonic() - started:.0f} s)")
    return 0


def run_batch(count: int, seed: int, emulator: bool) -> int:
    """Returns how many programs ran; AssertionError if one's results differ."""
    ran = 0
    with tempfile.TemporaryDirectory() as name:

        @hypothesis.seed(seed)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(body=bodies(), first=scalars(), second=scalars())
        def agree(body: str, first: tuple, second: tuple) -> None:
            nonlocal ran
            compare(body, [first, second], Path(name), emulator)
            ran += 1

        agree()
    return ran


if __name__ == "__main__":
    raise SystemExit(main())
