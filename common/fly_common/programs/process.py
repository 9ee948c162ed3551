"""Runs programs to their end, bytes in and bytes out: `subprocess` without its import time.

A program's output goes to files in memory. There are no pipes to read while it runs, so there is no
deadlock to avoid, and no thread. Its standard input is such a file too, or a pipe for a program
that is started before its input exists (`Waiting`). The module exists because each run of a tool
starts a program, and `subprocess` takes 10 ms to import.

Waiting is always bounded by `time_limit()`, which `FLY_TIMEOUT` or a tool's `--timeout` sets.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextvars import ContextVar

from fly_common.errors import InputError, UsageError
from fly_common.record import record

FIRST = 3  # the first descriptor after the standard streams
KILL = 9  # SIGKILL; importing signal takes 1 ms
TIME_LIMIT = 300.0  # the default time limit, in seconds
LONGEST = 1e6  # the greatest time limit, in seconds
_chosen: ContextVar[float | None] = ContextVar("time limit", default=None)


class TimedOut(InputError):
    """A program that did not end within `seconds`, and was killed."""

    def __init__(self, program: str, seconds: float):
        super().__init__(
            f"{os.path.basename(program)} did not finish within {seconds:g} s and was killed",
            hint="either the input makes it run forever, or it needs more time: set"
            " FLY_TIMEOUT=SECONDS (or --timeout, if the tool has it)",
        )
        self.seconds = seconds


def time_limit() -> float:
    """Returns the time limit for a program, in seconds: that of `limited`, or `FLY_TIMEOUT`, or
    300. Raises UsageError if the variable is invalid."""
    if (chosen := _chosen.get()) is not None:
        return chosen
    text = os.environ.get("FLY_TIMEOUT", "").strip()
    if not text:
        return TIME_LIMIT
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    return check_limit(seconds, f"FLY_TIMEOUT={text}")


def check_limit(seconds: float, given: str) -> float:
    """Returns `seconds` if it is a valid limit. Otherwise raises UsageError with `given`."""
    if not 0 < seconds <= LONGEST:
        from fly_common.quoting import shortened

        raise UsageError(
            f"{shortened(given)}: must be a number of seconds above 0 and at most {LONGEST:.0f}"
        )
    return seconds


class limited:
    """`with limited(seconds):` sets the time limit of programs. None keeps the current limit."""

    def __init__(self, seconds: float | None):
        self.seconds = seconds

    def __enter__(self) -> None:
        chosen = _chosen.get() if self.seconds is None else self.seconds
        self._before = _chosen.set(chosen)

    def __exit__(self, *_: object) -> None:
        _chosen.reset(self._before)


@record
class Done:
    """`returncode` is the exit status, or minus the signal that ended it."""

    returncode: int
    stdout: bytes
    stderr: bytes


class Running:
    """A program that was started. The caller must call `wait` or `end`."""

    def __init__(self, program: str, pid: int, output: int, errors: int):
        self.program = program
        self._pid: int | None = pid
        self._streams = (output, errors)

    def wait(self) -> Done:
        """Waits for the program's end and returns its result. Raises TimedOut, an InputError, after
        `time_limit()` from this call."""
        assert self._pid is not None
        try:
            limit = time_limit()
            if not _ends_within(self._pid, limit):
                raise TimedOut(self.program, limit)
            try:
                status = os.waitpid(self._pid, 0)[1]
            except ChildProcessError:  # SIGCHLD is ignored, so the status is lost
                status = 0
            self._pid = None
            written = [os.pread(one, os.fstat(one).st_size, 0) for one in self._streams]
        finally:
            self.end()  # after an interrupt, which the program may not have received
        return Done(os.waitstatus_to_exitcode(status), *written)

    def end(self) -> None:
        """Kills the program if it is still running."""
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

    It inherits only the descriptors `pass_fds`. Raises OSError if it cannot be run, or if there is
    no memory for its input and output.
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
        # A descriptor that is duplicated onto itself stays open.
        kept = [(os.POSIX_SPAWN_DUP2, handle, handle) for handle in pass_fds]
        actions = [*streams, *kept]
        pid = os.posix_spawn(program, [program, *arguments], os.environ, file_actions=actions)
    except BaseException:
        for handle in handles[1:]:
            os.close(handle)
        raise
    return Running(program, pid, handles[1], handles[2])


def _ends_within(pid: int, seconds: float) -> bool:
    """Waits for the end of a child, without reaping it."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:  # SIGCHLD is ignored, and the child has ended
        return True
    except OSError:  # a sandbox without this system call
        return _polled(pid, seconds)
    try:
        from select import POLLIN, poll

        waiting = poll()
        waiting.register(handle, POLLIN)
        return bool(waiting.poll(seconds * 1000))
    finally:
        os.close(handle)


def _polled(pid: int, seconds: float) -> bool:
    """The same by polling."""
    import time

    end = time.monotonic() + seconds
    pause = 0.0005
    try:
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() >= end:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
    except ChildProcessError:
        pass  # SIGCHLD is ignored, and the child has ended
    return True


def run(
    program: str, arguments: Sequence[str], data: bytes = b"", pass_fds: Sequence[int] = ()
) -> Done:
    """Starts a program and waits for its end."""
    return start(program, arguments, data, pass_fds).wait()


class Waiting:
    """A program that was started before its input exists, and waits for it. The constructor raises
    OSError if it cannot be run. The caller must call `feed` or `end`."""

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
        """Writes its input; it then runs like any other. Raises TimedOut if it does not read."""
        try:
            os.set_blocking(self.writer, False)
            write_all(self.writer, data, Deadline(self._running.program))
        except BrokenPipeError:
            pass  # it ended before it had read everything; its status says why
        except BaseException:
            self.end()
            raise
        os.close(self.writer)
        return self._running

    def abandon(self) -> None:
        """Closes its standard input, in a forked child of the process that started it."""
        os.close(self.writer)

    def end(self) -> None:
        """Kills it without input."""
        os.close(self.writer)
        self._running.end()


class Deadline:
    """When a program has to have answered: `time_limit()` from here."""

    def __init__(self, program: str) -> None:
        import time

        self.program, self.limit = program, time_limit()
        self._clock = time.monotonic
        self._end = self._clock() + self.limit

    def wait_for(self, handle: int, events: int) -> None:
        """Waits until a descriptor is ready for `events` of `select.poll`. Raises TimedOut at the
        deadline, if it is not ready then."""
        from select import poll

        waiting = poll()
        waiting.register(handle, events)
        if not waiting.poll(max(0.0, self._end - self._clock()) * 1000):
            raise TimedOut(self.program, self.limit)


def write_all(handle: int, data: bytes, deadline: Deadline) -> None:
    """Writes `data` to a non-blocking pipe that a program reads. Raises BrokenPipeError if it has
    ended, and TimedOut if it has not read everything by the deadline."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(handle, view) :]
        except BlockingIOError:
            from select import POLLOUT

            deadline.wait_for(handle, POLLOUT)


def in_memory(data: bytes = b"") -> int:
    """Returns the descriptor of a file in memory that holds `data`, positioned at its start.
    Programs that are started do not inherit it."""
    handle = os.memfd_create("data")
    if handle < FIRST:
        # A standard stream is closed, and a program would use the file as that stream.
        import fcntl

        handle, closed = fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, FIRST), handle
        os.close(closed)
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    os.lseek(handle, 0, os.SEEK_SET)
    return handle
