"""The worker of this process. It is started when something is compiled, answers one request at a
time, and ends with this process, or when nothing was asked for ten minutes.

`FLY_LLVM_WORKER=0` leaves everything to the programs.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
from collections.abc import Sequence

from fly_common.programs import process
from fly_common.programs.llvm_worker import requests
from fly_common.programs.process import FIRST, KILL, Deadline, Done, TimedOut

VARIABLE = "FLY_LLVM_WORKER"
_PROGRAM = os.path.join(os.path.dirname(__file__), "program.py")
_REQUEST, _REPLY = struct.Struct("<III"), struct.Struct("<II")

_lock = threading.Lock()  # held while the worker is started, and from a request to its reply
_worker: Worker | None = None
_unusable: set[str] = set()  # libraries that a worker could not load


class Lost(Exception):
    """The worker ended."""


class Worker:
    """A running worker. Raises OSError if it cannot be started."""

    def __init__(self, library: str) -> None:
        self.library, self.identity = library, _identity(library)
        self._is_ready = False
        # What it may be executing although nobody has asked for it: the request after the last one.
        self.ahead: tuple[str, ...] = ()
        handles: list[int] = []
        try:
            handles += os.pipe()
            handles += os.pipe()
            handles.append(os.open(os.devnull, os.O_WRONLY))
            if min(handles) < FIRST:
                raise OSError("a standard stream is closed")
            stdin, self.writer, self.reader, stdout, nothing = handles
            streams = enumerate((stdin, stdout, nothing))
            actions = [(os.POSIX_SPAWN_DUP2, handle, number) for number, handle in streams]
            words = [sys.executable, "-I", "-S", _PROGRAM, library]
            self.pid = os.posix_spawn(sys.executable, words, os.environ, file_actions=actions)
        except BaseException:
            for handle in handles:
                os.close(handle)
            raise
        for handle in (stdin, stdout, nothing):
            os.close(handle)
        os.set_blocking(self.writer, False)

    @property
    def was_ready(self) -> bool:
        """Whether a worker that has ended had been able to load the library."""
        if not self._is_ready:
            try:
                self._is_ready = bool(os.read(self.reader, 1))
            except OSError:
                return False
        return self._is_ready

    def serves(self, library: str) -> bool:
        """Whether it has loaded this library, and the file was not replaced since."""
        return self.library == library and self.identity == _identity(library)

    def send(self, turn: Turn, data: bytes, deadline: Deadline) -> None:
        """Sends a request. Raises Lost, or TimedOut if the worker does not read."""
        named, following = ("\0".join(one).encode() for one in (turn.request, turn.following))
        header = _REQUEST.pack(len(named), len(following), len(data))
        try:
            process.write_all(self.writer, header + named + following + data, deadline)
        except BrokenPipeError:
            raise Lost from None

    def receive(self, deadline: Deadline) -> bytes | None:
        """Returns the result, or None for everything but plain success. Raises Lost or TimedOut."""
        if not self._is_ready:
            self._read(1, deadline)
            self._is_ready = True
        done, size = _REPLY.unpack(self._read(_REPLY.size, deadline))
        made = self._read(size, deadline)
        return made if done else None

    def _read(self, count: int, deadline: Deadline) -> bytes:
        from select import POLLIN

        parts = []
        while count:
            deadline.wait_for(self.reader, POLLIN)
            part = os.read(self.reader, count)
            if not part:
                raise Lost
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Closes the pipes. The worker then reaches the end of its input, and exits."""
        os.close(self.writer)
        os.close(self.reader)

    def kill(self) -> None:
        """Ends it, whatever it is doing."""
        self.close()
        try:
            os.kill(self.pid, KILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):  # SIGCHLD is ignored, or it was reaped
            pass


class Turn:
    """A command line that the worker will execute, once its input exists. It takes the place of a
    program that was started ahead (`process.Waiting`). `following` is the request for its result,
    if that is known: the worker executes it without being asked."""

    def __init__(self, program: str, arguments: Sequence[str], request: tuple[str, ...]) -> None:
        self.program, self.arguments, self.request = program, arguments, request
        self.following: tuple[str, ...] = ()

    def precede(self, other: Turn) -> None:
        """Lets the worker execute `other` with this one's result."""
        if requests.library_of(self.program) == requests.library_of(other.program):
            self.following = other.request

    def feed(self, data: bytes) -> Request | process.Running:
        if not _lock.acquire(blocking=False):  # another thread's request is being executed
            return process.start(self.program, self.arguments, data)
        try:
            worker = _serving(self.program)
            if worker is not None:
                deadline = Deadline(self.request[0])
                is_behind = worker.ahead not in ((), self.request)
                try:
                    worker.send(self, data, deadline)
                except TimedOut:
                    if not is_behind:
                        raise
                    _end()
                else:
                    worker.ahead = self.following
                    return Request(self, worker, data, deadline, is_behind)
        except Lost:
            _lose()
        except BaseException:
            _end()
            _lock.release()
            raise
        _lock.release()
        return process.start(self.program, self.arguments, data)

    def end(self) -> None:
        pass

    def abandon(self) -> None:
        pass


class Request:
    """A request that is being executed: what `process.Running` is for a program. Its time limit
    counts from the moment at which it was sent. `is_behind` one that was executed without being
    asked for, and may be what takes too long."""

    def __init__(
        self, turn: Turn, worker: Worker, data: bytes, deadline: Deadline, is_behind: bool
    ) -> None:
        self.program = turn.program
        self._turn, self._data, self._deadline = turn, data, deadline
        self._is_behind = is_behind
        self._worker: Worker | None = worker

    def wait(self) -> Done:
        """Returns the result. Raises TimedOut."""
        worker, self._worker = self._worker, None
        assert worker is not None
        try:
            made = worker.receive(self._deadline)
        except Lost:
            _lose()
            made = None
        except BaseException as error:  # TimedOut, or an interrupt: nobody will read its reply
            _end()
            if not (isinstance(error, TimedOut) and self._is_behind):
                raise
            made = None
        finally:
            _lock.release()
        if made is not None:
            return Done(0, made, b"")
        return process.run(self.program, self._turn.arguments, self._data)

    def end(self) -> None:
        """Ends the worker if it is executing the request."""
        if self._worker is not None:
            self._worker = None
            _end()
            _lock.release()


def reserve(program: str, arguments: Sequence[str]) -> Turn | None:
    """Starts the worker, if this command line is for it and it does not run yet. Returns None if
    the program has to be started."""
    request = requests.of(program, arguments)
    if request is None or os.environ.get(VARIABLE) == "0" or not _is_python(sys.executable):
        return None
    if _lock.acquire(blocking=False):
        try:
            if _serving(program) is None:
                return None
        finally:
            _lock.release()
    return Turn(program, arguments, request)


def _serving(program: str) -> Worker | None:
    """Returns the worker for a program's library, started if need be. To be called with the lock
    held."""
    global _worker
    library = requests.library_of(program)
    if library is None or library in _unusable:
        return None
    try:
        if _worker is not None and not _worker.serves(library):
            _end()
        if _worker is None:
            _worker = Worker(library)
    except OSError:
        return None
    return _worker


def _lose() -> None:
    """Forgets a worker that has ended. One that could not load its library is not tried again. To
    be called with the lock held."""
    if _worker is not None and not _worker.was_ready:
        _unusable.add(_worker.library)
    _end()


def _end() -> None:
    """Ends the worker. To be called with the lock held."""
    global _worker
    worker, _worker = _worker, None
    if worker is not None:
        worker.kill()


def _after_fork() -> None:
    """Closes the pipes in a forked child. The worker remains the parent's."""
    global _worker, _lock
    worker, _worker = _worker, None
    _lock = threading.Lock()
    if worker is not None:
        worker.close()


def _identity(library: str) -> tuple[int, ...]:
    status = os.stat(library)
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _is_python(executable: str | None) -> bool:
    """Whether it is a Python interpreter, and not an application with one in it."""
    return os.path.basename(executable or "").startswith("python")


os.register_at_fork(after_in_child=_after_fork)
