"""Fuzzes the tools: mutates inputs of every kind and checks that each tool ends properly.

    PYTHONPATH=tests python -m fuzz                   200,000 in process, 2,000 as processes
    PYTHONPATH=tests python -m fuzz --cases 20000 --processes 100 --kinds mlir,program
    PYTHONPATH=tests python -m fuzz --seed 7 --again mlir:1234      one case again, with details
    PYTHONPATH=tests python -m fuzz --seed 7 --again mlir:12 --as-process

A finding is a traceback, a signal, a hang, "internal", an error without a text, an exit code other
than 0 to 3, or output left behind by a failing stage. Each is saved with the command that
reproduces it. The exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from fuzz import kinds, processes, workers
from fuzz.case import Case, attempt
from fuzz.kinds import KINDS
from fuzz.workers import Finding, Tally

REPEATED = 3  # findings with the same text that are printed; the others are counted


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=200_000, metavar="N", help="in process")
    parser.add_argument("--processes", type=int, default=2_000, metavar="N", help="as processes")
    parser.add_argument("--seed", type=int, default=1, help="of all that is chosen (default 1)")
    parser.add_argument("--kinds", default=",".join(KINDS), metavar="LIST")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--out", default="fuzz-findings", metavar="FOLDER", help="for findings")
    parser.add_argument("--again", metavar="KIND:NUMBER", help="run this case again, here")
    parser.add_argument("--as-process", action="store_true", help="... by its command line")
    wanted = parser.parse_args()
    wanted.kinds = wanted.kinds.split(",")
    if unknown := set(wanted.kinds) - set(KINDS):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    return wanted


class Teller:
    """Prints findings as they come, saves their inputs, and suppresses repeated ones."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.seen: dict[str, int] = {}

    def finding(self, finding: Finding, mode: str) -> None:
        case, what = finding.case, finding.what
        key = f"{mode} {case.kind} {what[:80]}"
        self.seen[key] = self.seen.get(key, 0) + 1
        if self.seen[key] > REPEATED:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        kind = KINDS[case.kind]
        path = self.folder / f"{case.kind}-{case.seed}-{case.number}{kind.suffix}"
        path.write_bytes(case.made(kind.seeds())[0])
        again = f"python -m fuzz --seed {case.seed} --again {case}"
        again += " --as-process" if mode == "process" else ""
        print(f"fuzz: {mode}: {case}: {what}\n  saved: {path}\n  again: {again}", flush=True)


def contained(finding: Finding) -> bool:
    """Whether a crash in process is an error line from the tool's command line, which works in a
    child process. A library can't."""
    kind = KINDS[finding.case.kind]
    if not finding.crash or kind.name != "mlir" or "more than" in finding.what:
        return False
    data, _ = finding.case.made(kind.seeds())
    with tempfile.TemporaryDirectory(prefix="fly-fuzz-") as cache:
        for words in (("--target=gfx942",), ("--emit=llvm",), ()):
            command = processes.Command((("fly-opt-py", "in.mlir", *words),), (("in.mlir", data),))
            if processes.judge(command, Path(cache))[1]:
                return False
    return True


def shares(total: int, names: list[str]) -> dict[str, int]:
    """Distributes `total` cases over the kinds."""
    whole = sum(KINDS[name].share for name in names)
    return {name: -(-total * KINDS[name].share // whole) if total else 0 for name in names}


def run(wanted: argparse.Namespace) -> int:
    teller = Teller(Path(wanted.out))
    started = time.monotonic()
    count = wrong = crashes = 0
    modes = (
        ("in process", wanted.cases, workers.run),
        ("process", wanted.processes, processes.run),
    )
    for mode, total, work in modes:
        for name, cases in shares(total, wanted.kinds).items():
            if not cases:
                continue
            began = time.monotonic()
            KINDS[name].seeds()  # made once, here, and not in every worker
            found: list[Finding] = []

            def judge(finding: Finding, mode: str = mode, found: list[Finding] = found) -> None:
                if not contained(finding):
                    found.append(finding)
                    teller.finding(finding, mode)

            tally: Tally = work(wanted.seed, name, cases, wanted.jobs, judge)
            count, wrong = count + tally.cases, wrong + len(found)
            crashes += len(tally.findings) - len(found)
            print(
                f"fuzz: {mode:10} {name:8} {tally.cases:7} cases: {tally.taken} taken,"
                f" {tally.refused} refused, {len(found)} findings"
                f" ({time.monotonic() - began:.0f} s)",
                flush=True,
            )
    inside = (
        f"; MLIR crashed {crashes} times, which fly-opt-py tells as an error" if crashes else ""
    )
    print(
        f"fuzz: {count} cases by seed {wanted.seed} in {time.monotonic() - started:.0f} s:"
        f" {wrong} findings{inside}"
    )
    return 1 if wrong else 0


def again(wanted: argparse.Namespace) -> int:
    name, _, number = wanted.again.partition(":")
    case, kind = Case(wanted.seed, name, int(number)), KINDS[name]
    if wanted.as_process:
        command = processes.command_of(case)
        folder = Path(tempfile.mkdtemp(prefix="fly-fuzz-again-"))
        for file, data in command.files:
            (folder / file).write_bytes(data)
        print(f"cd {folder}; {command}")
        with tempfile.TemporaryDirectory(prefix="fly-fuzz-") as cache:
            processes.link_handlers(Path(cache))
            wrong = processes.judge(command, Path(cache))[1]
    else:
        data, generator = case.made(kind.seeds())
        if os.environ.get("FLY_DEBUG"):
            kind.read(data, generator)
        wrong = attempt(kind, data, generator)[1]
    print(wrong or "nothing is wrong")
    return 1 if wrong else 0


def main() -> int:
    wanted = options()
    with tempfile.TemporaryDirectory(prefix="fly-fuzz-") as name:
        kinds.use_folder(Path(name))
        return again(wanted) if wanted.again else run(wanted)


if __name__ == "__main__":
    sys.exit(main())
