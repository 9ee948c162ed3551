"""The mutation run: mutates each semantic function in three ways, and counts detected mutants.

    PYTHONPATH=tests python -m mutation                        every operation, three damages each
    PYTHONPATH=tests python -m mutation --sample 150 --seed 7  of 150 operations only
    PYTHONPATH=tests python -m mutation --only 'ds_.*'         of operations so named
    PYTHONPATH=tests python -m mutation --targets gfx1250 --own gfx1250
                                                       what only gfx1250 uses
    PYTHONPATH=tests python -m mutation --again report.txt     the survivors of a report

Prints the score and every survivor. The exit status is 1 if the score is below `--threshold`, 2 if
the run is not trustworthy (an unmodified control was detected).
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pickle
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fly_target.registry import EMULATED as TARGETS

from mutation import benches, building, choosing, handlers, judges, report, suite
from mutation.damage import Mutant

MADE = "made.pickle"
CONTROLS = 25  # handlers replaced by identical copies, which must not be detected


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__.split("\n")[0])
    parser.add_argument("--sample", type=int, metavar="N", help="damage N operations only")
    parser.add_argument("--seed", type=int, default=1, help="of what is chosen (default 1)")
    parser.add_argument("--only", metavar="REGEX", help="damage operations so named")
    parser.add_argument("--again", metavar="FILE", type=Path, help="a report's survivors only")
    parser.add_argument("--own", metavar="TARGET", help="damage handlers that only TARGET uses")
    parser.add_argument("--form", metavar="NAME", help="valu, scalar, flow, lds, global, …")
    parser.add_argument("--tests", metavar="REGEX", help="only files of tests so named")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--threshold", type=float, default=0.95, metavar="SHARE")
    parser.add_argument("--targets", default=",".join(TARGETS), metavar="LIST")
    return parser.parse_args()


@dataclass(frozen=True)
class Made:
    """The mutants and their libraries; for `controls` the names of the handlers."""

    mutants: list[Mutant]
    libraries: list[Path]
    controls: list[str]
    operations: int
    equivalent: int


def make(wanted: argparse.Namespace, folder: Path) -> Made:
    generator = random.Random(wanted.seed)
    targets = frozenset(wanted.targets.split(","))
    choice = choosing.Choice(targets, wanted.only, wanted.own, wanted.form, wanted.sample)
    operations: list[choosing.Chosen] = []
    if wanted.again:
        lists = choosing.survivors(wanted.again.read_text().splitlines())
    else:
        operations = choice.operations(generator)
        found = (choosing.candidates(operation, wanted.seed) for operation in operations)
        lists = [one for candidates in found for one in candidates]
    mutants, equivalent = choosing.differing(lists)
    names = sorted({m.handler for m in mutants})
    controls = generator.sample(names, min(CONTROLS, len(names)))
    libraries = [*choosing.sources(mutants, folder), choosing.controls(controls, folder)]
    return Made(mutants, libraries, controls, len(operations), equivalent)


def aside(prepared: list[benches.Bench], wanted: argparse.Namespace, folder: Path) -> None:
    """In a separate process: makes the mutants, and computes the oracle's result for every
    probe."""
    made = make(wanted, folder)
    (folder / MADE).write_bytes(pickle.dumps(made))
    for bench in prepared:
        bench.ask()


def main() -> int:
    wanted = options()
    say = _teller()
    found: list[report.Report] = []
    with tempfile.TemporaryDirectory(prefix="fly-mutation-") as name:
        folder = Path(name)
        prepared = benches.prepared(tuple(wanted.targets.split(",")))
        say(f"{sum(len(b.batch.probes) for b in prepared)} probes on {wanted.targets}")
        context = multiprocessing.get_context("fork")
        helper = context.Process(target=aside, args=(prepared, wanted, folder))
        helper.start()
        known = handlers.install()
        for bench in prepared:
            bench.open(known)

        def judge(tests: suite.Suite) -> None:
            say(f"{len(tests.tests)} tests")
            if tests.broken:
                say(f"left out, as they fail with nothing damaged: {', '.join(tests.broken)}")
            helper.join()
            if helper.exitcode == 0:
                for bench in prepared:
                    bench.settle()
                made = pickle.loads((folder / MADE).read_bytes())
                jury = judges.Judges(prepared, tests)
                found.append(_judged(made, jury, known, wanted.jobs, say))

        suite.within(known, judge, frozenset(wanted.targets.split(",")), wanted.tests)
    if not found:
        say("no mutant was tried")
        return 2
    for line in found[0].lines():
        print(line)
    if not found[0].trusted:
        return 2
    return 0 if found[0].score >= wanted.threshold else 1


def _judged(
    made: Made,
    jury: judges.Judges,
    known: handlers.Handlers,
    jobs: int,
    say: Callable[[str], None],
) -> report.Report:
    say(
        f"{len(made.mutants)} mutants of {made.operations} operations,"
        f" {made.equivalent} equivalent ones not"
    )
    wrong = [str(bench.run) for bench in jury.benches if bench.differs()]
    names = [*(m.handler for m in made.mutants), *made.controls]
    others = [address for path in made.libraries for address in building.addresses(path)]
    trials = [(name, known[name], other) for name, other in zip(names, others, strict=True)]

    def describe(number: int) -> str:
        return report.survivor(made.mutants[number]) if number < len(made.mutants) else ""

    results = judges.verdicts(jury, trials, jobs, say, describe)
    count = len(made.mutants)
    controls = zip(made.controls, results[count:], strict=True)
    noticed = [f"{name} (by {report.way(r)})" for name, r in controls if r]
    return report.Report(made.mutants, results[:count], jury.covered, (*wrong, *noticed))


def _teller() -> Callable[[str], None]:
    """Returns a function that prints progress to the present standard error."""
    started = time.monotonic()
    stream = os.fdopen(os.dup(2), "w")

    def say(text: str) -> None:
        print(f"mutation: {time.monotonic() - started:.0f} s: {text}", file=stream, flush=True)

    return say


if __name__ == "__main__":
    sys.exit(main())
