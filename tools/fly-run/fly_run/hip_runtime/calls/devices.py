"""Devices and versions."""

from __future__ import annotations

import ctypes
from typing import Any

from fly_run.hip_runtime import cells, products, structures
from fly_run.hip_runtime.cells import put_int, put_size, put_text
from fly_run.hip_runtime.errors import Failure, need
from fly_run.hip_runtime.registered import alias, function
from fly_run.hip_runtime.runtime import Runtime

VERSION = 70125424  # HIP 7.1.25424, whose headers this follows
STACK, HEAP = 0, 2  # hipLimit_t
LIMITS = {STACK: 1024, HEAP: 4 << 20}
ACCESS, NATIVE_ATOMICS = 1, 2  # hipDeviceP2PAttr


def _values(runtime: Runtime, number: int) -> dict[str, Any]:
    device = runtime.devices[runtime.ordinal(number)]
    return products.values(number, device.target, runtime.memory.total)


@function
def hipInit(runtime: Runtime, flags: int) -> None:
    need(flags == 0, reason=f"flags {flags}")


@function
def hipDriverGetVersion(runtime: Runtime, driverVersion: int) -> None:
    put_int(driverVersion, VERSION)


@function
def hipRuntimeGetVersion(runtime: Runtime, runtimeVersion: int) -> None:
    put_int(runtimeVersion, VERSION)


@function
def hipGetDeviceCount(runtime: Runtime, count: int) -> None:
    put_int(count, len(runtime.devices))


@function
def hipGetDevice(runtime: Runtime, deviceId: int) -> None:
    put_int(deviceId, runtime.device.ordinal)


@function
def hipSetDevice(runtime: Runtime, deviceId: int) -> None:
    thread = runtime.thread
    thread.device = runtime.ordinal(deviceId)
    if thread.contexts:
        thread.contexts[-1] = runtime.primary[deviceId]


@function
def hipSetValidDevices(runtime: Runtime, device_arr: int, len: int) -> None:
    for index in range(len):
        runtime.ordinal(cells.get(device_arr + 4 * index, ctypes.c_int32))


@function
def hipGetDeviceFlags(runtime: Runtime, flags: int) -> None:
    put_int(flags, runtime.device.flags)


@function
def hipSetDeviceFlags(runtime: Runtime, flags: int) -> None:
    need(not flags & ~0x1F, reason=f"flags 0x{flags:x}")
    runtime.device.flags = flags


@function
def hipDeviceGet(runtime: Runtime, device: int, ordinal: int) -> None:
    put_int(device, runtime.ordinal(ordinal))


@function
def hipDeviceGetName(runtime: Runtime, name: int, len: int, device: int) -> None:
    target = runtime.devices[runtime.ordinal(device)].target
    put_text(name, products.shown_name(target), len)


@function
def hipDeviceGetUuid(runtime: Runtime, uuid: int, device: int) -> None:
    target = runtime.devices[runtime.ordinal(device)].target
    need(uuid, reason="a null pointer")
    ctypes.memmove(uuid, products.identity(device, target), 16)


@function
def hipDeviceGetPCIBusId(runtime: Runtime, pciBusId: int, len: int, device: int) -> None:
    put_text(pciBusId, f"0000:{runtime.ordinal(device) + 1:02x}:00.0", len)


@function
def hipDeviceGetByPCIBusId(runtime: Runtime, device: int, pciBusId: int) -> None:
    words = cells.get_text(pciBusId).lower().split(":")
    known = [f"{ordinal + 1:02x}" for ordinal in range(len(runtime.devices))]
    need(len(words) >= 2 and words[-2] in known, reason=f"no device {':'.join(words)}")
    put_int(device, known.index(words[-2]))


@function
def hipDeviceTotalMem(runtime: Runtime, bytes: int, device: int) -> None:
    runtime.ordinal(device)
    put_size(bytes, runtime.memory.total)


@function
def hipDeviceComputeCapability(runtime: Runtime, major: int, minor: int, device: int) -> None:
    known = _values(runtime, device)
    put_int(major, known["major"])
    put_int(minor, known["minor"])


@function
def hipDeviceGetAttribute(runtime: Runtime, pi: int, attr: int, deviceId: int) -> None:
    need(pi, reason="a null pointer")
    known = _values(runtime, deviceId)
    value = products.attribute(attr, runtime.devices[deviceId].target, known)
    if value is None:
        raise Failure("hipErrorInvalidValue", f"attribute {attr}")
    put_int(pi, value)


@function
def hipGetDevicePropertiesR0600(runtime: Runtime, prop: int, deviceId: int) -> None:
    need(prop, reason="a null pointer")
    structures.fill(prop, structures.NEW, _values(runtime, deviceId))


@function
def hipGetDeviceProperties(runtime: Runtime, prop: int, deviceId: int) -> None:
    """Fills the structure of before HIP 6."""
    need(prop, reason="a null pointer")
    structures.fill(prop, structures.OLD, _values(runtime, deviceId))


alias("hipGetDevicePropertiesR0000", hipGetDeviceProperties)


@function
def hipChooseDevice(runtime: Runtime, device: int, prop: int) -> None:
    """The first device, whatever is wanted."""
    need(prop, reason="a null pointer")
    put_int(device, 0)


alias("hipChooseDeviceR0000", hipChooseDevice)
alias("hipChooseDeviceR0600", hipChooseDevice)


@function
def hipDeviceSynchronize(runtime: Runtime) -> None:
    runtime.report_fault()


@function
def hipDeviceReset(runtime: Runtime) -> None:
    """Frees the modules and the memory of this thread's device."""
    from fly_run.hip_runtime.calls.modules import hipModuleUnload

    ordinal = runtime.device.ordinal
    for module in [one for one in runtime.modules.values() if one.device == ordinal]:
        hipModuleUnload(runtime, module.handle)
    for one in list(runtime.memory):
        if one.device == ordinal:
            runtime.free(one)
    for stream in [one for one in runtime.streams.values() if one.device == ordinal]:
        del runtime.streams[stream.handle]
    runtime.fault = 0


@function
def hipDeviceGetLimit(runtime: Runtime, pValue: int, limit: int) -> None:
    need(pValue, reason="a null pointer")
    need(limit in LIMITS, "hipErrorUnsupportedLimit", f"limit {limit}")
    put_size(pValue, runtime.device.limits.get(limit, LIMITS[limit]))


@function
def hipDeviceSetLimit(runtime: Runtime, limit: int, value: int) -> None:
    """Remembered only: kernels have the stack that they were compiled for."""
    need(limit in LIMITS, "hipErrorUnsupportedLimit", f"limit {limit}")
    runtime.device.limits[limit] = value


@function
def hipDeviceCanAccessPeer(
    runtime: Runtime, canAccessPeer: int, deviceId: int, peerDeviceId: int
) -> None:
    """All devices have the same memory."""
    put_int(canAccessPeer, runtime.ordinal(deviceId) != runtime.ordinal(peerDeviceId))


@function
def hipDeviceEnablePeerAccess(runtime: Runtime, peerDeviceId: int, flags: int) -> None:
    need(flags == 0, reason=f"flags {flags}")
    need(runtime.ordinal(peerDeviceId) != runtime.device.ordinal, "hipErrorInvalidDevice")


@function
def hipDeviceDisablePeerAccess(runtime: Runtime, peerDeviceId: int) -> None:
    runtime.ordinal(peerDeviceId)


@function
def hipDeviceGetP2PAttribute(
    runtime: Runtime, value: int, attr: int, srcDevice: int, dstDevice: int
) -> None:
    apart = runtime.ordinal(srcDevice) != runtime.ordinal(dstDevice)
    need(apart, "hipErrorInvalidDevice", "the same device twice")
    need(0 <= attr <= 3, reason=f"attribute {attr}")
    put_int(value, attr in (ACCESS, NATIVE_ATOMICS))


@function
def hipDeviceGetStreamPriorityRange(
    runtime: Runtime, leastPriority: int, greatestPriority: int
) -> None:
    from fly_run.hip_runtime.calls.streams import HIGHEST, LOWEST

    if leastPriority:
        put_int(leastPriority, LOWEST)
    if greatestPriority:
        put_int(greatestPriority, HIGHEST)
