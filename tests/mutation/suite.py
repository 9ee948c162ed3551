"""Runs the tests that execute kernels on the emulator in process, within one pytest.

They are collected once. Each runs once unmodified, to record its handlers and its time; after that
a forked child can run any of them, without starting pytest again.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from mutation.building import operation_of
from mutation.handlers import Handlers

TESTS = Path(__file__).parent.parent
FILES = (
    *("test_engine_[!l]*.py", "test_oracle_kernels.py", "test_oracle_folding.py"),
    *("test_matrix_*.py", "test_launch.py", "test_observe.py", "test_oracle_wmma.py"),
    *("test_measure.py", "test_strict.py", "test_stats.py", "test_trace.py"),
    *(
        "test_access_bounds.py",
        "test_shortcuts.py",
        "test_fused_runs.py",
        "test_measured_sums.py",
        "test_dot_forms.py",
    ),
    *("test_half_overflow.py", "test_copies_to_lds.py", "test_tensor_moves.py"),
    *("test_strict_copies.py", "test_lds_barriers.py", "test_strict_clusters.py"),
    *("test_inactive_addresses.py", "test_rdna_registers.py", "test_vgpr_msb.py"),
    *("test_quick_buffers.py", "test_clamp.py", "test_waits_and_prefetches.py"),
)
# Time limit in seconds for the tests of a handler, of which only the quickest run: a child that
# detects nothing must finish long before its own limit.
SECONDS = 8.0


def form(handler: str) -> str:
    """Returns the form of the operation that a handler implements."""
    return operation_of(handler).form


@dataclass
class Test:
    item: pytest.Item
    uses: set[str]
    seconds: float

    def fails(self) -> bool:
        return any(report.failed for report in runtestprotocol(self.item, log=False))


@dataclass
class Suite:
    """`broken`: the names of tests that fail without a mutation."""

    tests: list[Test]
    broken: list[str]

    def notices(self, handler: str) -> bool:
        return any(test.fails() for test in self.quickest(handler))

    def quickest(self, handler: str) -> list[Test]:
        """Returns the quickest tests that use a handler, at least one if there is any, starting
        with those whose parameters name its form, which test all its handlers."""
        ending = f"-{form(handler)}]"
        using = sorted((t for t in self.tests if handler in t.uses), key=lambda t: t.seconds)
        found = [t for t in using if t.item.nodeid.endswith(ending)]
        total = 0.0
        for test in using:
            total += test.seconds
            if found and total > SECONDS:
                break
            if test not in found:
                found.append(test)
        return found


class _Within:
    """A pytest plugin that replaces the test loop: records all tests and calls `then`. Tests with
    the name of a target in their parameters only run if it is one of `targets`."""

    def __init__(self, handlers: Handlers, then: Callable[[Suite], None], targets: frozenset[str]):
        self.handlers = handlers
        self.then = then
        self.targets = targets

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if self._wanted(item.nodeid)]

    def _wanted(self, name: str) -> bool:
        named = set(re.findall(r"gfx\d+[a-z]?", name.partition("[")[2]))
        return not named or not named.isdisjoint(self.targets)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        tests, broken = [], []
        following: Iterable[pytest.Item | None] = [*session.items[1:], None]
        for item, after in zip(session.items, following, strict=True):
            with self.handlers.recording() as used:
                reports = runtestprotocol(item, log=False, nextitem=after)
            if any(report.failed for report in reports):
                broken.append(item.nodeid)
            elif used:
                tests.append(Test(item, used, sum(report.duration for report in reports)))
        self.then(Suite(tests, broken))
        return True


def within(
    handlers: Handlers,
    then: Callable[[Suite], None],
    targets: frozenset[str],
    only: str | None = None,
) -> None:
    """Calls `then` within pytest, with the tests collected and recorded: those on `targets`, of
    files whose names, without `.py`, match `only`."""
    found = (path for pattern in FILES for path in (TESTS / "fly_run").rglob(pattern))
    names = sorted(str(path) for path in found if not only or re.fullmatch(only, path.stem))
    options = ["-p", "no:cacheprovider", "-p", "no:faulthandler", f"--rootdir={TESTS.parent}"]
    # Failure messages are not read, and computing them can take half a minute if arrays differ.
    options += ["--assert=plain", "--tb=native"]
    # What `make test` leaves out notices damage too: a handler's tests are chosen by their time.
    options += ["-m", "heavy or not heavy"]
    with _silence():
        pytest.main([*options, *names], plugins=[_Within(handlers, then, targets)])


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield
