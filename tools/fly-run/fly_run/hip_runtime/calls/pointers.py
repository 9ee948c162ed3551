"""Attributes of pointers.

Memory of the host that HIP does not know has attributes, too, as where devices can access pageable
memory: its device pointer is the pointer itself. Only addresses where nothing is mapped have none.
"""

from __future__ import annotations

import ctypes

from fly_run.hip_runtime.cells import get, get_pointer, put, put_int, put_size
from fly_run.hip_runtime.errors import Failure, need
from fly_run.hip_runtime.memory import DEVICE, HOST, MANAGED, REGISTERED, Allocation, host_memory
from fly_run.hip_runtime.registered import function
from fly_run.hip_runtime.runtime import Runtime

UNREGISTERED, ON_HOST, ON_DEVICE, IS_MANAGED = range(4)  # hipMemoryType
TYPES = {HOST: ON_HOST, REGISTERED: ON_HOST, MANAGED: IS_MANAGED}
NO_DEVICE = -2  # hipInvalidDeviceId
# hipPointer_attribute.
(
    CONTEXT,
    MEMORY_TYPE,
    DEVICE_POINTER,
    HOST_POINTER,
    P2P_TOKENS,
    SYNC_MEMOPS,
    BUFFER_ID,
    MANAGED_FLAG,
    DEVICE_ORDINAL,
    IPC_CAPABLE,
    RANGE_START,
    RANGE_SIZE,
    MAPPED,
    HANDLE_TYPES,
    RDMA_CAPABLE,
    ACCESS_FLAGS,
    MEMPOOL_HANDLE,
) = range(1, 18)
UNSUPPORTED = (CONTEXT, P2P_TOKENS, IPC_CAPABLE, HANDLE_TYPES, RDMA_CAPABLE, MEMPOOL_HANDLE)


class PointerAttributes(ctypes.Structure):
    """hipPointerAttribute_t."""

    _fields_ = [
        ("type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("devicePointer", ctypes.c_size_t),
        ("hostPointer", ctypes.c_size_t),
        ("isManaged", ctypes.c_int32),
        ("allocationFlags", ctypes.c_uint32),
    ]


def _type(one: Allocation | None) -> int:
    return UNREGISTERED if one is None else TYPES.get(one.kind, ON_DEVICE)


@function
def hipPointerGetAttributes(runtime: Runtime, attributes: int, ptr: int) -> None:
    need(attributes and ptr, reason="a null pointer")
    found = runtime.memory.find(ptr)
    made = PointerAttributes.from_address(attributes)
    made.type = _type(found)
    made.device = found.device if found else NO_DEVICE
    made.devicePointer = ptr if found else 0
    made.hostPointer = ptr if found and found.kind != DEVICE else 0
    made.isManaged = made.type == IS_MANAGED
    made.allocationFlags = found.flags if found else 0


@function
def hipPointerGetAttribute(runtime: Runtime, data: int, attribute: int, ptr: int) -> None:
    need(data and ptr, reason="a null pointer")
    found = runtime.memory.find(ptr)
    if attribute in UNSUPPORTED:
        raise Failure("hipErrorNotSupported", f"attribute {attribute}")
    need(MEMORY_TYPE <= attribute <= ACCESS_FLAGS, reason=f"attribute {attribute}")
    if found is None:
        if attribute in (DEVICE_POINTER, HOST_POINTER) and host_memory([ptr], runtime.memory):
            put_size(data, ptr)
            return
        _put(data, attribute, NO_DEVICE if attribute == DEVICE_ORDINAL else 0)
        need(attribute == ACCESS_FLAGS, reason=f"0x{ptr:x} is in no memory of HIP")
        return
    need(attribute != HOST_POINTER or found.kind != DEVICE, reason="device memory")
    values = {
        MEMORY_TYPE: _type(found),
        DEVICE_POINTER: ptr,
        HOST_POINTER: ptr,
        SYNC_MEMOPS: 0,
        BUFFER_ID: found.number,
        MANAGED_FLAG: int(found.kind == MANAGED),
        DEVICE_ORDINAL: found.device,
        RANGE_START: found.start,
        RANGE_SIZE: found.size,
        MAPPED: 1,
        ACCESS_FLAGS: found.flags,
    }
    _put(data, attribute, values[attribute])


def _put(data: int, attribute: int, value: int) -> None:
    if attribute in (DEVICE_POINTER, HOST_POINTER, RANGE_START):
        put_size(data, value)
    elif attribute in (SYNC_MEMOPS, MANAGED_FLAG, MAPPED):
        put(data, ctypes.c_uint8, value)
    else:  # of 4 bytes, even the size (hip_memory.cpp)
        put_int(data, value)


@function
def hipDrvPointerGetAttributes(
    runtime: Runtime, numAttributes: int, attributes: int, data: int, ptr: int
) -> None:
    need(attributes and data, reason="a null pointer")
    for number in range(numAttributes):
        attribute = get(attributes + 4 * number, ctypes.c_int32)
        hipPointerGetAttribute(runtime, get_pointer(data + 8 * number), attribute, ptr)


@function
def hipPointerSetAttribute(runtime: Runtime, value: int, attribute: int, ptr: int) -> None:
    """Copies are synchronous in any case."""
    need(attribute == SYNC_MEMOPS and value, reason=f"attribute {attribute}")
    need(runtime.memory.find(ptr), "hipErrorInvalidDevicePointer", f"0x{ptr:x}")
