"""Trials: a forked child mutates the module and runs the mutant's tests until one fails."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from mutation_python.applying import Functions, NoModule, NoMutant, apply
from mutation_python.damage import Mutant
from mutation_python.suite import Judge, Suite, fails

SURVIVED, NOTICED, SAME, TOOL_FAILED = 0, 11, 20, 99
# In a suite's folder: the tests that failed without a mutation, a line each.
ALARMS = "alarms.txt"
# Limits of a child's processor time and wall-clock time: a factor of its tests' time, and seconds
# on top. Exceeding them counts as detecting the mutant.
PROCESSOR = (3, 4)
CLOCK = (10, 40)


def verdicts(
    suite: Suite,
    mutants: list[Mutant | None],
    files: set[str],
    jobs: int,
    say: Callable[[str], None],
) -> list[int]:
    """Returns the exit status of a child for each mutant; None stands for no mutation, judged by
    the quickest tests. Negative: the signal that ended it."""
    functions = Functions.of(files)
    results = [SURVIVED] * len(mutants)
    running: dict[int, int] = {}
    started = time.monotonic()
    gc.freeze()  # a collection in a child would copy memory shared with this process

    def reap() -> None:
        child, status = os.wait()
        number = running.pop(child)
        results[number] = os.waitstatus_to_exitcode(status)
        mutant = mutants[number]
        if mutant is not None and results[number] == SURVIVED:
            say(f"survives: {mutant.place}: {mutant.function} [{mutant.kind}] {mutant.what}")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # processes that the child's tests started and left
        shutil.rmtree(suite.folder / f"trial-{number}", ignore_errors=True)

    for number, mutant in enumerate(mutants):
        judges = suite.of(mutant) if mutant else _quickest(suite)
        if not judges:
            continue
        while len(running) >= jobs:
            reap()
        folder = suite.folder / f"trial-{number}"
        folder.mkdir()
        running[_child(mutant, judges, functions, folder)] = number
        if number % 100 == 99:
            say(f"{number + 1} of {len(mutants)}, {time.monotonic() - started:.0f} s")
    while running:
        reap()
    return results


def _quickest(suite: Suite) -> list[Judge]:
    ordered = sorted(suite.judges, key=lambda one: one.seconds)
    return ordered[:: max(len(ordered) // 20, 1)][:20]


def _child(mutant: Mutant | None, judges: list[Judge], functions: Functions, folder: Path) -> int:
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = TOOL_FAILED
    try:
        os.setpgid(0, 0)
        seconds = sum(judge.seconds for judge in judges)
        signal.setitimer(signal.ITIMER_PROF, PROCESSOR[0] * seconds + PROCESSOR[1])
        signal.setitimer(signal.ITIMER_REAL, CLOCK[0] * seconds + CLOCK[1])
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE: a crash leaves no core file
        code = _judge(mutant, judges, functions, folder)
    except BaseException:
        with contextlib.suppress(BaseException):
            import traceback

            (folder.parent / "failed.txt").write_text(traceback.format_exc())
    finally:
        os._exit(code)


def _judge(mutant: Mutant | None, judges: list[Judge], functions: Functions, folder: Path) -> int:
    temporary = judges[0].item.config._tmp_path_factory  # type: ignore[attr-defined]
    temporary._basetemp = folder
    if mutant is not None:
        try:
            apply(mutant, functions, folder if any(one.starts for one in judges) else None)
        except NoMutant:
            return SAME
        except NoModule:
            return NOTICED
    failing = fails(judges)
    if failing and mutant is None:
        (folder.parent / ALARMS).open("a").write(f"{failing.nodeid}\n")
    return NOTICED if failing else SURVIVED
