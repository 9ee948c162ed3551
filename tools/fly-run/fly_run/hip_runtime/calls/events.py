"""Events: points in time, by the host's clock. All work before one is done when it is recorded."""

from __future__ import annotations

import ctypes
import time

from fly_run.hip_runtime.cells import put, put_size
from fly_run.hip_runtime.errors import need
from fly_run.hip_runtime.registered import function
from fly_run.hip_runtime.runtime import Event, Runtime

DISABLE_TIMING = 2
# hipEventBlockingSync, DisableTiming, Interprocess, DisableSystemFence, ReleaseToDevice, …System
FLAGS = 0x1 | DISABLE_TIMING | 0x4 | 0x20000000 | 0x40000000 | 0x80000000


def find(runtime: Runtime, event: int) -> Event:
    return runtime.find(runtime.events, event, "hipErrorInvalidHandle")


def record(runtime: Runtime, event: int, stream: int) -> None:
    found = find(runtime, event)
    runtime.stream(stream)
    found.seconds = time.perf_counter()


@function
def hipEventCreate(runtime: Runtime, event: int) -> None:
    hipEventCreateWithFlags(runtime, event, 0)


@function
def hipEventCreateWithFlags(runtime: Runtime, event: int, flags: int) -> None:
    need(event and not flags & ~FLAGS, reason=f"flags 0x{flags:x}")
    put_size(event, runtime.keep(runtime.events, Event, flags=flags).handle)


@function
def hipEventDestroy(runtime: Runtime, event: int) -> None:
    del runtime.events[find(runtime, event).handle]


@function
def hipEventRecord(runtime: Runtime, event: int, stream: int) -> None:
    record(runtime, event, stream)


@function
def hipEventRecordWithFlags(runtime: Runtime, event: int, stream: int, flags: int) -> None:
    need(flags in (0, 1), reason=f"flags {flags}")
    record(runtime, event, stream)


@function
def hipEventSynchronize(runtime: Runtime, event: int) -> None:
    find(runtime, event)
    runtime.report_fault()


@function
def hipEventQuery(runtime: Runtime, event: int) -> None:
    hipEventSynchronize(runtime, event)


@function
def hipEventElapsedTime(runtime: Runtime, ms: int, start: int, stop: int) -> None:
    need(ms, reason="a null pointer")
    first, second = find(runtime, start), find(runtime, stop)
    untimed = (first.flags | second.flags) & DISABLE_TIMING
    need(not untimed, "hipErrorInvalidHandle", "an event without timing")
    need(
        first.seconds is not None and second.seconds is not None,
        "hipErrorInvalidHandle",
        "an event that was not recorded",
    )
    assert first.seconds is not None
    assert second.seconds is not None
    put(ms, ctypes.c_float, 1000 * (second.seconds - first.seconds))
