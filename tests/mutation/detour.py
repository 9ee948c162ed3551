"""Replaces a loaded function by another: overwrites its first bytes by a jump.

Code that was encoded before has the old function's address, and is redirected too. This is done in
a forked child, for that child only.
"""

from __future__ import annotations

import ctypes
import mmap
import os

READ_WRITE_EXECUTE = 7  # PROT_READ | PROT_WRITE | PROT_EXEC, of mman.h


def redirect(function: int, other: int) -> None:
    """Redirects a function, by host addresses. Functions start at multiples of 16, so there is room
    for 12 bytes; rax holds no argument. OSError if the memory can't be made writable."""
    # movabs rax, other; jmp rax
    jump = b"\x48\xb8" + other.to_bytes(8, "little") + b"\xff\xe0"
    start = function & -mmap.PAGESIZE
    length = function + len(jump) - start
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(length), READ_WRITE_EXECUTE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    ctypes.memmove(function, jump, len(jump))
