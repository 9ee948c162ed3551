"""Compiles every kernel with two revisions of the compiler, and prints which HSACOs differ."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from same_bytes import comparison, digests, jobs, recorded, sides
from same_bytes.sides import Side

ROOT = Path(__file__).parents[2]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="same-bytes", description=__doc__)
    parser.add_argument("revision", metavar="REV", help="a commit, a branch or a tag")
    parser.add_argument("--list", action="store_true", help="print what is compared, and stop")
    parser.add_argument(
        "--only",
        metavar="PATTERN",
        action="append",
        default=[],
        help="compare what has this in its name: a part of it, or a shell pattern",
    )
    parser.add_argument("--targets", metavar="CHIP,…", help="on these only")
    parser.add_argument(
        "--without-tests", action="store_true", help="only the examples and the lit inputs"
    )
    parser.add_argument(
        "--code",
        action="store_true",
        help="count HSACOs that differ in nothing but the host program apart from the others",
    )
    parser.add_argument("--now", metavar="DIR", type=Path, default=ROOT, help="another checkout")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="leave what was made there")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    os.nice(5)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # clean up the processes and the folder
    folder = given.keep or Path(tempfile.mkdtemp(prefix="same-bytes-"))
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        print(f"same-bytes: error: {folder} is not empty", file=sys.stderr)
        return 2
    try:
        return compare(given, folder)
    finally:
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)


def compare(given: argparse.Namespace, folder: Path) -> int:
    repository = given.now if (given.now / ".git").exists() else ROOT
    sides.checkout(repository, given.revision, folder / "before-checkout")
    both = (
        Side("before", folder / "before-checkout", folder / "before"),
        Side("now", given.now.resolve(), folder / "now"),
    )
    for side in both:
        side.prepare()
    llvm = sides.recording_llvm(folder / "llvm")
    targets = common_targets(both, llvm, folder, given.targets)
    found = jobs.collect(both[0].checkout, both[1].checkout, folder / "inputs", targets)
    found = jobs.chosen(found, given.only)
    if given.list:
        for job in found:
            print(job.name)
        print(f"{len(found)} compilations on {', '.join(targets)}, and what the tests link:")
        for name in recorded.FILES:
            print(f"  {name}")
        for name in recorded.FILES_OF_ANY_TARGET:
            print(f"  {name} on each target")
        return 0
    results = compile_all(both, llvm, found)
    code = digests.of_code(both) if given.code else None
    report = comparison.of_jobs(found, *results, code)
    if not given.without_tests:
        for side in both:
            if lacking := recorded.missing(side):
                report.notes.append(f"{side.name} has no {', '.join(lacking)}: see recorded.py")
        recorded_tests = run_tests(both, llvm, targets, given.only)
        code = digests.of_code(both) if given.code else None
        report += comparison.of_tests(*recorded_tests, code)
    print(report.text(targets))
    return 1 if report.differing else 0


def common_targets(both: tuple[Side, ...], llvm: Path, folder: Path, asked: str | None) -> list:
    """Returns the chips, of all that LLVM supports, that fly-opt-py of both sides supports."""
    said = subprocess.run(
        [llvm / "bin" / "llc", "-march=amdgcn", "-mcpu=help"], capture_output=True, text=True
    )
    chips = sorted({word for word in (said.stdout + said.stderr).split() if word[:3] == "gfx"})
    if asked:
        chips = asked.split(",")
    empty = folder / "empty.mlir"
    empty.write_text("module {\n}\n")
    probes = [
        jobs.Job(f"probe {chip}", (("fly-opt-py", "--target", chip),), "both", str(empty))
        for chip in chips
    ]
    known = []
    for side in both:
        done = compiling(side, llvm, probes, "probe")
        if done.wait():
            raise SystemExit(f"same-bytes: error: {side.name}: the commands can't be run")
        known.append(comparison.read(side.folder / "probe.results"))
    unknown = "refused fly-opt-py: 2"
    found = [
        chip for chip in chips if all(str(results[f"probe {chip}"]) != unknown for results in known)
    ]
    missing = [chip for chip in chips if asked and chip not in found]
    if missing or not found:
        raise SystemExit(f"same-bytes: error: no target of both: {', '.join(missing or chips)}")
    return found


def compiling(side: Side, llvm: Path, found: list[jobs.Job], name: str) -> subprocess.Popen:
    """Starts a process of a side that runs the jobs."""
    entries, listed = side.folder / f"{name}.entries", side.folder / f"{name}.jobs"
    entries.write_text(json.dumps(side.commands))
    listed.write_text(json.dumps([{**asdict(job), "group": job.group} for job in found]))
    results = side.folder / f"{name}.results"
    results.touch()
    worker = Path(__file__).with_name("worker.py")
    with open(side.folder / f"{name}.log", "wb") as log:
        return subprocess.Popen(
            [side.python, "-P", worker, entries, listed, results, side.folder],
            env={**side.environment(llvm), "FLY_CACHE": "off"},
            cwd=side.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def compile_all(both: tuple[Side, ...], llvm: Path, found: list[jobs.Job]) -> list:
    files = [side.folder / "jobs.results" for side in both]
    running = [compiling(side, llvm, found, "jobs") for side in both]
    follow(
        "compiling",
        2 * len(found),
        lambda: sum(file.read_bytes().count(b"\n") for file in files),
        running,
    )
    return [comparison.read(file) for file in files]


def run_tests(
    both: tuple[Side, ...], llvm: Path, targets: list[str], only: list[str]
) -> list[recorded.Recorded]:
    for target in (None, *targets):
        running = [recorded.start(side, llvm, target, " or ".join(only)) for side in both]
        what = f"kernels of the tests, {target or 'their targets'}"
        follow(what, None, lambda: sum(map(recorded.linked, both)), running)
    return [recorded.read(side) for side in both]


def follow(
    what: str, total: int | None, count: Callable[[], int], running: list[subprocess.Popen]
) -> None:
    """Waits for the processes, and ends them with this one; shows a progress bar on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    try:
        with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress:
            bar = progress.add_task(what, total=total)
            while any(one.poll() is None for one in running):
                progress.update(bar, completed=count())
                time.sleep(0.25)
            progress.update(bar, completed=count())
    finally:
        for one in running:
            if one.poll() is None:
                one.kill()
                one.wait()


if __name__ == "__main__":
    sys.exit(main())
