"""Launches. A kernel has run when its launch returns, so streams are in order.

A fault of the kernel is returned by the launch. With FLY_HIP_DEFER_FAULTS=1 the next call that
waits returns it, as on hardware. Afterwards the device can be used: nothing is lost.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator

from fly_common import diagnostics
from fly_common.errors import Fault, InputError, UsageError

from fly_run.hip_runtime import cells, errors
from fly_run.hip_runtime.calls.events import record
from fly_run.hip_runtime.calls.modules import find, resident
from fly_run.hip_runtime.errors import Failure, need
from fly_run.hip_runtime.memory import host_memory
from fly_run.hip_runtime.products import product
from fly_run.hip_runtime.registered import function
from fly_run.hip_runtime.runtime import Function, Runtime

BUFFER, BUFFER_SIZE, END = 1, 2, 3  # HIP_LAUNCH_PARAM_…
COOPERATIVE, CLUSTER = 2, 4  # hipLaunchAttributeID
ATTRIBUTE_SIZE = 72  # bytes of hipLaunchAttribute
WORK_ITEMS = 1024

Triple = tuple[int, int, int]

# What faults begin with, and HIP's error for them.
FAULTS = (
    ("memory fault", "hipErrorIllegalAddress"),
    ("write to read-only memory", "hipErrorIllegalAddress"),
    ("misaligned access", "hipErrorIllegalAddress"),
    ("timeout", "hipErrorLaunchTimeOut"),
    ("", "hipErrorLaunchFailure"),
)


def launch(
    runtime: Runtime,
    one: Function,
    grid: Triple,
    block: Triple,
    shared: int,
    stream: int,
    parameters: int,
    extra: int,
    *,
    cooperative: bool = False,
    cluster: Triple | None = None,
) -> None:
    """Checks a launch in HIP's order, and runs it."""
    runtime.stream(stream)
    kernel, device = one.prepared.kernel, runtime.devices[one.module.device]
    need(not (parameters and extra), reason="both kernelParams and extra are given")
    need(all(grid), reason=f"grid {grid}")
    need(all(block), "hipErrorInvalidConfiguration", f"block {block}")
    items = block[0] * block[1] * block[2]
    need(items <= WORK_ITEMS, reason=f"{items} work items")
    lds = kernel.group_segment_fixed_size + shared
    need(lds <= device.target.lds, reason=f"{lds} bytes of LDS; {device.target.lds} exist")
    need(
        items <= kernel.max_flat_workgroup_size,
        "hipErrorLaunchFailure",
        f"{kernel.name} was compiled for at most {kernel.max_flat_workgroup_size} work items",
    )
    if cooperative:
        most = resident(runtime, one, items, shared) * product(device.target).processors
        groups = grid[0] * grid[1] * grid[2]
        error = "hipErrorCooperativeLaunchTooLarge"
        need(groups <= most, error, f"{groups} workgroups; {most} are resident at once")
    packed = _packed(one, parameters, extra)
    _run(runtime, one, grid, block, shared, packed, cluster)


def _packed(one: Function, parameters: int, extra: int) -> bytes:
    """Returns the arguments at their offsets."""
    arguments, size = one.prepared.kernel.arguments, one.prepared.kernel.kernarg_size
    need(parameters or extra or not arguments, reason="no arguments are given")
    if extra:
        data = _buffer(extra)
        need(len(data) <= size, reason=f"{len(data)} bytes of arguments; {size} are expected")
        return data.ljust(size, b"\0")
    packed = bytearray(size)
    for number, argument in enumerate(arguments):
        at = cells.get_pointer(parameters + 8 * number)
        need(at, reason=f"argument {number} is a null pointer")
        end = argument.offset + argument.size
        packed[argument.offset : end] = ctypes.string_at(at, argument.size)
    return bytes(packed)


def _buffer(extra: int) -> bytes:
    """Returns the bytes that a list of HIP_LAUNCH_PARAM_… describes."""
    buffer = size = 0
    for _ in range(3):
        key = cells.get_pointer(extra)
        if key == END:
            break
        need(key in (BUFFER, BUFFER_SIZE), reason=f"0x{key:x} in extra")
        value = cells.get_pointer(extra + 8)
        if key == BUFFER:
            buffer = value
        else:
            size = cells.get_pointer(value)
        extra += 16
    need(cells.get_pointer(extra) == END, reason="extra has no HIP_LAUNCH_PARAM_END")
    need(buffer or not size, reason="extra has no buffer")
    return ctypes.string_at(buffer, size)


def _addresses(one: Function, packed: bytes) -> Iterator[int]:
    """Yields the words of the arguments that may be addresses: pointers, and all aligned words of
    structures."""
    for argument in one.prepared.kernel.arguments:
        if argument.kind != "shared":
            aligned = argument.offset + -argument.offset % 8
            for offset in range(aligned, argument.offset + argument.size - 7, 8):
                yield struct.unpack_from("<Q", packed, offset)[0]


def _run(
    runtime: Runtime,
    one: Function,
    grid: Triple,
    block: Triple,
    shared: int,
    packed: bytes,
    cluster: Triple | None,
) -> None:
    emulator = runtime.devices[one.module.device].emulator(runtime.memory)
    mapped: list[int] = []
    try:
        for piece in host_memory(_addresses(one, packed), runtime.memory):
            label = f"memory of the host, 0x{piece.start:x} to 0x{piece.end:x}"
            size = piece.end - piece.start
            emulator.map(piece.start, size, writable=piece.writable, label=label)
            mapped.append(piece.start)
        emulator.launch(one.prepared, grid, block, packed, shared, cluster=cluster)
    except Fault as fault:
        diagnostics.print_error(fault, "fly-run: HIP")
        error = next(error for start, error in FAULTS if fault.message.startswith(start))
        if not runtime.defers:
            raise Failure(error, fault.message) from None
        runtime.fault = runtime.fault or errors.NUMBERS[error]
    except UsageError as error:
        raise Failure("hipErrorInvalidConfiguration", error.message) from None
    except InputError as error:
        raise Failure("hipErrorInvalidValue", error.message) from None
    finally:
        for start in mapped:
            emulator.release(start)


@function
def hipModuleLaunchKernel(
    runtime: Runtime,
    f: int,
    gridDimX: int,
    gridDimY: int,
    gridDimZ: int,
    blockDimX: int,
    blockDimY: int,
    blockDimZ: int,
    sharedMemBytes: int,
    stream: int,
    kernelParams: int,
    extra: int,
) -> None:
    grid, block = (gridDimX, gridDimY, gridDimZ), (blockDimX, blockDimY, blockDimZ)
    launch(runtime, find(runtime, f), grid, block, sharedMemBytes, stream, kernelParams, extra)


@function
def hipModuleLaunchCooperativeKernel(
    runtime: Runtime,
    f: int,
    gridDimX: int,
    gridDimY: int,
    gridDimZ: int,
    blockDimX: int,
    blockDimY: int,
    blockDimZ: int,
    sharedMemBytes: int,
    stream: int,
    kernelParams: int,
) -> None:
    """The emulator does not run all workgroups of a large grid at once, so a kernel may not wait
    for another workgroup."""
    grid, block = (gridDimX, gridDimY, gridDimZ), (blockDimX, blockDimY, blockDimZ)
    one = find(runtime, f)
    launch(runtime, one, grid, block, sharedMemBytes, stream, kernelParams, 0, cooperative=True)


@function
def hipExtModuleLaunchKernel(
    runtime: Runtime,
    f: int,
    globalWorkSizeX: int,
    globalWorkSizeY: int,
    globalWorkSizeZ: int,
    localWorkSizeX: int,
    localWorkSizeY: int,
    localWorkSizeZ: int,
    sharedMemBytes: int,
    hStream: int,
    kernelParams: int,
    extra: int,
    startEvent: int,
    stopEvent: int,
    flags: int,
) -> None:
    """The grid is in work items here. It must consist of whole workgroups."""
    items = globalWorkSizeX, globalWorkSizeY, globalWorkSizeZ
    block = localWorkSizeX, localWorkSizeY, localWorkSizeZ
    need(all(block), "hipErrorInvalidConfiguration", f"block {block}")
    rest = any(item % size for item, size in zip(items, block, strict=True))
    need(not rest, reason=f"{items} is no multiple of {block}")
    grid = items[0] // block[0], items[1] // block[1], items[2] // block[2]
    one = find(runtime, f)
    if startEvent:
        record(runtime, startEvent, hStream)
    launch(runtime, one, grid, block, sharedMemBytes, hStream, kernelParams, extra)
    if stopEvent:
        record(runtime, stopEvent, hStream)


class DriverConfig(ctypes.Structure):
    """HIP_LAUNCH_CONFIG."""

    _fields_ = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_uint32),
        ("stream", ctypes.c_size_t),
        ("attributes", ctypes.c_size_t),
        ("count", ctypes.c_uint32),
    ]


class Config(ctypes.Structure):
    """hipLaunchConfig_t."""

    _fields_ = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_size_t),
        ("stream", ctypes.c_size_t),
        ("attributes", ctypes.c_size_t),
        ("count", ctypes.c_uint32),
    ]


def _configured(
    runtime: Runtime, config: DriverConfig | Config, handle: int, parameters: int, extra: int
) -> None:
    cooperative = False
    cluster: Triple | None = None
    for number in range(config.count):
        at = config.attributes + number * ATTRIBUTE_SIZE
        kind = cells.get(at, ctypes.c_int32)
        if kind == COOPERATIVE:
            cooperative = bool(cells.get(at + 8, ctypes.c_int32))
        elif kind == CLUSTER:
            x, y, z = (cells.get(at + 8 + 4 * axis, ctypes.c_uint32) for axis in range(3))
            cluster = (x, y, z) if x or y or z else None
    launch(
        runtime,
        find(runtime, handle),
        tuple(config.grid),
        tuple(config.block),
        config.shared,
        config.stream,
        parameters,
        extra,
        cooperative=cooperative,
        cluster=cluster,
    )


@function
def hipDrvLaunchKernelEx(runtime: Runtime, config: int, f: int, params: int, extra: int) -> None:
    need(config, reason="a null pointer")
    _configured(runtime, DriverConfig.from_address(config), f, params, extra)


@function
def hipLaunchKernelExC(runtime: Runtime, config: int, fPtr: int, args: int) -> None:
    """`fPtr` must be a kernel of a module: there are no kernels of the program itself."""
    need(config, "hipErrorInvalidConfiguration", "a null pointer")
    _configured(runtime, Config.from_address(config), fPtr, args, 0)


@function
def hipLaunchHostFunc(runtime: Runtime, stream: int, fn: int, userData: int) -> None:
    need(fn, reason="a null pointer")
    runtime.stream(stream)
    with runtime.unlocked():
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(fn)(userData)
