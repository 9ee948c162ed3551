"""Runs a tool's work in a child process if it may crash.

MLIR's and LLVM's C++ can end the process: by a null pointer that the verifier did not catch, an
assertion, or a stack overflow. A filter must still end with an error of its own. Therefore the
process forks before such code is loaded:

    isolate("MLIR", name)     # continues in a child; the parent waits

From then on the child is the tool: it writes the output and the errors, and its exit status becomes
the parent's. In the parent the call only returns if a signal ended the child; it then raises
`Crash`, and no output was written. A fork takes 0.6 ms, because the process is still small.

Only command lines do this. A library must not fork its application, which may have threads, devices
and gigabytes of memory. There, inputs are checked before they reach C++, and traced MLIR is not
foreign input.

Not handled: a crash after the output was written (see `leave`), and a stop (SIGSTOP) of only the
parent, which the child does not notice. With `FLY_DEBUG=1` the process does not fork, so that a
debugger sees the crash.
"""

from __future__ import annotations

import os
import sys

from fly_common.errors import InputError, MissingError, Place

_KILL = 9  # SIGKILL; importing signal takes 1 ms
_LONGEST_REASON = 200  # characters quoted of the C++ error message

_status: int | None = None  # in the child: the pipe for its exit status


class Crash(InputError):
    """A signal ended the child. `signal` is its number, or 0 if unknown."""

    def __init__(self, what: str, name: str, signal: int, message: str):
        reason = _most_informative_line(message)
        how = f" (signal {signal})" if signal else ""
        super().__init__(
            f"{what} crashed on this input{how}" + (f": {reason}" if reason else ""),
            place=Place(name),
            hint="the input is damaged, or this is a bug in "
            f"{what}; set FLY_DEBUG=1 to debug the crash",
        )
        self.signal = signal


def isolate(what: str, name: str) -> None:
    """Continues in a child process. In the parent, raises Crash if a signal ended the child, and
    MissingError if it was killed from outside. `what` is the code that may crash, `name` the input
    in messages. Does nothing in a process that is not a tool's (`filter.run`)."""
    from fly_common import filter

    global _status
    divided = _status is not None
    if divided or not filter.is_process or os.environ.get("FLY_DEBUG", "") not in ("", "0"):
        return
    from fly_common.programs import process

    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    words = process.in_memory()  # what C++ writes to standard error
    status, told = os.pipe()
    alive, parent = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(status)
        os.close(parent)
        _end_with_parent(alive)
        _redirect_errors(words)
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
    message = os.pread(words, os.fstat(words).st_size, 0)
    os.close(words)
    if code:
        _pass_on(message)
        os._exit(code[0])
    if how == -_KILL:
        raise MissingError(
            f"{what} was killed (signal 9)",
            hint="it probably ran out of memory: free some, or split",
        )
    raise Crash(what, name, -how, message.decode(errors="replace"))


def leave(code: int) -> None:
    """Exits the process if it is an isolated child; its parent exits with the status `code`.
    Streams must be flushed. Skips cleanup, because C++ could crash during it."""
    if _status is not None:
        os.write(_status, bytes([code & 0xFF]))
        os._exit(code & 0xFF)


def _wait(child: int) -> int:
    """Returns the child's exit status, or minus the signal; 0 if SIGCHLD is ignored."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except ChildProcessError:
        return 0


def _end_with_parent(alive: int) -> None:
    """Makes the system end the child when the parent exits, which closes the parent's end of the
    pipe `alive`. The signal is SIGIO, which ends a process by default."""
    import fcntl

    try:
        fcntl.fcntl(alive, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(alive, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        if os.read(alive, 1) == b"":  # the parent has already exited
            os._exit(1)
    except (AttributeError, OSError):
        pass  # nothing to read, or no such signals: then the child ends later by itself


def _redirect_errors(words: int) -> None:
    """Redirects the standard error of C++ to the file `words`; Python's is unchanged. Also disables
    core files, because a crash is expected."""
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


def _pass_on(message: bytes) -> None:
    try:
        os.write(2, message)
    except OSError:
        return  # standard error is closed


def _most_informative_line(message: str) -> str:
    """Returns the most informative line of the C++ error output, or the first line."""
    lines = [" ".join(line.split()) for line in message.splitlines() if line.strip()]
    signs = ("error:", "LLVM ERROR", "Assertion", "UNREACHABLE")
    told = [line for line in lines if any(sign in line for sign in signs)]
    line = next(iter([*told, *lines]), "")
    line = "".join(
        char if char.isprintable() else "?" for char in line.partition("error: ")[2] or line
    )
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 1] + "…"
