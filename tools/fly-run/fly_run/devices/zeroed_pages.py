"""Zeroed memory of the host, for devices whose memory is the host's."""

from __future__ import annotations

import ctypes
import mmap

from fly_common.errors import MissingError


def allocate(nbytes: int) -> tuple[mmap.mmap, int]:
    """Returns memory of at least one byte, and its address. It lives until it is closed.
    MissingError if there is not so much."""
    try:
        memory = mmap.mmap(-1, max(1, nbytes), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError, ValueError):
        raise MissingError(f"there is no memory for {nbytes} more bytes") from None
    return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))
