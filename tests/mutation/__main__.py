"""The mutation run: damages each semantic function in three ways, and counts who notices.

    PYTHONPATH=tests python -m mutation                        every operation, three damages each
    PYTHONPATH=tests python -m mutation --sample 150 --seed 7  of 150 operations only
    PYTHONPATH=tests python -m mutation --only 'ds_.*'         of operations so named

Prints the score and every survivor. Exit status 1 if the score is below `--threshold`, 2 if the run
itself is not to be trusted (a control that was not damaged was noticed).
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import re
import sys
import tempfile
import time
from pathlib import Path

from fly_run.emulator.semantics import table

from mutation import building, damage, judges
from mutation.accepted import ACCEPTED

CONTROLS = 25  # handlers that are exchanged for themselves, and must not be noticed
AT_ONCE = 400  # mutants in a module


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutation", description=__doc__.split("\n")[0])
    parser.add_argument("--sample", type=int, metavar="N", help="damage N operations only")
    parser.add_argument("--seed", type=int, default=1, help="of what is chosen (default 1)")
    parser.add_argument("--only", metavar="REGEX", help="damage operations so named")
    parser.add_argument("--form", metavar="NAME", help="valu, scalar, flow, lds, global, …")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--threshold", type=float, default=0.95, metavar="SHARE")
    parser.add_argument("--targets", default="gfx942,gfx90a,gfx950", metavar="LIST")
    return parser.parse_args()


def chosen_operations(wanted: argparse.Namespace, generator: random.Random) -> list:
    """Operations that compute something on one of the targets."""
    found = [
        operation
        for operation in table.operations().values()
        if operation.form != "nothing"
        and (not wanted.only or re.fullmatch(wanted.only, operation.name))
        and (not wanted.form or operation.form == wanted.form)
        and (not operation.targets or operation.targets & set(wanted.targets.split(",")))
    ]
    if wanted.sample and wanted.sample < len(found):
        found = generator.sample(found, wanted.sample)
    return found


def candidates(operation, generator: random.Random) -> list[list[damage.Mutant]]:
    """Three lists to take one mutant of each from: one a kind, and where an operation has nothing
    of a kind to damage, another kind."""
    every = []
    for handler in operation.handlers:
        text = building.original(handler).text()
        every += damage.mutants(operation.name, handler, text)
    generator.shuffle(every)
    kinds = {kind: [m for m in every if m.kind == kind] for kind in damage.KINDS}
    for kind in damage.KINDS:
        if not kinds[kind]:
            largest = max(kinds.values(), key=len)
            half = len(largest) // 2
            kinds[kind], largest[half:] = largest[half:], []
    return [listed for listed in kinds.values() if listed]


def differing(lists: list[list[damage.Mutant]]) -> tuple[list[damage.Mutant], int]:
    """The first mutant of each list that is not the original after optimisation, and how many
    were."""
    kept, equivalent = [], 0
    waiting = [listed for listed in lists if listed]
    while waiting:
        again = []
        for start in range(0, len(waiting), AT_ONCE):
            part = waiting[start : start + AT_ONCE]
            functions = [building.original(listed[0].handler) for listed in part]
            declarations = _declarations(functions, [listed[0] for listed in part])
            same = building.same(
                [f.text() for f in functions], [listed[0].text for listed in part], declarations
            )
            for listed, equal in zip(part, same, strict=True):
                if not equal:
                    kept.append(listed[0])
                    continue
                equivalent += 1
                if listed[1:]:
                    again.append(listed[1:])
        waiting = again
    return kept, equivalent


_CALLED = re.compile(r"call (<\d+ x \w+>|\w+) @\"?(llvm\.[\w.]+)\"?\((.*)\)$", re.MULTILINE)


def _declarations(functions, mutants: list[damage.Mutant]) -> set[str]:
    """Of what the originals call, and of the intrinsics that only a mutant does."""
    known = {text for function in functions for text in function.declarations}
    names = {text.partition("@")[2].partition("(")[0].strip('"') for text in known}
    for mutant in mutants:
        for result, name, arguments in _CALLED.findall(mutant.what.partition(" → ")[2]):
            if name not in names:
                names.add(name)
                types = ", ".join(damage._type(a) for a in damage.split(arguments))
                known.add(f"declare {result} @{name}({types})")
    return known


def verdicts(jury: judges.Judges, trials: list[tuple[str, int]], jobs: int, say) -> list[int]:
    """The exit status of a child for each (handler, address)."""
    results = [0] * len(trials)
    running: dict[int, int] = {}
    started = time.monotonic()
    for number, (handler, address) in enumerate(trials):
        while len(running) >= jobs:
            _reap(running, results)
        child = judges.in_child(lambda h=handler, a=address: jury.notice(h, a))
        running[child] = number
        if number % 100 == 99:
            say(f"{number + 1} of {len(trials)}, {time.monotonic() - started:.0f} s")
    while running:
        _reap(running, results)
    return results


def _reap(running: dict[int, int], results: list[int]) -> None:
    child, status = os.wait()
    results[running.pop(child)] = os.waitstatus_to_exitcode(status)


def main() -> int:
    wanted = options()
    generator = random.Random(wanted.seed)

    def say(text: str) -> None:
        print(f"mutation: {text}", file=sys.stderr, flush=True)

    lists = []
    operations = chosen_operations(wanted, generator)
    for operation in operations:
        lists += candidates(operation, generator)
    mutants, equivalent = differing(lists)
    say(f"{len(mutants)} mutants of {len(operations)} operations, {equivalent} equivalent ones not")
    jury = judges.gather(tuple(wanted.targets.split(",")), say)
    with tempfile.TemporaryDirectory(prefix="fly-mutation-") as folder:
        addresses: list[int] = []
        for start in range(0, len(mutants), AT_ONCE):
            part = mutants[start : start + AT_ONCE]
            declarations = _declarations([building.original(m.handler) for m in part], part)
            addresses += building.compiled(
                [m.text for m in part], declarations, Path(folder), f"m{start}"
            )
        names = generator.sample(sorted({m.handler for m in mutants}), min(CONTROLS, len(mutants)))
        functions = [building.original(name) for name in names]
        controls = building.compiled(
            [f.text() for f in functions], _declarations(functions, []), Path(folder), "controls"
        )
        trials = [(m.handler, a) for m, a in zip(mutants, addresses, strict=True)]
        trials += list(zip(names, controls, strict=True))
        results = verdicts(jury, trials, wanted.jobs, say)
    noticed_controls = [n for n, r in zip(names, results[len(mutants) :], strict=True) if r]
    return report(mutants, results[: len(mutants)], noticed_controls, jury, wanted)


def report(mutants, results, noticed_controls, jury, wanted) -> int:
    if noticed_controls or judges.TOOL_FAILED in results:
        failed = [m.handler for m, r in zip(mutants, results, strict=True) if r == 99]
        print(f"not to be trusted: controls noticed {noticed_controls}, failed {failed[:20]}")
        return 2
    covered = set().union(*(bench.uses for bench in jury.benches), *jury.tests.values())
    survivors = [m for m, r in zip(mutants, results, strict=True) if r == judges.SURVIVED]
    accepted = [m for m in survivors if _reason(m)]
    left = [m for m in survivors if not _reason(m)]
    counted = len(mutants) - len(accepted)
    by_kind = collections.Counter(m.kind for m in mutants)
    for m in left:
        seen = "" if m.handler in covered else " (no test uses it)"
        print(f"survives: {m.handler}{seen} [{m.kind}] {m.what}")
    for m in accepted:
        print(f"accepted: {m.handler} [{m.kind}] {m.what}: {_reason(m)}")
    score = (counted - len(left)) / counted if counted else 1.0
    ways = collections.Counter(
        {judges.BY_PROBES: "probes", judges.BY_TESTS: "tests", judges.SURVIVED: "nobody"}.get(
            r, "a crash or the clock"
        )
        for r in results
    )
    print(f"{len(mutants)} mutants: " + ", ".join(f"{n} {kind}" for kind, n in by_kind.items()))
    print("noticed by " + ", ".join(f"{way} {n}" for way, n in ways.most_common()))
    print(f"score {100 * score:.1f} %: {counted - len(left)} of {counted}")
    print(f"not counted: {len(accepted)} accepted for a reason")
    return 0 if score >= wanted.threshold else 1


def _reason(mutant: damage.Mutant) -> str:
    for handler, what, reason in ACCEPTED:
        if re.fullmatch(handler, mutant.handler) and re.search(what, mutant.what):
            return reason
    return ""


if __name__ == "__main__":
    sys.exit(main())
