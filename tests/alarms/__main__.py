"""Runs every kernel of tests/kernels and every example under `--strict`, to find false alarms.

    PYTHONPATH=tests python -m alarms                                 all of them, all targets
    PYTHONPATH=tests python -m alarms --targets gfx942 --only 'fft|sort'
    PYTHONPATH=tests python -m alarms --groups 2      two workgroups of each launch, in full
    PYTHONPATH=tests python -m alarms --limit 5000      that many instructions of each launch

Prints one line for each kernel with a report or cut short, and a sum. All kernels are correct, so
each report is a false alarm: the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from fly_common.errors import FlyError
from kernels.build import LEVELS
from kernels.case import TARGETS
from kernels.cases import CASES

from alarms import watching
from alarms.watching import Extent

BY_NAME = {case.name: case for case in CASES}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="alarms", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--targets", default=",".join(TARGETS), metavar="LIST")
    parser.add_argument("--levels", default=",".join(LEVELS), metavar="LIST")
    parser.add_argument("--only", default="", metavar="REGEX", help="kernels so named")
    parser.add_argument("--groups", type=int, metavar="N", help="workgroups of each launch")
    parser.add_argument("--limit", type=int, metavar="N", help="instructions of each launch")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    return parser.parse_args()


def chosen(asked: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """Yields names, targets, levels; those of one code object are consecutive."""
    only = re.compile(asked.only)
    for target in asked.targets.split(","):
        for level in (f"-{one.removeprefix('-')}" for one in asked.levels.split(",")):
            for case in CASES:
                if target in case.targets and only.search(case.name):
                    yield case.name, target, level
            if level == "-O2":  # the chain has no such level
                continue
            yield from (
                (name, target, level)
                for name in watching.example_names(target)
                if only.search(name)
            )


def look(name: str, target: str, level: str, extent: Extent) -> tuple[int, bool, str]:
    """Returns the number of checked instructions, whether there were more, and the report."""
    try:
        if name in BY_NAME:
            seen = watching.kernel(BY_NAME[name], target, level, extent)
        else:
            seen = watching.example(name, target, level, extent)
    except (FlyError, AssertionError) as other:
        return 0, False, f"ended otherwise: {other}"
    return seen.looked, seen.cut, seen.fault.render("strict") if seen.fault else ""


def main() -> int:
    asked = options()
    runs, extent = list(chosen(asked)), Extent(asked.limit, asked.groups)
    start, looked, cut, alarms = time.perf_counter(), 0, 0, 0
    with ProcessPoolExecutor(asked.jobs) as pool:
        found = pool.map(look, *zip(*runs, strict=True), [extent] * len(runs), chunksize=8)
        for run, (count, short, report) in zip(runs, found, strict=True):
            looked += count
            cut += short
            alarms += bool(report)
            if report:
                print(*run, f"reported after {count} instructions\n  {report}", flush=True)
            elif short:
                print(*run, f"cut after {count} instructions", flush=True)
    print(
        f"{len(runs)} launches, {cut} cut short, {looked} instructions looked at in"
        f" {time.perf_counter() - start:.0f} s: {alarms} false alarms"
    )
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
