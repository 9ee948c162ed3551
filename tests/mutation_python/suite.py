"""The judging tests, collected once within one pytest, and the lines that each executes.

The process that collects them runs none: a forked child does, with every line recorded. So a trial
starts from a process in which nothing has been called or cached yet.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.runner import runtestprotocol

from mutation_python.applying import STARTUP
from mutation_python.damage import Mutant

TESTS = Path(__file__).parents[1]
# Time limit in seconds for the tests of a mutant: the quickest that execute its lines.
SECONDS = 6.0

Line = tuple[str, int]  # file, number


@dataclass
class Judge:
    """A test, with the lines of the mutated modules that it and its processes execute. `seconds` is
    the processor time of all of them."""

    item: pytest.Item
    seconds: float
    lines: set[Line]
    starts: bool  # whether it starts processes that execute mutated modules


@dataclass
class Suite:
    """`broken`: tests that fail without a mutation, which judge nothing."""

    judges: list[Judge]
    broken: list[str]
    folder: Path
    _by_line: dict[Line, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, judge in enumerate(self.judges):
            for line in judge.lines:
                self._by_line.setdefault(line, []).append(number)

    def without(self, names: Sequence[str]) -> Suite:
        judges = [judge for judge in self.judges if judge.item.nodeid not in names]
        return Suite(judges, [*self.broken, *names], self.folder)

    def of(self, mutant: Mutant) -> list[Judge]:
        """Returns the tests that execute the mutant's lines, within the time limit: the quickest
        first, but the cases of one test function interleaved with others."""
        path = str(mutant.path)
        numbers = {n for line in mutant.lines for n in self._by_line.get((path, line), ())}
        if mutant.constant and not mutant.lines:
            numbers = {n for (file, _), users in self._by_line.items() if file == path
                       for n in users}  # fmt: skip
        quickest = sorted((self.judges[n] for n in numbers), key=lambda one: one.seconds)
        cases: dict[str, int] = {}
        keys: list[tuple[float, int]] = []
        for number, judge in enumerate(quickest):
            function = judge.item.nodeid.partition("[")[0]
            turn = cases[function] = cases.get(function, -1) + 1
            keys.append((judge.seconds * (1 + turn / 8), number))
        ordered = [quickest[number] for _, number in sorted(keys)]
        chosen, total = [], 0.0
        for judge in ordered:
            total += judge.seconds
            if chosen and total > SECONDS:
                break
            chosen.append(judge)
        return chosen


def fails(judges: Sequence[Judge]) -> pytest.Item | None:
    """Returns the first test that fails in the present state."""
    after = [*(judge.item for judge in judges[1:]), None]
    for judge, following in zip(judges, after, strict=True):
        reports = runtestprotocol(judge.item, log=False, nextitem=following)
        if any(report.failed for report in reports):
            return judge.item
    return None


def within(
    paths: Sequence[Path], files: set[str], folder: Path, then: Callable[[Suite], None]
) -> None:
    """Collects the tests of `paths`, records which lines of `files` they execute, and calls `then`
    within that pytest."""
    options = ["-p", "no:cacheprovider", "-p", "no:faulthandler", f"--rootdir={TESTS.parent}"]
    # Failure messages are not read, and computing them takes time.
    options += ["--assert=plain", "--tb=native", "--benchmark-disable", f"--basetemp={folder}/tmp"]
    with _silence():
        pytest.main([*options, *map(str, paths)], plugins=[_Within(files, folder, then)])


class _Within:
    """A pytest plugin that replaces the test loop: records all tests and calls `then`."""

    def __init__(self, files: set[str], folder: Path, then: Callable[[Suite], None]) -> None:
        self.files = files
        self.folder = folder
        self.then = then

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        recorded, imported = _recorded(session.items, self.files, self.folder)
        for name in imported:
            if name not in sys.modules:
                with contextlib.suppress(BaseException):
                    importlib.import_module(name)
        judges, broken = [], []
        for item in session.items:
            seconds, failed, lines, starts = recorded.get(item.nodeid, (0.0, True, set(), False))
            if failed:
                broken.append(item.nodeid)
            elif lines:
                judges.append(Judge(item, seconds, lines, starts))
        self.then(Suite(judges, broken, self.folder))
        return True


Recorded = dict[str, tuple[float, bool, set[Line], bool]]


def _recorded(
    items: list[pytest.Item], files: set[str], folder: Path
) -> tuple[Recorded, list[str]]:
    """Returns a child's records: for each test its seconds, whether it fails, its lines, whether
    some of them are its processes'; and the modules that were imported meanwhile."""
    result = folder / "recorded.pickle"
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            result.write_bytes(pickle.dumps(_record(items, files, folder)))
        os._exit(0)
    os.waitpid(child, 0)
    return pickle.loads(result.read_bytes())


def _record(items: list[pytest.Item], files: set[str], folder: Path) -> tuple[Recorded, list[str]]:
    before = set(sys.modules)
    processes = folder / "processes"
    processes.mkdir()
    (processes / "files").write_text("\n".join(files))
    os.environ["FLY_MUTATION_RECORD"] = str(processes)
    path = [str(STARTUP), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)
    found: Recorded = {}
    for item, after in zip(items, [*items[1:], None], strict=True):
        lines: set[Line] = set()
        start = sum(os.times()[:4])
        with _tracing(files, lines):
            reports = runtestprotocol(item, log=False, nextitem=after)
        seconds = sum(os.times()[:4]) - start
        found[item.nodeid] = (seconds, any(r.failed for r in reports), lines, False)
    for written in processes.glob("*.lines"):
        for line in written.read_text().splitlines():
            test, file, number = line.split("\t")
            if test in found:
                seconds, failed, lines, _ = found[test]
                lines.add((file, int(number)))
                found[test] = (seconds, failed, lines, True)
    new = [
        name
        for name, module in sys.modules.items()
        if name not in before and type(module) is ModuleType
    ]
    return found, new


@contextlib.contextmanager
def _tracing(files: set[str], lines: set[Line]) -> Iterator[None]:
    def line(frame, event, _):
        lines.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame, event, _):
        return line if frame.f_code.co_filename in files else None

    threading.settrace(call)
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield
