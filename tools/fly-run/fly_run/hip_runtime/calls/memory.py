"""Allocation and registration of memory."""

from __future__ import annotations

from fly_run.hip_runtime.cells import put_int, put_size
from fly_run.hip_runtime.errors import need
from fly_run.hip_runtime.memory import DEVICE, HOST, MANAGED, REGISTERED, Allocation
from fly_run.hip_runtime.registered import alias, function
from fly_run.hip_runtime.runtime import Runtime

PITCH = 256  # rows of pitched memory are multiples of it
POOL = 0x5F1D_0000_0000  # the handle of a device's memory pool, plus the device's ordinal


def _allocate(runtime: Runtime, ptr: int, size: int, kind: str = DEVICE, flags: int = 0) -> None:
    need(ptr, reason="a null pointer")
    put_size(ptr, runtime.allocate(size, kind, flags))


def _free(runtime: Runtime, ptr: int, kinds: tuple[str, ...], error: str) -> None:
    if ptr == 0:
        return
    found = runtime.memory.starting_at(ptr)
    need(found is not None and found.kind in kinds, error, f"0x{ptr:x} was not allocated")
    assert found is not None
    runtime.free(found)


@function
def hipMalloc(runtime: Runtime, ptr: int, size: int) -> None:
    _allocate(runtime, ptr, size)


@function
def hipExtMallocWithFlags(runtime: Runtime, ptr: int, sizeBytes: int, flags: int) -> None:
    _allocate(runtime, ptr, sizeBytes, DEVICE, flags)


@function
def hipMallocManaged(runtime: Runtime, dev_ptr: int, size: int, flags: int) -> None:
    need(size > 0 and flags in (1, 2), reason="flags are hipMemAttachGlobal or hipMemAttachHost")
    _allocate(runtime, dev_ptr, size, MANAGED, flags)


@function
def hipMallocAsync(runtime: Runtime, dev_ptr: int, size: int, stream: int) -> None:
    runtime.stream(stream)
    _allocate(runtime, dev_ptr, size)


@function
def hipMallocFromPoolAsync(
    runtime: Runtime, dev_ptr: int, size: int, mem_pool: int, stream: int
) -> None:
    _pool(runtime, mem_pool)
    hipMallocAsync(runtime, dev_ptr, size, stream)


@function
def hipMallocPitch(runtime: Runtime, ptr: int, pitch: int, width: int, height: int) -> None:
    need(ptr and pitch, reason="a null pointer")
    row = width + -width % PITCH
    _allocate(runtime, ptr, row * height)
    put_size(pitch, row)


@function
def hipMemAllocPitch(
    runtime: Runtime, dptr: int, pitch: int, widthInBytes: int, height: int, elementSizeBytes: int
) -> None:
    hipMallocPitch(runtime, dptr, pitch, widthInBytes, height)


@function
def hipHostMalloc(runtime: Runtime, ptr: int, size: int, flags: int) -> None:
    _allocate(runtime, ptr, size, HOST, flags)


@function
def hipMallocHost(runtime: Runtime, ptr: int, size: int) -> None:
    _allocate(runtime, ptr, size, HOST)


alias("hipHostAlloc", hipHostMalloc)
alias("hipMemAllocHost", hipMallocHost)


@function
def hipFree(runtime: Runtime, ptr: int) -> None:
    runtime.report_fault()
    _free(runtime, ptr, (DEVICE, HOST, MANAGED), "hipErrorInvalidValue")


@function
def hipFreeAsync(runtime: Runtime, dev_ptr: int, stream: int) -> None:
    runtime.stream(stream)
    need(dev_ptr, reason="a null pointer")
    _free(runtime, dev_ptr, (DEVICE, MANAGED), "hipErrorInvalidValue")


@function
def hipHostFree(runtime: Runtime, ptr: int) -> None:
    _free(runtime, ptr, (HOST,), "hipErrorInvalidValue")


alias("hipFreeHost", hipHostFree)


@function
def hipHostRegister(runtime: Runtime, hostPtr: int, sizeBytes: int, flags: int) -> None:
    need(hostPtr and sizeBytes, reason="no memory")
    for one in runtime.memory:
        apart = one.end <= hostPtr or hostPtr + sizeBytes <= one.start
        need(apart, "hipErrorHostMemoryAlreadyRegistered", f"it overlaps {one.name}")
    runtime.memory.need_room()
    made = Allocation(hostPtr, sizeBytes, REGISTERED, runtime.device.ordinal, 0, flags)
    runtime.show(runtime.memory.add(made))


@function
def hipHostUnregister(runtime: Runtime, hostPtr: int) -> None:
    need(hostPtr, reason="a null pointer")
    _free(runtime, hostPtr, (REGISTERED,), "hipErrorHostMemoryNotRegistered")


@function
def hipHostGetDevicePointer(runtime: Runtime, devPtr: int, hstPtr: int, flags: int) -> None:
    """Devices use the host's addresses."""
    need(devPtr and hstPtr, reason="a null pointer")
    put_size(devPtr, hstPtr)


@function
def hipHostGetFlags(runtime: Runtime, flagsPtr: int, hostPtr: int) -> None:
    found = runtime.memory.find(hostPtr)
    need(found is not None and found.kind in (HOST, REGISTERED), reason="not host memory of HIP")
    assert found is not None
    put_int(flagsPtr, found.flags)


@function
def hipMemGetInfo(runtime: Runtime, free: int, total: int) -> None:
    """The memory of the host."""
    put_size(free, max(0, runtime.memory.total - runtime.memory.used))
    put_size(total, runtime.memory.total)


@function
def hipMemGetAddressRange(runtime: Runtime, pbase: int, psize: int, dptr: int) -> None:
    found = runtime.memory.find(dptr)
    need(found, "hipErrorNotFound", f"0x{dptr:x} is in no memory of HIP")
    assert found is not None
    if pbase:
        put_size(pbase, found.start)
    if psize:
        put_size(psize, found.size)


@function
def hipMemPtrGetInfo(runtime: Runtime, ptr: int, size: int) -> None:
    need(size, reason="a null pointer")
    found = runtime.memory.find(ptr) if ptr else None
    need(found is not None or not ptr, reason=f"0x{ptr:x} is in no memory of HIP")
    put_size(size, found.size if found else 0)


@function
def hipMemPrefetchAsync(
    runtime: Runtime, dev_ptr: int, count: int, device: int, stream: int
) -> None:
    need(dev_ptr and count, reason="no memory")
    runtime.stream(stream)


@function
def hipMemAdvise(runtime: Runtime, dev_ptr: int, count: int, advice: int, device: int) -> None:
    need(dev_ptr and count, reason="no memory")


# -- memory pools: each device has one, which keeps nothing


def _pool(runtime: Runtime, pool: int) -> None:
    need(0 <= pool - POOL < len(runtime.devices), reason=f"0x{pool:x} is no memory pool")


@function
def hipDeviceGetDefaultMemPool(runtime: Runtime, mem_pool: int, device: int) -> None:
    put_size(mem_pool, POOL + runtime.ordinal(device))


@function
def hipDeviceGetMemPool(runtime: Runtime, mem_pool: int, device: int) -> None:
    hipDeviceGetDefaultMemPool(runtime, mem_pool, device)


@function
def hipDeviceSetMemPool(runtime: Runtime, device: int, mem_pool: int) -> None:
    runtime.ordinal(device)
    _pool(runtime, mem_pool)


@function
def hipMemPoolTrimTo(runtime: Runtime, mem_pool: int, min_bytes_to_hold: int) -> None:
    _pool(runtime, mem_pool)


@function
def hipMemPoolSetAttribute(runtime: Runtime, mem_pool: int, attr: int, value: int) -> None:
    _pool(runtime, mem_pool)
    need(value and 1 <= attr <= 8, reason=f"attribute {attr}")


@function
def hipMemPoolGetAttribute(runtime: Runtime, mem_pool: int, attr: int, value: int) -> None:
    """All attributes are 0: nothing is kept, nothing is reused."""
    _pool(runtime, mem_pool)
    need(1 <= attr <= 8, reason=f"attribute {attr}")
    if attr <= 3:
        put_int(value, 0)
    else:
        put_size(value, 0)
