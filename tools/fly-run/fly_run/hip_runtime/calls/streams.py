"""Streams. Work is done when it is submitted, so there is never anything to wait for."""

from __future__ import annotations

import ctypes

from fly_run.hip_runtime.calls import events
from fly_run.hip_runtime.cells import get, put, put_int, put_size
from fly_run.hip_runtime.errors import Failure, need
from fly_run.hip_runtime.registered import function
from fly_run.hip_runtime.runtime import Runtime, Stream

LOWEST, HIGHEST = 1, -1  # priorities
NO_CAPTURE = 0  # hipStreamCaptureStatusNone
# Flags of hipStreamWaitValue…: how the value in memory is compared.
GREATER_OR_EQUAL, EQUAL, AND, NOR = range(4)


def _create(runtime: Runtime, stream: int, flags: int = 0, priority: int = 0) -> None:
    need(stream and flags in (0, 1), reason=f"flags {flags}")
    fields = {"device": runtime.device.ordinal, "flags": flags}
    priority = min(LOWEST, max(HIGHEST, priority))
    put_size(stream, runtime.keep(runtime.streams, Stream, **fields, priority=priority).handle)


@function
def hipStreamCreate(runtime: Runtime, stream: int) -> None:
    _create(runtime, stream)


@function
def hipStreamCreateWithFlags(runtime: Runtime, stream: int, flags: int) -> None:
    _create(runtime, stream, flags)


@function
def hipStreamCreateWithPriority(runtime: Runtime, stream: int, flags: int, priority: int) -> None:
    _create(runtime, stream, flags, priority)


@function
def hipStreamDestroy(runtime: Runtime, stream: int) -> None:
    need(stream not in (0, 1, 2), "hipErrorInvalidHandle", "a default stream")
    del runtime.streams[runtime.stream(stream).handle]


@function
def hipStreamSynchronize(runtime: Runtime, stream: int) -> None:
    runtime.stream(stream)
    runtime.report_fault()


@function
def hipStreamQuery(runtime: Runtime, stream: int) -> None:
    hipStreamSynchronize(runtime, stream)


@function
def hipStreamWaitEvent(runtime: Runtime, stream: int, event: int, flags: int) -> None:
    need(flags in (0, 1), reason=f"flags {flags}")
    runtime.stream(stream)
    events.find(runtime, event)


@function
def hipStreamGetFlags(runtime: Runtime, stream: int, flags: int) -> None:
    put_int(flags, runtime.stream(stream).flags)


@function
def hipStreamGetPriority(runtime: Runtime, stream: int, priority: int) -> None:
    put_int(priority, runtime.stream(stream).priority)


@function
def hipStreamGetDevice(runtime: Runtime, stream: int, device: int) -> None:
    put_int(device, runtime.stream(stream).device)


@function
def hipStreamAddCallback(
    runtime: Runtime, stream: int, callback: int, userData: int, flags: int
) -> None:
    need(callback and not flags, reason="no callback, or flags")
    runtime.stream(stream)
    called = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p)
    with runtime.unlocked():
        called(callback)(stream, 0, userData)


# -- capturing: not supported, and never active


@function
def hipStreamIsCapturing(runtime: Runtime, stream: int, pCaptureStatus: int) -> None:
    runtime.stream(stream)
    put_int(pCaptureStatus, NO_CAPTURE)


@function
def hipStreamGetCaptureInfo(runtime: Runtime, stream: int, pCaptureStatus: int, pId: int) -> None:
    hipStreamIsCapturing(runtime, stream, pCaptureStatus)
    if pId:
        put_size(pId, 0)


@function
def hipStreamGetCaptureInfo_v2(
    runtime: Runtime,
    stream: int,
    captureStatus_out: int,
    id_out: int,
    graph_out: int,
    dependencies_out: int,
    numDependencies_out: int,
) -> None:
    hipStreamGetCaptureInfo(runtime, stream, captureStatus_out, id_out)


@function
def hipStreamBeginCapture(runtime: Runtime, stream: int, mode: int) -> None:
    raise Failure("hipErrorNotSupported", "graphs")


@function
def hipStreamEndCapture(runtime: Runtime, stream: int, pGraph: int) -> None:
    raise Failure("hipErrorIllegalState", "the stream does not capture")


@function
def hipThreadExchangeStreamCaptureMode(runtime: Runtime, mode: int) -> None:
    chosen = get(mode, ctypes.c_int32)
    need(0 <= chosen <= 2, reason=f"mode {chosen}")
    put_int(mode, runtime.thread.capture_mode)
    runtime.thread.capture_mode = chosen


# -- values in memory


def _wait(runtime: Runtime, stream: int, kind: type, ptr: int, value: int, flags: int, mask: int):
    """Fails with hipErrorNotReady for a value that only later work could store: nothing runs that
    could do so."""
    runtime.stream(stream)
    found, value = get(ptr, kind) & mask, value & mask
    most = (1 << 8 * ctypes.sizeof(kind)) - 1
    true = {
        GREATER_OR_EQUAL: found >= value,
        EQUAL: found == value,
        AND: found & value,
        NOR: ~(found | value) & most,
    }
    need(flags in true, reason=f"flags {flags}")
    need(true[flags], "hipErrorNotReady", f"0x{found:x} is in memory")


@function
def hipStreamWaitValue32(
    runtime: Runtime, stream: int, ptr: int, value: int, flags: int, mask: int
) -> None:
    _wait(runtime, stream, ctypes.c_uint32, ptr, value, flags, mask)


@function
def hipStreamWaitValue64(
    runtime: Runtime, stream: int, ptr: int, value: int, flags: int, mask: int
) -> None:
    _wait(runtime, stream, ctypes.c_uint64, ptr, value, flags, mask)


@function
def hipStreamWriteValue32(runtime: Runtime, stream: int, ptr: int, value: int, flags: int) -> None:
    runtime.stream(stream)
    put(ptr, ctypes.c_uint32, value)


@function
def hipStreamWriteValue64(runtime: Runtime, stream: int, ptr: int, value: int, flags: int) -> None:
    runtime.stream(stream)
    put(ptr, ctypes.c_uint64, value)
