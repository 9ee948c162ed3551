"""Copies and fills. All of them are done when they return; addresses are the host's."""

from __future__ import annotations

import ctypes

from fly_run.hip_runtime.errors import need
from fly_run.hip_runtime.registered import alias, function
from fly_run.hip_runtime.runtime import Runtime

KINDS = (0, 1, 2, 3, 4, 1024)  # hipMemcpyKind
HOST_TYPE, ARRAY_TYPE = 1, 10  # hipMemoryType
CHUNK = 1 << 20  # values that a fill stores at once


class Memcpy2D(ctypes.Structure):
    """hip_Memcpy2D."""

    _fields_ = [
        *((f"src{n}", ctypes.c_size_t) for n in ("XInBytes", "Y")),
        ("srcMemoryType", ctypes.c_int32),
        *((f"src{n}", ctypes.c_size_t) for n in ("Host", "Device", "Array", "Pitch")),
        *((f"dst{n}", ctypes.c_size_t) for n in ("XInBytes", "Y")),
        ("dstMemoryType", ctypes.c_int32),
        *((f"dst{n}", ctypes.c_size_t) for n in ("Host", "Device", "Array", "Pitch")),
        *((n, ctypes.c_size_t) for n in ("WidthInBytes", "Height")),
    ]


def _copy(runtime: Runtime, dst: int, src: int, size: int, kind: int = 4, stream: int = 0) -> None:
    need(kind in KINDS, "hipErrorInvalidMemcpyDirection", f"kind {kind}")
    runtime.stream(stream)
    runtime.report_fault()
    if size:
        runtime.memory.check(dst, size)
        runtime.memory.check(src, size)
        runtime.memory.move(dst, src, size)


@function
def hipMemcpy(runtime: Runtime, dst: int, src: int, sizeBytes: int, kind: int) -> None:
    _copy(runtime, dst, src, sizeBytes, kind)


@function
def hipMemcpyAsync(
    runtime: Runtime, dst: int, src: int, sizeBytes: int, kind: int, stream: int
) -> None:
    _copy(runtime, dst, src, sizeBytes, kind, stream)


alias("hipMemcpyWithStream", hipMemcpyAsync)


@function
def hipMemcpyHtoD(runtime: Runtime, dst: int, src: int, sizeBytes: int) -> None:
    _copy(runtime, dst, src, sizeBytes)


@function
def hipMemcpyHtoDAsync(runtime: Runtime, dst: int, src: int, sizeBytes: int, stream: int) -> None:
    _copy(runtime, dst, src, sizeBytes, stream=stream)


for _way in ("DtoH", "DtoD"):
    alias(f"hipMemcpy{_way}", hipMemcpyHtoD)
    alias(f"hipMemcpy{_way}Async", hipMemcpyHtoDAsync)


@function
def hipMemcpyPeer(
    runtime: Runtime, dst: int, dstDeviceId: int, src: int, srcDeviceId: int, sizeBytes: int
) -> None:
    hipMemcpyPeerAsync(runtime, dst, dstDeviceId, src, srcDeviceId, sizeBytes, 0)


@function
def hipMemcpyPeerAsync(
    runtime: Runtime,
    dst: int,
    dstDeviceId: int,
    src: int,
    srcDevice: int,
    sizeBytes: int,
    stream: int,
) -> None:
    runtime.ordinal(dstDeviceId)
    runtime.ordinal(srcDevice)
    _copy(runtime, dst, src, sizeBytes, stream=stream)


# -- in two dimensions


@function
def hipMemcpy2D(
    runtime: Runtime,
    dst: int,
    dpitch: int,
    src: int,
    spitch: int,
    width: int,
    height: int,
    kind: int,
) -> None:
    hipMemcpy2DAsync(runtime, dst, dpitch, src, spitch, width, height, kind, 0)


@function
def hipMemcpy2DAsync(
    runtime: Runtime,
    dst: int,
    dpitch: int,
    src: int,
    spitch: int,
    width: int,
    height: int,
    kind: int,
    stream: int,
) -> None:
    need(width <= dpitch and width <= spitch, "hipErrorInvalidPitchValue")
    if width and height:
        runtime.memory.check(dst, dpitch * (height - 1) + width)
        runtime.memory.check(src, spitch * (height - 1) + width)
    for row in range(height):
        _copy(runtime, dst + row * dpitch, src + row * spitch, width, kind, stream)


@function
def hipMemcpyParam2D(runtime: Runtime, pCopy: int) -> None:
    hipMemcpyParam2DAsync(runtime, pCopy, 0)


alias("hipDrvMemcpy2DUnaligned", hipMemcpyParam2D)


@function
def hipMemcpyParam2DAsync(runtime: Runtime, pCopy: int, stream: int) -> None:
    need(pCopy, reason="a null pointer")
    one = Memcpy2D.from_address(pCopy)
    starts, pitches = [], []
    for end in ("dst", "src"):
        kind = getattr(one, f"{end}MemoryType")
        need(kind != ARRAY_TYPE, "hipErrorNotSupported", "arrays")
        base = getattr(one, f"{end}Host" if kind == HOST_TYPE else f"{end}Device")
        pitch = getattr(one, f"{end}Pitch") or one.WidthInBytes
        starts.append(base + getattr(one, f"{end}Y") * pitch + getattr(one, f"{end}XInBytes"))
        pitches.append(pitch)
    hipMemcpy2DAsync(
        runtime,
        starts[0],
        pitches[0],
        starts[1],
        pitches[1],
        one.WidthInBytes,
        one.Height,
        4,
        stream,
    )


# -- fills


def _fill(runtime: Runtime, dst: int, value: int, size: int, count: int, stream: int = 0) -> None:
    """Stores `count` values of `size` bytes."""
    runtime.stream(stream)
    runtime.report_fault()
    if count == 0:
        return
    need(dst % size == 0, reason=f"0x{dst:x} is not a multiple of {size}")
    runtime.memory.check(dst, size * count)
    pattern = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    chunk = ctypes.create_string_buffer(pattern * min(count, CHUNK), size * min(count, CHUNK))
    for start in range(0, size * count, len(chunk)):
        length = min(len(chunk), size * count - start)
        runtime.memory.move(dst + start, ctypes.addressof(chunk), length)


@function
def hipMemset(runtime: Runtime, dst: int, value: int, sizeBytes: int) -> None:
    _fill(runtime, dst, value, 1, sizeBytes)


@function
def hipMemsetAsync(runtime: Runtime, dst: int, value: int, sizeBytes: int, stream: int) -> None:
    _fill(runtime, dst, value, 1, sizeBytes, stream)


@function
def hipMemsetD16(runtime: Runtime, dest: int, value: int, count: int) -> None:
    _fill(runtime, dest, value, 2, count)


@function
def hipMemsetD16Async(runtime: Runtime, dest: int, value: int, count: int, stream: int) -> None:
    _fill(runtime, dest, value, 2, count, stream)


@function
def hipMemsetD32(runtime: Runtime, dest: int, value: int, count: int) -> None:
    _fill(runtime, dest, value, 4, count)


@function
def hipMemsetD32Async(runtime: Runtime, dst: int, value: int, count: int, stream: int) -> None:
    _fill(runtime, dst, value, 4, count, stream)


alias("hipMemsetD8", hipMemset)
alias("hipMemsetD8Async", hipMemsetAsync)


@function
def hipMemset2D(
    runtime: Runtime, dst: int, pitch: int, value: int, width: int, height: int
) -> None:
    hipMemset2DAsync(runtime, dst, pitch, value, width, height, 0)


@function
def hipMemset2DAsync(
    runtime: Runtime, dst: int, pitch: int, value: int, width: int, height: int, stream: int
) -> None:
    need(width <= pitch, "hipErrorInvalidPitchValue")
    if width and height:
        runtime.memory.check(dst, pitch * (height - 1) + width)
    for row in range(height):
        _fill(runtime, dst + row * pitch, value, 1, width, stream)
