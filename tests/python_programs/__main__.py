"""Random programs of the Python that kernels accept, each run by CPython and on the emulator.

    PYTHONPATH=tests python -m python_programs                         5,000 programs
    PYTHONPATH=tests python -m python_programs --programs 200 --seed 7
    PYTHONPATH=tests python -m python_programs --seed 7 --again 81     one program again, shortened
    PYTHONPATH=tests python -m python_programs --traced                interprets MLIR's ops instead

Each program has its own random numbers, from the seed and its number, so that it can be run alone.
Some are compiled together, in several processes. Exit status 1 if the results of one differ from
CPython's, or if one is refused.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from python_programs.batches import batches, case
from python_programs.judge import Case, Difference, difference, is_refused
from python_programs.shorten import shortened

TOLD = 10  # differences that are printed


def again(seed: int, number: int, traced: bool) -> int:
    """Runs one program, and prints it shortened if it differs."""
    one = case(seed, number)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = difference(one, folder, not traced)
        if found is None:
            verdict = "is refused" if is_refused(one, folder) else "agrees"
            print(f"python_programs: it {verdict}")
            return 0

        def still(body: str) -> bool:
            new = difference(Case(body, one.runs), folder, not traced)
            return new is not None and new.kind == found.kind

        body = shortened(one.body, still)
        last: Difference = difference(Case(body, one.runs), folder, not traced) or found
    print(f"{last.text}\n\n{body}")
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python_programs", description=__doc__.split("\n")[0])
    parser.add_argument("--programs", type=int, default=5000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--again", type=int, metavar="NUMBER", help="this program alone")
    parser.add_argument("--traced", action="store_true", help="interpret the traced module")
    wanted = parser.parse_args()
    if wanted.again is not None:
        return again(wanted.seed, wanted.again, wanted.traced)
    started, ran, wrong = time.monotonic(), 0, 0
    for count, found in batches(wanted.seed, wanted.programs, wanted.jobs, wanted.traced):
        ran += count
        print(f"\r{ran} programs ", end="", file=sys.stderr, flush=True)
        for number, _, text in found:
            wrong += 1
            if wrong <= TOLD:
                print(f"--seed {wanted.seed} --again {number}:\n{text}\n", flush=True)
    took = time.monotonic() - started
    print(f"python_programs: {ran} programs, {wrong} differ ({took:.0f} s)")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
