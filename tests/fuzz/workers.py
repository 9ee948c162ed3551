"""Runs cases in forked processes, any of which may crash or hang; it is then restarted after the
case that ended it."""

from __future__ import annotations

import faulthandler
import mmap
import os
import pickle
import resource
import select
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fuzz.case import Case, attempt
from fuzz.kinds import KINDS

MEMORY = 8 << 30  # bytes of address space; more is only requested because of a mutated number
SLOW = 20.0  # time limit of a case
_STATE = struct.Struct("<qdqq")  # number of the case, its start, accepted, rejected


@dataclass
class Finding:
    case: Case
    what: str
    crash: bool = False


@dataclass
class Tally:
    """Of a kind: the number of cases that ran, were accepted, and were rejected."""

    cases: int = 0
    taken: int = 0
    refused: int = 0
    findings: list[Finding] = field(default_factory=list)


class _Worker:
    """A process that runs the cases first, first + step, … below `end`."""

    def __init__(self, seed: int, kind: str, first: int, end: int, step: int):
        self.seed, self.kind, self.first, self.end, self.step = seed, kind, first, end, step
        self.state = mmap.mmap(-1, _STATE.size)
        self.reader, writer = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.reader)
            self._work(writer)
        os.close(writer)
        os.set_blocking(self.reader, False)
        self.pending = b""

    def _work(self, writer: int) -> None:
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            faulthandler.disable()
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            os.dup2(null, 2)
            self._cases(writer)
            status = 0
        finally:
            os._exit(status)

    def _cases(self, writer: int) -> None:
        kind = KINDS[self.kind]
        seeds = kind.seeds()
        taken = refused = 0
        for number in range(self.first, self.end, self.step):
            self.state[:] = _STATE.pack(number, time.monotonic(), taken, refused)
            case = Case(self.seed, self.kind, number)
            data, generator = case.made(seeds)
            sound, wrong = attempt(kind, data, generator)
            taken, refused = taken + sound, refused + (not sound)
            if wrong:
                said = pickle.dumps(Finding(case, wrong))
                os.write(writer, struct.pack("<I", len(said)) + said)
        self.state[:] = _STATE.pack(self.end, time.monotonic(), taken, refused)

    @property
    def at(self) -> tuple[int, float, int, int]:
        return _STATE.unpack(self.state[:])

    def findings(self) -> Iterator[Finding]:
        try:
            while piece := os.read(self.reader, 1 << 16):
                self.pending += piece
        except BlockingIOError:
            pass
        while len(self.pending) >= 4:
            (size,) = struct.unpack_from("<I", self.pending)
            if len(self.pending) < 4 + size:
                break
            yield pickle.loads(self.pending[4 : 4 + size])
            self.pending = self.pending[4 + size :]


def run(seed: int, kind: str, count: int, jobs: int, found: Callable[[Finding], None]) -> Tally:
    """Runs all cases of a kind. `found` is called with each finding as it comes."""
    tally = Tally()

    def tell(finding: Finding) -> None:
        tally.findings.append(finding)
        found(finding)

    step = max(1, min(jobs, count))
    workers = [_Worker(seed, kind, first, count, step) for first in range(step)]
    while workers:
        select.select([worker.reader for worker in workers], [], [], 0.1)
        for worker in list(workers):
            for finding in worker.findings():
                tell(finding)
            number, began, taken, refused = worker.at
            done, status = os.waitpid(worker.pid, os.WNOHANG)
            slow = not done and began and time.monotonic() - began > SLOW
            if slow:
                os.kill(worker.pid, signal.SIGKILL)
                done, status = os.waitpid(worker.pid, 0)
            if not done:
                continue
            for finding in worker.findings():
                tell(finding)
            number, began, taken, refused = worker.at
            os.close(worker.reader)
            workers.remove(worker)
            tally.taken, tally.refused = tally.taken + taken, tally.refused + refused
            code = os.waitstatus_to_exitcode(status)
            if code == 0:
                continue
            case = Case(seed, kind, number)
            if slow:
                tell(Finding(case, f"took more than {SLOW:.0f} s", crash=True))
            else:
                how = f"ended by signal {-code}" if code < 0 else f"the worker left with {code}"
                tell(Finding(case, how, crash=True))
            if number + step < count:
                workers.append(_Worker(seed, kind, number + step, count, step))
    tally.cases = count
    return tally
