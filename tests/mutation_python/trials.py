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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Trial:
    """A mutant and the tests that may detect it; a control has no mutant."""

    mutant: Mutant | None
    judges: Sequence[Judge]


def controls(suite: Suite) -> list[Trial]:
    """Returns trials without a mutation that run all tests: at most twenty each, quick and slow."""
    ordered = sorted(suite.judges, key=lambda one: one.seconds)
    count = -(-len(ordered) // 20)
    return [Trial(None, ordered[number::count]) for number in range(count)]


def failing(suite: Suite, jobs: int) -> list[str]:
    """Returns the tests that fail in a control. They passed when their lines were recorded, in the
    order of their files: what they need, or are disturbed by, is not in a trial."""
    found: list[str] = []
    pending = controls(suite)
    while pending:
        noted = suite.folder / ALARMS
        noted.unlink(missing_ok=True)
        run(suite, pending, set(), jobs)
        names = set(noted.read_text().splitlines()) if noted.exists() else set()
        found += names
        # A trial ends with the first test that fails: the tests behind it are still to be run.
        pending = [rest for trial in pending if (rest := _behind(trial, names)).judges]
    (suite.folder / ALARMS).unlink(missing_ok=True)
    return sorted(found)


def _behind(trial: Trial, names: set[str]) -> Trial:
    places = [n for n, judge in enumerate(trial.judges) if judge.item.nodeid in names]
    return Trial(None, trial.judges[places[-1] + 1 :] if places else ())


def run(
    suite: Suite,
    trials: Sequence[Trial],
    files: set[str],
    jobs: int,
    say: Callable[[str], None] = lambda text: None,
) -> list[int]:
    """Returns the exit status of a child for each trial. Negative: the signal that ended it."""
    functions = Functions.of(files)
    results = [SURVIVED] * len(trials)
    running: dict[int, int] = {}
    started = time.monotonic()
    gc.freeze()  # a collection in a child would copy memory shared with this process

    def reap() -> None:
        child, status = os.wait()
        number = running.pop(child)
        results[number] = os.waitstatus_to_exitcode(status)
        mutant = trials[number].mutant
        if mutant is not None and results[number] == SURVIVED:
            say(f"survives: {mutant.place}: {mutant.function} [{mutant.kind}] {mutant.what}")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # processes that the child's tests started and left
        shutil.rmtree(suite.folder / f"trial-{number}", ignore_errors=True)

    for number, trial in enumerate(trials):
        if not trial.judges:
            continue
        while len(running) >= jobs:
            reap()
        folder = suite.folder / f"trial-{number}"
        folder.mkdir()
        running[_child(trial, functions, folder)] = number
        if number % 100 == 99:
            say(f"{number + 1} of {len(trials)}, {time.monotonic() - started:.0f} s")
    while running:
        reap()
    return results


def _child(trial: Trial, functions: Functions, folder: Path) -> int:
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = TOOL_FAILED
    try:
        os.setpgid(0, 0)
        seconds = sum(judge.seconds for judge in trial.judges)
        signal.setitimer(signal.ITIMER_PROF, PROCESSOR[0] * seconds + PROCESSOR[1])
        signal.setitimer(signal.ITIMER_REAL, CLOCK[0] * seconds + CLOCK[1])
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE: a crash leaves no core file
        code = _judge(trial, functions, folder)
    except BaseException:
        with contextlib.suppress(BaseException):
            import traceback

            (folder.parent / "failed.txt").write_text(traceback.format_exc())
    finally:
        os._exit(code)


def _judge(trial: Trial, functions: Functions, folder: Path) -> int:
    mutant, judges = trial.mutant, trial.judges
    temporary = judges[0].item.config._tmp_path_factory  # type: ignore[attr-defined]
    temporary._basetemp = folder
    if mutant is not None:
        try:
            apply(mutant, functions, folder if any(one.starts for one in judges) else None)
        except NoMutant:
            return SAME
        except NoModule:
            return NOTICED
    failed = fails(judges)
    if failed and mutant is None:
        with (folder.parent / ALARMS).open("a") as noted:
            noted.write(f"{failed.nodeid}\n")
    return NOTICED if failed else SURVIVED
