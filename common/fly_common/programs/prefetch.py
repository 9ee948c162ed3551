"""Starts programs before their input exists, so that they load while earlier stages run.

LLVM's programs take 15 ms each to load their library, on a processor that would otherwise be idle.
The expected commands are started in advance, and a run of exactly the same command uses the waiting
program:

    with prefetch.Programs() as programs:
        programs.start([("/usr/lib/llvm-22/bin/llc", ["-mcpu=gfx942", …]), …])
        …
        toolchain.run_program("llc", ["-mcpu=gfx942", …], data)

An unused program is killed at the end of the block; it has read and done nothing. The plain command
lines of `opt` and `llc` are executed by the worker (`llvm_worker`), if it can be started. The
results are the same with and without this module.

While a program runs, this process is idle. Work that nothing waits for, such as writing a result to
the store, is postponed until then:

    with prefetch.postponing():
        prefetch.postpone(work)
        …
        toolchain.run_program("llc", ["-mcpu=gfx942", …], data)  # and work()
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from fly_common.programs import process
from fly_common.programs.llvm_worker import client
from fly_common.programs.process import Done, Running, Waiting

Command = tuple[str, Sequence[str]]  # the path of a program, and its arguments
_Key = tuple[str, tuple[str, ...]]


class _Local(threading.local):
    """The programs that wait for this thread, and its postponed work; None outside `postponing`."""

    def __init__(self) -> None:
        self.waiting: dict[_Key, list[Waiting | client.Turn]] = {}
        self.postponed: list[Callable[[], object]] | None = None


_local = _Local()
_all_waiting: set[Waiting | client.Turn] = set()  # the programs of all threads


def _after_fork() -> None:
    """Closes the parent's pipes in a forked child. Otherwise the parent's programs would not see
    the end of their input before the child exits. Postponed work is the parent's."""
    for waiting in _all_waiting:
        waiting.abandon()
    _all_waiting.clear()
    _local.waiting.clear()
    _local.postponed = None


os.register_at_fork(after_in_child=_after_fork)


class Programs:
    """The programs started in one block."""

    def __init__(self) -> None:
        self._mine: list[tuple[_Key, Waiting | client.Turn]] = []

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self, commands: Iterable[Command | None]) -> None:
        """Starts programs. If one cannot be started, the error is left to the code that runs it.
        Each reads what the one before it makes, which the worker then does without being asked.
        None stands for a step between two of them."""
        before: Waiting | client.Turn | None = None
        for command in commands:
            if command is None:
                before = None
                continue
            program, arguments = command
            key = (program, tuple(arguments))
            try:
                waiting = client.reserve(program, arguments) or Waiting(program, arguments)
            except OSError:
                before = None
                continue
            if isinstance(before, client.Turn) and isinstance(waiting, client.Turn):
                before.precede(waiting)
            before = waiting
            _all_waiting.add(waiting)
            _local.waiting.setdefault(key, []).append(waiting)
            self._mine.append((key, waiting))

    def kill(self) -> None:
        """Kills the programs that were not used."""
        for key, waiting in self._mine:
            left = _local.waiting.get(key, [])
            if waiting in left:
                left.remove(waiting)
                _all_waiting.discard(waiting)
                waiting.end()


@contextmanager
def postponing() -> Iterator[None]:
    """What is postponed in the block is done when a program has been started, at the latest at the
    end of the block, however that is left."""
    outer, _local.postponed = _local.postponed, []
    try:
        yield
    finally:
        try:
            do_postponed()
        finally:
            _local.postponed = outer


def postpone(work: Callable[[], object]) -> None:
    """Does `work` later within the block of `postponing`, or now if there is none."""
    if _local.postponed is None:
        work()
    else:
        _local.postponed.append(work)


def do_postponed() -> None:
    """Does what this thread has postponed."""
    while _local.postponed:
        _local.postponed.pop(0)()


def start(program: str, arguments: Sequence[str], data: bytes) -> Running | client.Request:
    """Starts a program with `data` on its standard input, or uses the waiting one. Then does what
    was postponed."""
    running = _start(program, arguments, data)
    try:
        do_postponed()
    except BaseException:
        running.end()
        raise
    return running


def _start(program: str, arguments: Sequence[str], data: bytes) -> Running | client.Request:
    left = _local.waiting.get((program, tuple(arguments)))
    if not left:
        return process.start(program, arguments, data)
    waiting = left.pop()
    try:
        return waiting.feed(data)
    finally:
        _all_waiting.discard(waiting)


def run(program: str, arguments: Sequence[str], data: bytes) -> Done:
    """Starts such a program and waits for its end."""
    return start(program, arguments, data).wait()
