"""Detects mutants, first by the probes of every instruction, then by the tests of the engine.

Each trial is a forked child in which one handler is replaced: a mutant may crash, or never end.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fly_common.errors import FlyError

from mutation.benches import Bench
from mutation.detour import redirect
from mutation.suite import Suite

# Processor time in seconds after which a child counts as having detected the mutant, which may
# never end. All probes together take less than one, unmodified; the time of tests is known.
PROBE_SECONDS = 6
TEST_FACTOR = 3
WAITING_SECONDS = 600  # a child that only waits
SURVIVED, BY_PROBES, BY_TESTS, TOOL_FAILED = 0, 10, 11, 99


@dataclass(frozen=True)
class Judges:
    benches: list[Bench]
    suite: Suite

    @property
    def covered(self) -> set[str]:
        """The handlers that any probe or test uses."""
        return set().union(*(b.uses for b in self.benches), *(t.uses for t in self.suite.tests))

    def notice(self, handler: str, function: int, other: int) -> int:
        """Returns, in a child, SURVIVED, BY_PROBES or BY_TESTS. `function` and `other` are the
        addresses of the handler and of its replacement."""
        redirect(function, other)
        signal.setitimer(signal.ITIMER_PROF, PROBE_SECONDS)
        for bench in self.benches:
            if handler in bench.uses:
                try:
                    if bench.differs():
                        return BY_PROBES
                except FlyError:
                    return BY_PROBES
        seconds = sum(test.seconds for test in self.suite.quickest(handler))
        signal.setitimer(signal.ITIMER_PROF, PROBE_SECONDS + TEST_FACTOR * seconds)
        return BY_TESTS if self.suite.notices(handler) else SURVIVED


def verdicts(
    jury: Judges,
    trials: Sequence[tuple[str, int, int]],
    jobs: int,
    say: Callable[[str], None],
    describe: Callable[[int], str],
) -> list[int]:
    """Returns the exit status of a child for each trial: a handler, its address, the mutant's.
    Negative: the signal that ended it. Survivors are told at once, as `describe` has it for the
    number of a trial; no text: it is none."""
    results = [0] * len(trials)
    running: dict[int, int] = {}
    started = time.monotonic()
    gc.freeze()  # a collection in a child would copy memory shared with this process

    def reap() -> None:
        child, status = os.wait()
        number = running.pop(child)
        results[number] = os.waitstatus_to_exitcode(status)
        if results[number] == SURVIVED and (text := describe(number)):
            say(text)

    for number, (handler, function, other) in enumerate(trials):
        while len(running) >= jobs:
            reap()
        child = in_child(lambda h=handler, f=function, o=other: jury.notice(h, f, o))
        running[child] = number
        if number % 100 == 99:
            say(f"{number + 1} of {len(trials)}, {time.monotonic() - started:.0f} s")
    while running:
        reap()
    return results


def in_child(work: Callable[[], int]) -> int:
    """Starts a child that runs `work`; returns its process id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    signal.alarm(WAITING_SECONDS)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE: a crash leaves no core file
    try:
        code = work()
    except BaseException:
        code = TOOL_FAILED
    os._exit(code)
