"""Streams and events.

A stream may also be given as others have it: an integer, or an object with the integer in
`cuda_stream`, as torch's have for CUDA and for HIP.
"""

from __future__ import annotations

import os
import weakref

from fly_common.errors import UsageError
from fly_common.quoting import quoted

from fly_run.devices.gpu.context import Context, undo

_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING, hipStreamNonBlocking


class GpuStream:
    """A stream of its own, which does not wait for the default stream."""

    def __init__(self, context: Context):
        self.context = context
        self.handle = context.handle_of("stream", _NON_BLOCKING)
        _destroyed(self, "destroy stream")


class GpuEvent:
    """An event that has been recorded."""

    def __init__(self, context: Context, stream: int):
        self.context = context
        self.handle = context.handle_of("event", 0)
        _destroyed(self, "destroy event")
        context.call("record", self.handle, stream or None)


def _destroyed(owner: GpuStream | GpuEvent, role: str) -> None:
    """The driver's object goes with ours."""
    calls = (role, owner.handle)
    finalizer = weakref.finalize(owner, undo, owner.context, os.getpid(), calls)
    finalizer.atexit = False


def handle_of(stream: object) -> int:
    """A stream's handle; 0, the default stream, for None. UsageError for what is no stream."""
    if stream is None:
        return 0
    if isinstance(stream, GpuStream):
        return stream.handle
    found = stream if type(stream) is int else getattr(stream, "cuda_stream", None)
    if not isinstance(found, int) or not 0 <= found < 1 << 64:
        raise UsageError(
            f"{quoted(stream)} is not a stream",
            hint="a stream is an integer, or an object with one in its attribute cuda_stream",
        )
    return found
