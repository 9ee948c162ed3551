"""Work of a tool that may crash its process, in a process of its own.

MLIR's and LLVM's C++ can end the process: by a null pointer where the verifier lets something
through, by an assertion, by the end of the stack. A filter has to end with an error of its own
all the same. So before such code is loaded the process divides:

    isolate("MLIR", name)     # goes on in a child; the parent waits

The child is the tool from there on: it writes the output, says the errors, and its exit status
becomes the parent's. The parent comes back from the call only if the child was ended by a signal,
and then by raising `Crash`, before which nothing was written. It takes 0.6 ms, because the process
is still small.

Only command lines do this. A library must not fork the application that it is part of, which may
have threads, devices and gigabytes: what can be judged is judged before C++ sees it, and MLIR that
is traced is no foreign input.

Not handled: a crash after the output was written, for which see `leave`; a stop (SIGSTOP) of the
parent alone, which the child does not notice. With `FLY_DEBUG=1` the process does not divide, so
that a debugger sees the crash where it happens.
"""

from __future__ import annotations

import os
import sys

from fly_common.errors import InputError, MissingError, Place

_KILL = 9  # SIGKILL; the module signal takes 1 ms
_LONGEST_REASON = 200  # characters of what C++ said that are quoted

_status: int | None = None  # in the child: where its exit status goes


class Crash(InputError):
    """A signal ended the child. `signal` is its number, 0 where that is lost."""

    def __init__(self, what: str, name: str, signal: int, said: str):
        reason = _telling(said)
        how = f" (signal {signal})" if signal else ""
        super().__init__(
            f"{what} crashed on this input{how}" + (f": {reason}" if reason else ""),
            place=Place(name),
            hint="the input is damaged, or this is a bug in "
            f"{what}; set FLY_DEBUG=1 to debug the crash",
        )
        self.signal = signal


def isolate(what: str, name: str) -> None:
    """Goes on in a child process. Raises Crash in the parent where a signal ended the child, and
    MissingError where it was killed from outside. `what` is whose code may crash, `name` the input
    in messages. Nothing happens in a process that is no tool's (`filter.run`)."""
    from fly_common import filter

    global _status
    divided = _status is not None
    if divided or not filter.is_process or os.environ.get("FLY_DEBUG", "") not in ("", "0"):
        return
    from fly_common import process

    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    words = process.in_memory()  # what C++ says on standard error
    status, told = os.pipe()
    alive, parent = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(status)
        os.close(parent)
        _end_with_parent(alive)
        _divert_errors(words)
        _status = told
        return
    os.close(told)
    os.close(alive)
    try:
        code = os.read(status, 1)
        how = _wait(child)
    except BaseException:
        os.kill(child, _KILL)
        _wait(child)
        raise
    finally:
        os.close(status)
        os.close(parent)
    said = os.pread(words, os.fstat(words).st_size, 0)
    os.close(words)
    if code:
        _pass_on(said)
        os._exit(code[0])
    if how == -_KILL:
        raise MissingError(
            f"{what} was killed (signal 9)",
            hint="it probably ran out of memory: free some, or split",
        )
    raise Crash(what, name, -how, said.decode(errors="replace"))


def leave(code: int) -> None:
    """Ends the process if it is an isolated child, and its parent with it, by the status `code`.
    Streams must be flushed. Nothing is torn down: C++ could crash even then."""
    if _status is not None:
        os.write(_status, bytes([code & 0xFF]))
        os._exit(code & 0xFF)


def _wait(child: int) -> int:
    """How the child ended: its status, or minus the signal. 0 where that is lost, because SIGCHLD
    is ignored here."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except ChildProcessError:
        return 0


def _end_with_parent(alive: int) -> None:
    """Lets the system end the child when the parent goes, whose end of the pipe `alive` closes
    then. The signal is SIGIO, whose default is to end a process."""
    import fcntl

    try:
        fcntl.fcntl(alive, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(alive, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        if os.read(alive, 1) == b"":  # it is gone already
            os._exit(1)
    except (AttributeError, OSError):
        pass  # nothing to read, or a system without such signals: the child then ends by itself


def _divert_errors(words: int) -> None:
    """Lets C++'s standard error go to the file `words`; Python's stays where it was. A process
    that may crash leaves no core file."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.stderr is None:
        return
    try:
        kept = os.dup(2)
    except OSError:
        return
    sys.stderr = open(kept, "w", errors="backslashreplace", buffering=1)  # noqa: SIM115
    os.dup2(words, 2)
    os.close(words)


def _pass_on(said: bytes) -> None:
    try:
        os.write(2, said)
    except OSError:
        return  # standard error is closed


def _telling(said: str) -> str:
    """The line of C++'s last words that says most: an error, an assertion, else the first one."""
    lines = [" ".join(line.split()) for line in said.splitlines() if line.strip()]
    signs = ("error:", "LLVM ERROR", "Assertion", "UNREACHABLE")
    told = [line for line in lines if any(sign in line for sign in signs)]
    line = next(iter([*told, *lines]), "")
    line = "".join(
        char if char.isprintable() else "?" for char in line.partition("error: ")[2] or line
    )
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 1] + "…"
