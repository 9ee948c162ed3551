"""The mutation run of Python modules: mutates their functions, and counts detected mutants.

    PYTHONPATH=tests python -m mutation_python                     every mutant of every group
    PYTHONPATH=tests python -m mutation_python --sample 300        of so many mutants, all groups
    PYTHONPATH=tests python -m mutation_python --group plan --only evaluate

Prints every survivor, the score and that of each group. Exit status 1 if the score of a group is
below `--threshold`, 2 if the run itself is not to be trusted (with nothing damaged a test failed in
a trial). All tests are run in trials with nothing damaged first, and those that fail are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

from mutation_python import damage, report, suite, trials
from mutation_python.groups import GROUPS, Group

ROOT = Path(__file__).parents[2]
CONTROLS = 4  # trials without a mutation among those of mutants, in each group


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutation_python", description=__doc__.split("\n")[0])
    names = [group.name for group in GROUPS]
    parser.add_argument("--group", choices=names, action="append", help="this group only")
    parser.add_argument("--sample", type=int, metavar="N", help="try N mutants only")
    parser.add_argument("--seed", type=int, default=1, help="of what is chosen (default 1)")
    parser.add_argument("--only", metavar="REGEX", help="damage what has this in module:function")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--threshold", type=float, default=0.9, metavar="SHARE")
    parser.add_argument("--list", action="store_true", help="print the mutants, and try none")
    return parser.parse_args()


def mutants_of(group: Group, wanted: argparse.Namespace) -> list[damage.Mutant]:
    found = []
    for name in group.module_names():
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        found += damage.mutants(name, Path(spec.origin))
    if wanted.only:
        pattern = re.compile(wanted.only)
        found = [one for one in found if pattern.search(f"{one.module}:{one.function}")]
    return found


def main() -> int:
    wanted = options()
    say = _teller()
    groups = [group for group in GROUPS if not wanted.group or group.name in wanted.group]
    every = {group.name: mutants_of(group, wanted) for group in groups}
    if wanted.sample:
        together = [one for found in every.values() for one in found]
        generator = random.Random(wanted.seed)
        kept = set(map(id, generator.sample(together, min(wanted.sample, len(together)))))
        every = {name: [m for m in found if id(m) in kept] for name, found in every.items()}
    if wanted.list:
        for found in every.values():
            for one in found:
                print(f"{one.place}: {one.function} [{one.kind}] {one.what}")
        return 0
    total = report.Report([], [], [], [])
    scores: dict[str, report.Report] = {}
    for group in groups:
        if every[group.name]:
            made = _in_child(group, every[group.name], wanted.jobs, say)
            if made is None:
                say(f"{group.name}: no mutant was tried")
                return 2
            total += made
            scores[group.name] = made
            say(f"{group.name}: {100 * made.score:.1f} % of {made.counted}")
    for line in total.lines(str(ROOT)):
        print(line)
    for name, made in scores.items():
        print(f"{name}: {made.told}")
    if not total.trusted:
        return 2
    return 0 if all(made.score >= wanted.threshold for made in scores.values()) else 1


def _in_child(
    group: Group, mutants: list[damage.Mutant], jobs: int, say: Callable[[str], None]
) -> report.Report | None:
    """Runs a group in its own process and pytest. Returns its report, None if it failed."""
    paths = group.test_paths()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            told = _judged(group, paths, mutants, jobs, say)
            with os.fdopen(writing, "w") as file:
                file.write(json.dumps(told) if told else "")
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    os.waitpid(child, 0)
    if not text:
        return None
    said: Said = json.loads(text)
    uncovered = [mutants[number] for number in said["uncovered"]]
    return report.Report(mutants, said["results"], uncovered, said["broken"], said["alarms"])


class Said(TypedDict):
    """The result of a group's process; mutants by their numbers."""

    results: list[int]
    uncovered: list[int]
    broken: list[str]
    alarms: list[str]


def _judged(
    group: Group,
    paths: list[Path],
    mutants: list[damage.Mutant],
    jobs: int,
    say: Callable[[str], None],
) -> Said | None:
    found: list[Said] = []
    files = {str(mutant.path) for mutant in mutants}

    def judge(tests: suite.Suite) -> None:
        tests = tests.without(trials.failing(tests, jobs))
        say(f"{group.name}: {len(mutants)} mutants, {len(tests.judges)} tests")
        uncovered = [number for number, one in enumerate(mutants) if not tests.of(one)]
        tried = [trials.Trial(one, tests.of(one)) for one in mutants]
        results = trials.run(tests, [*tried, *trials.controls(tests)[:CONTROLS]], files, jobs, say)
        noted = tests.folder / trials.ALARMS
        alarms = noted.read_text().splitlines() if noted.exists() else []
        named = (trials.SURVIVED, trials.NOTICED)
        others = [end for end in results[len(mutants) :] if end not in named]
        alarms += [report.WAYS.get(end, f"exit status {end}") for end in others]
        found.append(
            {
                "results": results[: len(mutants)],
                "uncovered": uncovered,
                "broken": tests.broken,
                "alarms": alarms,
            }
        )
        failed = tests.folder / "failed.txt"
        if failed.exists():
            say(failed.read_text())

    with tempfile.TemporaryDirectory(prefix="fly-mutation-") as folder:
        suite.within(paths, files, Path(folder), judge)
    return found[0] if found else None


def _teller() -> Callable[[str], None]:
    """Returns a function that prints progress to the present standard error."""
    started = time.monotonic()
    stream = os.fdopen(os.dup(2), "w")

    def say(text: str) -> None:
        print(f"mutation: {time.monotonic() - started:.0f} s: {text}", file=stream, flush=True)

    return say


if __name__ == "__main__":
    sys.exit(main())
