"""Programs run to their end, bytes in and bytes out: `subprocess` without its 10 ms.

A program's standard streams are files in memory. So nothing has to be pumped through pipes while it
runs: there is no deadlock to avoid, and no thread or poll needed.
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


def run(
    program: str, arguments: Sequence[str], data: bytes = b"", pass_fds: Sequence[int] = ()
) -> Done:
    """Runs `program`, a path, with `data` on its standard input.

    It inherits the descriptors `pass_fds` and no others. OSError where it can't be run or there is
    no memory for what it reads or writes.
    """
    handles = [in_memory(data), in_memory(), in_memory()]
    try:
        streams = [(os.POSIX_SPAWN_DUP2, handle, number) for number, handle in enumerate(handles)]
        # A descriptor put upon itself is one that stays open.
        kept = [(os.POSIX_SPAWN_DUP2, handle, handle) for handle in pass_fds]
        pid = os.posix_spawn(
            program, [program, *arguments], os.environ, file_actions=[*streams, *kept]
        )
        try:
            status = os.waitpid(pid, 0)[1]
        except BaseException:  # an interrupt: the program may not have got it
            os.kill(pid, KILL)
            os.waitpid(pid, 0)
            raise
        written = [os.pread(handle, os.fstat(handle).st_size, 0) for handle in handles[1:]]
        return Done(os.waitstatus_to_exitcode(status), *written)
    finally:
        for handle in handles:
            os.close(handle)


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
