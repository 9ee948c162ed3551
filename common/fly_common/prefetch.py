"""Programs started ahead of their input, so that they load while the stages before them work.

LLVM's programs take 15 ms each to load their library, on a processor that else would idle. Who
knows what will be run says so, and whoever runs exactly that finds it waiting:

    with prefetch.Programs() as programs:
        programs.start([("/usr/lib/llvm-22/bin/llc", ["-mcpu=gfx942", …]), …])
        …
        toolchain.run_program("llc", ["-mcpu=gfx942", …], data)

A program that nobody came to use is killed at the end of the block: it has read nothing and done
nothing. What a program makes can't differ, only when it was started.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence

from fly_common import process
from fly_common.process import Done, Running, Waiting

Command = tuple[str, Sequence[str]]  # the path of a program, its arguments
_Key = tuple[str, tuple[str, ...]]


class _Here(threading.local):
    """The programs that wait for this thread."""

    def __init__(self) -> None:
        self.waiting: dict[_Key, list[Waiting]] = {}


_here = _Here()
_everywhere: set[Waiting] = set()  # those of all threads


def _after_fork() -> None:
    """A forked child has its parent's pipes. It lets go of them, or the parent's programs would
    wait for the child to end too."""
    for waiting in _everywhere:
        os.close(waiting.writer)
    _everywhere.clear()
    _here.waiting.clear()


os.register_at_fork(after_in_child=_after_fork)


class Programs:
    """Programs that were started in one block."""

    def __init__(self) -> None:
        self._mine: list[tuple[_Key, Waiting]] = []

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self, commands: Iterable[Command]) -> None:
        """Starts them. One that can't be started is left to who runs it, to say why."""
        for program, arguments in commands:
            key = (program, tuple(arguments))
            try:
                waiting = Waiting(program, arguments)
            except OSError:
                continue
            _everywhere.add(waiting)
            _here.waiting.setdefault(key, []).append(waiting)
            self._mine.append((key, waiting))

    def kill(self) -> None:
        """Ends those that nobody has taken."""
        for key, waiting in self._mine:
            left = _here.waiting.get(key, [])
            if waiting in left:
                left.remove(waiting)
                _everywhere.discard(waiting)
                waiting.end()


def start(program: str, arguments: Sequence[str], data: bytes) -> Running:
    """Starts a program with `data` on its standard input, or takes the one that waits."""
    left = _here.waiting.get((program, tuple(arguments)))
    if not left:
        return process.start(program, arguments, data)
    waiting = left.pop()
    try:
        return waiting.feed(data)
    finally:
        _everywhere.discard(waiting)


def run(program: str, arguments: Sequence[str], data: bytes) -> Done:
    """Such a program to its end."""
    return start(program, arguments, data).wait()
