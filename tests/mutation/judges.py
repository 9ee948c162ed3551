"""Who notices a mutant: the probes of every instruction, then the tests of the engine.

Both run in a forked child, on the library with one handler exchanged: a mutant may crash, or never
end. First they run as they are, which tells what handlers each of them uses.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from fly_common.code_object import CodeObject
from fly_common.errors import FlyError
from fly_run.emulator import library
from fly_run.emulator.machine import Emulator
from oracle import build, instructions, launch, probe

TESTS = Path(__file__).parent.parent
# Tests that execute kernels on the emulator in this process, with its library as it is.
SUITES = (
    *("test_engine_[!l]*.py", "test_oracle_kernels.py", "test_oracle_folding.py"),
    *("test_matrix_*.py", "test_launch.py", "test_observe.py", "test_oracle_rdna.py"),
)
PROBES_AT_ONCE = 60
SECONDS = 120  # a child that takes longer is ended, and has noticed
# A handler that every kernel uses is tried by the quickest tests only, of so many seconds together:
# a child that finds nothing must be done long before its time is up.
TEST_SECONDS = 8.0

SURVIVED, BY_PROBES, BY_TESTS, TOOL_FAILED = 0, 10, 11, 99


class Handlers(dict):
    """The library's handlers by name, which tells which names were asked for."""

    def __init__(self, addresses: dict[str, int]):
        super().__init__(addresses)
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> int:
        self.used.add(name)
        return super().__getitem__(name)

    @contextlib.contextmanager
    def recording(self) -> Iterator[set[str]]:
        self.used = set()
        yield self.used


@dataclass
class Bench:
    """Some probes of a family on one target, with what the oracle says of them."""

    target: str
    batch: probe.Batch
    code: CodeObject
    expected: np.ndarray
    uses: set[str] = field(default_factory=set)

    def computed(self) -> np.ndarray:
        """What the emulator, as it is now, writes."""
        arrays = {"inputs": self.batch.inputs, "outputs": self.batch.outputs()}
        arrays["masks"] = self.batch.masks
        device = Emulator(self.target)
        places = [device.bind(n, a.ctypes.data, a.nbytes, True) for n, a in arrays.items()]
        kernarg = np.array(places, np.uint64).tobytes()
        device.launch(self.code, "probe", (probe.WAVES, 1, 1), (64, 1, 1), kernarg, 0)
        device.close()
        return arrays["outputs"]

    def differs(self) -> bool:
        """Whether the emulator, as it is now, computes anything else than the oracle."""
        got = self.computed()
        for position, one in enumerate(self.batch.probes):
            if (got[position] == self.expected[position]).all():
                continue
            if probe.differences(one, self.expected[position], got[position]).any():
                return True
        return False


@dataclass
class Judges:
    handlers: Handlers
    benches: list[Bench]
    tests: dict[str, set[str]]  # pytest's name of a test → handlers it uses
    seconds: dict[str, float]  # and how long it takes

    def notice(self, handler: str, address: int) -> int:
        """In a child: SURVIVED, BY_PROBES or BY_TESTS."""
        self.handlers[handler] = address
        for bench in self.benches:
            if handler in bench.uses:
                try:
                    if bench.differs():
                        return BY_PROBES
                except FlyError:
                    return BY_PROBES
        chosen = self._quickest(name for name, uses in self.tests.items() if handler in uses)
        if chosen and _pytest([*chosen, "-x"]):
            return BY_TESTS
        return SURVIVED

    def _quickest(self, names: Iterable[str]) -> list[str]:
        """The quickest of these tests, at least one."""
        found: list[str] = []
        total = 0.0
        for name in sorted(names, key=lambda name: (self.seconds[name], name)):
            total += self.seconds[name]
            if found and total > TEST_SECONDS:
                break
            found.append(name)
        return found


def gather(targets: tuple[str, ...], say: Callable[[str], None]) -> Judges:
    """Prepares the judges; RuntimeError if they don't agree with the emulator as it is."""
    found = library.load()
    handlers = Handlers(found.handlers)
    exchanged = library.Library(found.path, handlers, found.run, found.cpu)
    library.load = lambda: exchanged  # type: ignore[assignment]
    benches = []
    for target in targets:
        for family in instructions.FAMILIES:
            chosen = instructions.supported(target, family)
            for start in range(0, len(chosen), PROBES_AT_ONCE):
                benches.append(_bench(target, chosen[start : start + PROBES_AT_ONCE], handlers))
    say(f"{sum(len(b.batch.probes) for b in benches)} probes on {', '.join(targets)}")
    recorder = _Recorder(handlers)
    names = sorted(str(path) for pattern in SUITES for path in (TESTS / "fly_run").glob(pattern))
    _pytest(names, recorder)
    if recorder.failed:
        say(f"left out, as they fail before anything is damaged: {', '.join(recorder.failed)}")
    say(f"{len(recorder.uses)} tests of {len(names)} files")
    return Judges(handlers, benches, recorder.uses, recorder.seconds)


def _bench(target: str, probes: list[probe.Probe], handlers: Handlers) -> Bench:
    batch = probe.batch(probes)
    data = build.assemble(batch.text, target)
    arguments = [batch.inputs, batch.outputs(), batch.masks]
    where = (probe.WAVES, 1, 1), (64, 1, 1)
    expected = launch.on_oracle(data, "probe", *where, arguments).arguments[1]
    bench = Bench(target, batch, CodeObject.parse(data), expected)
    with handlers.recording() as used:
        if bench.differs():
            raise RuntimeError(f"oracle and emulator differ on {target} before anything is damaged")
    bench.uses = used
    return bench


class _Recorder:
    """A pytest plugin that notes which handlers each test uses."""

    def __init__(self, handlers: Handlers):
        self.handlers = handlers
        self.uses: dict[str, set[str]] = {}
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            self.seconds[report.nodeid] = report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        with self.handlers.recording() as used:
            yield
        if used and item.nodeid not in self.failed and item.nodeid in self.seconds:
            self.uses[item.nodeid] = used


def _pytest(names: list[str], *plugins: object) -> int:
    options = ["-q", "-p", "no:cacheprovider", f"--rootdir={TESTS.parent}", "--no-header"]
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        return int(pytest.main([*options, *names], plugins=list(plugins)))


def in_child(work: Callable[[], int]) -> int:
    """Starts a child that does `work`; its process id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    signal.alarm(SECONDS)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE: a crash leaves no core file
    try:
        code = work()
    except BaseException:
        code = TOOL_FAILED
    os._exit(code)
