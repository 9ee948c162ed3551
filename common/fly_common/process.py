"""Programs run to their end, bytes in and bytes out: `subprocess` without its 10 ms.

What a program prints goes to files in memory. So nothing has to be pumped through pipes while it
runs: there is no deadlock to avoid, and no thread or poll needed. Its standard input is such a file
too, or, for a program that is started before its input is there (`Waiting`), a pipe.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from fly_common.record import record

FIRST = 3  # the first descriptor that is no standard stream's
KILL = 9  # SIGKILL; the module signal takes 1 ms


@record
class Done:
    """`returncode` is the exit status, or where a signal ended it, minus that."""

    returncode: int
    stdout: bytes
    stderr: bytes


class Running:
    """A program that was started. It has to be waited for, or ended."""

    def __init__(self, pid: int, output: int, errors: int):
        self._pid: int | None = pid
        self._streams = (output, errors)

    def wait(self) -> Done:
        """What it did, once it has ended."""
        assert self._pid is not None
        try:
            try:
                status = os.waitpid(self._pid, 0)[1]
            except ChildProcessError:  # SIGCHLD is ignored here, and how it ended is lost
                status = 0
            self._pid = None
            written = [os.pread(one, os.fstat(one).st_size, 0) for one in self._streams]
        finally:
            self.end()  # after an interrupt, which it may not have got
        return Done(os.waitstatus_to_exitcode(status), *written)

    def end(self) -> None:
        """Ends it where it has not ended yet; nobody wants to know what it did."""
        if self._pid is not None:
            os.kill(self._pid, KILL)
            os.waitpid(self._pid, 0)
            self._pid = None
        for stream in self._streams:
            os.close(stream)
        self._streams = ()


def start(
    program: str, arguments: Sequence[str], data: bytes = b"", pass_fds: Sequence[int] = ()
) -> Running:
    """Starts `program`, a path, with `data` on its standard input.

    It inherits the descriptors `pass_fds` and no others. OSError where it can't be run or there is
    no memory for what it reads and writes.
    """
    stdin = in_memory(data)
    try:
        return _spawn(program, arguments, stdin, pass_fds)
    finally:
        os.close(stdin)


def _spawn(
    program: str, arguments: Sequence[str], stdin: int, pass_fds: Sequence[int] = ()
) -> Running:
    handles = [stdin]
    try:
        handles += in_memory(), in_memory()
        streams = [(os.POSIX_SPAWN_DUP2, handle, number) for number, handle in enumerate(handles)]
        # A descriptor put upon itself is one that stays open.
        kept = [(os.POSIX_SPAWN_DUP2, handle, handle) for handle in pass_fds]
        actions = [*streams, *kept]
        pid = os.posix_spawn(program, [program, *arguments], os.environ, file_actions=actions)
    except BaseException:
        for handle in handles[1:]:
            os.close(handle)
        raise
    return Running(pid, handles[1], handles[2])


def run(
    program: str, arguments: Sequence[str], data: bytes = b"", pass_fds: Sequence[int] = ()
) -> Done:
    """Starts a program and waits for its end."""
    return start(program, arguments, data, pass_fds).wait()


class Waiting:
    """A program that was started before its input was there, and waits for it. OSError where it
    can't be run. It has to be fed, or ended."""

    def __init__(self, program: str, arguments: Sequence[str]) -> None:
        reader, self.writer = os.pipe()
        try:
            if min(reader, self.writer) < FIRST:
                raise OSError("a standard stream is closed")
            self._running = _spawn(program, arguments, reader)
        except BaseException:
            os.close(self.writer)
            raise
        finally:
            os.close(reader)

    def feed(self, data: bytes) -> Running:
        """Gives it its input: now it runs as any other."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self.writer, view) :]
        except BrokenPipeError:
            pass  # it ended before it had read everything; its status says why
        except BaseException:
            self.end()
            raise
        os.close(self.writer)
        return self._running

    def end(self) -> None:
        """Ends it without input."""
        os.close(self.writer)
        self._running.end()


def in_memory(data: bytes = b"") -> int:
    """The descriptor of a file that exists only in memory and holds `data`, to be read from its
    beginning. It is closed in programs that are started."""
    handle = os.memfd_create("data")
    if handle < FIRST:
        # A standard stream is closed, and a program would take the file for that stream.
        import fcntl

        handle, closed = fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, FIRST), handle
        os.close(closed)
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    os.lseek(handle, 0, os.SEEK_SET)
    return handle
