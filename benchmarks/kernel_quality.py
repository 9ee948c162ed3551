"""Compares the code of `fly.kernels` with FlyDSL's kernels and plain Triton, for
docs/kernels/peers.md.

    python benchmarks/kernel_quality.py [--peers-python PATH] [--flydsl-kernels DIR]
                                        [--target TARGET] [--only REGEX] [--ours] [--write]

All three systems solve the same problems (peers/kernel_problems.py) on the emulator, FlyDSL and
Triton by their own runtimes, and their results are compared with torch's in f64. Counted are what
the waves of a call execute; and of its code, summed over kernels, instructions and waits, loops
once; and the most registers, bytes of LDS and of scratch memory of a kernel.

Triton 3.9.0 and FlyDSL 0.4.2 are used if the interpreter PATH (default: this one) has them, with
torch. FlyDSL's kernels are not in its wheel: DIR is a checkout of ROCm/FlyDSL, at commit
11c4174d82b7491c2d08d5828a254183f2a8b959. --write puts the tables into the page; with --only, the
lines of these calls. --ours counts ours only, beside what the page has of the peers. No GPU is
needed.

The exit status is 1 if one of our kernels uses scratch memory, or a result of ours is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import compile_time
from fly_common import paths
from fly_llc.backends.amd import comparison

HERE = Path(__file__).parent
sys.path.append(str(HERE / "peers"))
from kernel_problems import PROBLEMS, Problem  # noqa: E402 - it is in peers/

TARGETS = ("gfx942", "gfx950")
PAGE = HERE.parent / "docs" / "kernels" / "peers.md"
FIRST, LAST = "<!-- benchmarks/kernel_quality.py {} -->\n", "<!-- end of {} -->\n"
ALLOWED = 1.05
# The rows of comparison.measure that are summed over the kernels of a call, and those of which the
# greatest counts.
SUMMED = {"instructions": "instructions", "waits": "waits"}
GREATEST = {
    "VGPRs": "VGPRs",
    "AGPRs": "AGPRs",
    "SGPRs": "SGPRs",
    "LDS": "LDS bytes",
    "scratch": "private bytes",
}
COUNTED = ("executed", "instructions", "waits", *GREATEST)
SYSTEMS = ("fly", "FlyDSL", "Triton")
HEAD = f"| call | {' | '.join(COUNTED)} |\n" + "|---" * (1 + len(COUNTED)) + "|\n"
WRONG = "†"  # marks a peer whose results are wrong here


@dataclass(frozen=True)
class Solved:
    """What a system needs for a problem. `error`: the greatest difference from torch in f64."""

    counts: Mapping[str, int]
    error: float


def counts(launches: Sequence[Sequence[Any]], folder: Path) -> dict[str, int]:
    """The counts of a call, by its launches (peers/recording.py)."""
    kernels: dict[tuple[str, str], dict[str, int]] = {}
    added: dict[tuple[str, str], int] = {}
    for name, file, lds, _ in launches:
        kernels[name, file] = comparison.measure((folder / file).read_bytes())[name]
        added[name, file] = max(lds, added.get((name, file), 0))
    found = {"executed": sum(executed for *_, executed in launches)}
    for title, row in SUMMED.items():
        found[title] = sum(one[row] for one in kernels.values())
    for title, row in GREATEST.items():
        dynamic = added if title == "LDS" else {}
        found[title] = max(one.get(row, 0) + dynamic.get(key, 0) for key, one in kernels.items())
    return found


def solve(
    system: str, command: list[Any], environment: Mapping[str, str], target: str, folder: Path
) -> dict[str, Solved]:
    """Runs a program of peers/ and returns what it solved, by problem."""
    folder.mkdir(parents=True)
    done = subprocess.run(
        [*map(str, command)],
        env={**os.environ, "FLY_TARGET": target, **environment},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"kernel_quality: error: {system} for {target}:\n{done.stderr}")
    found = {}
    solutions = json.loads(done.stdout)
    if any("failed" in one for one in solutions.values()):
        # What the HIP runtime said, without the names of the problems.
        told = [line for line in done.stderr.splitlines() if line not in solutions]
        print("\n".join(told), end="\n" if told else "", file=sys.stderr)
    for name, one in solutions.items():
        if "failed" in one:
            line = f"{system} {target} {name}: {one['failed']}"
            if system == "fly":
                sys.exit(f"kernel_quality: error: {line}")
            print(line, file=sys.stderr)
        else:
            found[name] = Solved(counts(one["launches"], folder), one["error"])
    return found


def systems(options: argparse.Namespace, names: list[str], target: str, scratch: Path) -> Any:
    """(system, command, environment, folder) of each that there is."""
    folders = {system: scratch / target / system for system in SYSTEMS}

    def program(name: str, system: str) -> list[Any]:
        return [HERE / "peers" / f"{name}_calls.py", target, folders[system], *names]

    yield "fly", [sys.executable, *program("fly", "fly")], {}, folders["fly"]
    peers = {one.name for one in options.peers}
    hip = [Path(sys.executable).with_name("fly-run"), "--hip", target, "--", options.peers_python]
    common = {"PYTHONPATH": "", "FLY_CACHE_DIR": str(paths.cache_dir())}
    if "FlyDSL" in peers and options.flydsl_kernels:
        rocm = scratch / "rocm"
        environment = {
            **common,
            "FLYDSL_GPU_ARCH": target,
            "FLYDSL_KERNELS": str(options.flydsl_kernels.resolve()),
            "FLYDSL_RUNTIME_CACHE_DIR": str(scratch / "flydsl"),
            "ROCM_PATH": str(rocm),
        }
        yield "FlyDSL", [*hip, *program("flydsl", "FlyDSL")], environment, folders["FlyDSL"]
    if "Triton" in peers:
        environment = {
            **common,
            "TRITON_CACHE_DIR": str(scratch / "triton"),
            "TRITON_DEFAULT_FP_FUSION": "1",
        }
        yield "Triton", [*hip, *program("triton", "Triton")], environment, folders["Triton"]


Table = dict[str, dict[str, Solved]]  # system → problem


def above(found: Table, problem: Problem) -> list[str]:
    """The counts of ours that are above FlyDSL's by more than 5 % and by more than one."""
    ours, theirs = (found.get(system, {}).get(problem.name) for system in SYSTEMS[:2])
    if ours is None or theirs is None:
        return []
    return [
        title
        for title in COUNTED
        if ours.counts[title] > max(theirs.counts[title] * ALLOWED, theirs.counts[title] + 1)
    ]


def table(found: Table) -> str:
    """The table of a target, with its head. A cell has the counts of fly, FlyDSL and Triton."""
    lines = []
    for problem in PROBLEMS:
        solved = [found.get(system, {}).get(problem.name) for system in SYSTEMS]
        if solved[0] is None:
            continue
        high, cells = above(found, problem), []
        for title in COUNTED:
            own, *peers = ["–" if one is None else f"{one.counts[title]:,}" for one in solved]
            own = f"**{own}**" if title in high else own
            if title == COUNTED[0]:
                peers = [
                    text + WRONG * (one is not None and one.error > problem.tolerance)
                    for text, one in zip(peers, solved[1:], strict=True)
                ]
            cells.append(" / ".join((own, *peers)))
        lines.append(f"| `{problem.name}` | {' | '.join(cells)} |\n")
    return HEAD + "".join(lines)


def report(found: Table, target: str) -> list[str]:
    """What is wrong with ours, after a summary on standard error."""
    high = {one.name: above(found, one) for one in PROBLEMS}
    judged = [one for one in high if one in found["fly"] and one in found.get("FlyDSL", {})]
    for name in judged:
        if high[name]:
            print(f"{target} {name}: {', '.join(high[name])} above FlyDSL's", file=sys.stderr)
    if judged:
        count = sum(not high[name] for name in judged)
        print(f"{target}: nothing is above in {count} of {len(judged)} calls", file=sys.stderr)
    wrong = []
    for problem in PROBLEMS:
        one = found["fly"].get(problem.name)
        if one is not None and one.counts["scratch"]:
            wrong.append(f"{target} {problem.name} uses {one.counts['scratch']} bytes of scratch")
        if one is not None and one.error > problem.tolerance:
            wrong.append(f"{target} {problem.name} is wrong by {one.error}")
    return wrong


def write(tables: Mapping[str, str], partly: bool) -> None:
    """Puts the tables into the page; partly: the lines that they have into the page's."""
    text = PAGE.read_text(encoding="utf-8")
    for target, rows in tables.items():
        first, last = FIRST.format(target), LAST.format(target)
        before, rest = text.split(first)
        present, after = rest.split(last)
        text = f"{before}{first}{merged(present, rows) if partly else rows}{last}{after}"
    PAGE.write_text(text, encoding="utf-8")


def peers_on_page(target: str) -> Table:
    """What the page's table has of the peers."""
    first, last = FIRST.format(target), LAST.format(target)
    rows = PAGE.read_text(encoding="utf-8").split(first)[1].split(last)[0]
    found: Table = {system: {} for system in SYSTEMS[1:]}
    for line in rows.splitlines()[2:]:
        call, *cells = line.strip("| ").split(" | ")
        for place, system in enumerate(SYSTEMS[1:], 1):
            texts = [cell.split(" / ")[place] for cell in cells]
            if "–" not in texts:
                numbers = [int(text.replace(",", "").strip(WRONG)) for text in texts]
                error = math.inf if WRONG in texts[0] else 0.0
                found[system][call.strip("`")] = Solved(
                    dict(zip(COUNTED, numbers, strict=True)), error
                )
    return found


def merged(present: str, rows: str) -> str:
    """A table with the lines of another one instead of those of the same calls."""
    made = {call_of(line): line for line in rows.splitlines(keepends=True)}
    return "".join(made.get(call_of(line), line) for line in present.splitlines(keepends=True))


def call_of(line: str) -> str:
    """The first cell of a table's line."""
    return line.split(" | ")[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peers-python", default=sys.executable, help="where the peers are")
    parser.add_argument("--flydsl-kernels", type=Path, metavar="DIR", help="a checkout of FlyDSL")
    parser.add_argument("--target", choices=TARGETS, help="only for this one")
    parser.add_argument("--only", default="", metavar="REGEX", help="calls that match")
    parser.add_argument("--ours", action="store_true", help="the peers' counts are the page's")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    options = parser.parse_args()
    if options.flydsl_kernels and not (options.flydsl_kernels / "kernels" / "norm").is_dir():
        sys.exit(f"kernel_quality: error: {options.flydsl_kernels} has no kernels/norm")
    names = [one.name for one in PROBLEMS if re.search(options.only, one.name)]
    tables, wrong = {}, []
    with tempfile.TemporaryDirectory(prefix="fly-quality-") as folder:
        scratch = Path(folder)
        options.peers = (
            []
            if options.ours
            else compile_time.find_peers(options.peers_python, TARGETS[0], scratch, None)
        )
        complete = options.ours or (len(options.peers) == 2 and options.flydsl_kernels)
        if options.write and not complete:
            sys.exit("kernel_quality: error: --write needs --peers-python and --flydsl-kernels")
        for target in (options.target,) if options.target else TARGETS:
            found = peers_on_page(target) if options.ours else {}
            found |= {
                system: solve(system, command, environment, target, results)
                for system, command, environment, results in systems(
                    options, names, target, scratch
                )
            }
            tables[target] = table(found)
            wrong += report(found, target)
    if options.write:
        write(tables, bool(options.only))
    else:
        for target, rows in tables.items():
            print(f"{target}: fly / FlyDSL / Triton\n{rows}", end="")
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
