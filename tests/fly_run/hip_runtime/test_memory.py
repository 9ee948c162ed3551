"""Memory: allocation, registration, attributes of pointers, copies and fills."""

from __future__ import annotations

import ctypes
import errno
import mmap
import struct
from ctypes import c_int, c_size_t, c_uint8, c_uint32

import numpy as np
import pytest
from fly_run.hip_runtime.memory import LAST, MOST, Allocation, Memory, host_memory

DEVICE, HOST, MANAGED = 2, 1, 3  # hipMemoryType
INVALID = "hipErrorInvalidValue"


# -- allocation


def test_memory_is_zeroed_and_apart(hip):
    a, b = hip.malloc(100), hip.malloc(100)
    assert a % 256 == b % 256 == 0
    assert abs(a - b) >= 4096
    assert ctypes.string_at(a, 100) == bytes(100)
    before = hip.runtime.memory.used
    hip.ok.hipFree(a)
    assert hip.runtime.memory.used == before - 100
    assert hip.hipFree(a) == INVALID
    assert hip.malloc(100) not in (a, b), "a freed address is not used again soon"


def test_edges_of_malloc(hip):
    assert hip.malloc(0) == 0
    hip.ok.hipFree(0)
    assert hip.hipMalloc(0, 8) == INVALID
    assert hip.hipMalloc(c_size_t(), 1 << 60) == "hipErrorOutOfMemory"
    assert hip.hipFree(hip.malloc(64) + 8) == INVALID


@pytest.mark.parametrize(
    ("name", "more", "free"),
    [
        ("hipExtMallocWithFlags", (1,), "hipFree"),
        ("hipMallocManaged", (1,), "hipFree"),
        ("hipMallocAsync", (0,), "hipFreeAsync"),
        ("hipHostMalloc", (0,), "hipHostFree"),
        ("hipHostAlloc", (0,), "hipFreeHost"),
        ("hipMallocHost", (), "hipHostFree"),
        ("hipMemAllocHost", (), "hipFreeHost"),
    ],
)
def test_ways_to_allocate(hip, name, more, free):
    address = hip.get(c_size_t, getattr(hip.ok, name), 40, *more)
    ctypes.memset(address, 7, 40)
    arguments = (address, 0) if free == "hipFreeAsync" else (address,)
    getattr(hip.ok, free)(*arguments)
    assert getattr(hip, free)(*arguments) == INVALID


def test_free_of_the_wrong_kind(hip):
    host, device = hip.get(c_size_t, hip.ok.hipMallocHost, 8), hip.malloc(8)
    assert hip.hipHostFree(device) == hip.hipFreeAsync(host, 0) == INVALID
    assert hip.hipFreeAsync(0, 0) == INVALID
    assert hip.hipMallocManaged(c_size_t(), 8, 3) == INVALID
    hip.ok.hipFree(host)


def test_the_number_of_allocations_is_limited(hip, add):
    """All of them fit into the emulator's table, and memory of the host besides."""
    _, function = hip.load(add, "add")
    made = [hip.malloc(4096) for _ in range(MOST)]
    numbers = np.ones(8, "f4")
    assert hip.hipMalloc(c_size_t(), 8) == "hipErrorOutOfMemory"
    assert hip.hipHostRegister(numbers, 32, 0) == "hipErrorOutOfMemory"
    arguments = [*(c_size_t(one) for one in (made[0], numbers.ctypes.data, made[-1])), c_size_t(8)]
    assert hip.launch(function, 1, 64, arguments) == "hipSuccess"
    assert hip.values(made[-1], numbers).tolist() == [1.0] * 8
    hip.ok.hipFree(made[5])
    hip.malloc(8)


def test_pitched_memory(hip):
    address, pitch = c_size_t(), c_size_t()
    hip.ok.hipMallocPitch(address, pitch, 300, 7)
    assert pitch.value == 512
    size = c_size_t()
    hip.ok.hipMemPtrGetInfo(address.value, size)
    assert size.value == 512 * 7
    hip.ok.hipMemAllocPitch(address, pitch, 256, 2, 4)
    assert pitch.value == 256
    assert hip.hipMallocPitch(address, 0, 300, 7) == INVALID


def test_registered_memory(hip):
    memory = mmap.mmap(-1, 8192)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    hip.ok.hipHostRegister(start, 4096, 2)
    overlapping = hip.hipHostRegister(start + 4000, 4096, 0)
    assert overlapping == "hipErrorHostMemoryAlreadyRegistered"
    assert hip.get(c_size_t, hip.ok.hipHostGetDevicePointer, start + 8, 0) == start + 8
    assert hip.get(c_uint32, hip.ok.hipHostGetFlags, start + 8) == 2
    hip.ok.hipHostUnregister(start)
    assert hip.hipHostUnregister(start) == "hipErrorHostMemoryNotRegistered"
    assert hip.hipHostGetFlags(c_uint32(), start) == INVALID
    assert hip.hipHostRegister(0, 1, 0) == hip.hipHostRegister(start, 0, 0) == INVALID
    assert hip.hipHostUnregister(0) == INVALID


def test_ranges_and_totals(hip):
    a = hip.malloc(1000)
    base, size = c_size_t(), c_size_t()
    hip.ok.hipMemGetAddressRange(base, size, a + 999)
    assert (base.value, size.value) == (a, 1000)
    assert hip.hipMemGetAddressRange(base, size, a + 1000) == "hipErrorNotFound"
    free, total = c_size_t(), c_size_t()
    hip.ok.hipMemGetInfo(free, total)
    assert free.value == total.value - 1000
    hip.ok.hipMemPrefetchAsync(a, 1000, 0, 0)
    hip.ok.hipMemAdvise(a, 1000, 1, 0)
    assert hip.hipMemAdvise(0, 1000, 1, 0) == INVALID


def test_memory_pools(hip):
    pool = hip.get(c_size_t, hip.ok.hipDeviceGetDefaultMemPool, 0)
    assert pool == hip.get(c_size_t, hip.ok.hipDeviceGetMemPool, 0)
    hip.ok.hipDeviceSetMemPool(0, pool)
    hip.ok.hipFree(hip.get(c_size_t, hip.ok.hipMallocFromPoolAsync, 64, pool, 0))
    hip.ok.hipMemPoolTrimTo(pool, 0)
    hip.ok.hipMemPoolSetAttribute(pool, 4, c_size_t(99))
    value = c_size_t(77)
    hip.ok.hipMemPoolGetAttribute(pool, 4, value)
    assert value.value == 0
    assert hip.hipMemPoolTrimTo(pool + 1, 0) == INVALID
    assert hip.hipMallocFromPoolAsync(c_size_t(), 8, 5, 0) == INVALID
    assert hip.hipMemPoolGetAttribute(pool, 9, value) == INVALID


def test_addresses_wrap_around(monkeypatch):
    memory = Memory()
    monkeypatch.setattr(Memory, "next", LAST - 4096)
    one = memory.allocate(1 << 20, "test", 0)
    assert one.end < LAST
    memory.remove(one)


# -- attributes of pointers


def attributes(hip, pointer: int) -> tuple[int, ...]:
    made = ctypes.create_string_buffer(32)
    hip.ok.hipPointerGetAttributes(made, pointer)
    return struct.unpack("<iiQQiI", made.raw)


def test_attributes_of_each_kind(hip):
    device, host = hip.malloc(64), hip.get(c_size_t, hip.ok.hipHostMalloc, 64, 4)
    managed = hip.get(c_size_t, hip.ok.hipMallocManaged, 64, 1)
    assert attributes(hip, device + 8) == (DEVICE, 0, device + 8, 0, 0, 0)
    assert attributes(hip, host) == (HOST, 0, host, host, 0, 4)
    assert attributes(hip, managed) == (MANAGED, 0, managed, managed, 1, 1)
    assert attributes(hip, 4096) == (0, -2, 0, 0, 0, 0)
    assert hip.hipPointerGetAttributes(0, device) == INVALID


@pytest.mark.parametrize(
    ("attribute", "kind", "expected"),
    [
        (2, c_int, DEVICE),
        (6, c_uint8, 0),
        (8, c_uint8, 0),
        (9, c_int, 0),
        (12, c_uint32, 64),
        (13, c_uint8, 1),
        (16, c_uint32, 0),
    ],
)
def test_single_attributes(hip, attribute, kind, expected):
    """Each writes as many bytes as hip_memory.cpp does."""
    device = hip.malloc(64)
    room = (c_uint8 * 16)(*[0xAA] * 16)
    hip.ok.hipPointerGetAttribute(room, attribute, device + 4)
    size = ctypes.sizeof(kind)
    assert kind.from_buffer(room).value == expected
    assert bytes(room[size:]) == b"\xaa" * (16 - size)


def test_addresses_as_attributes(hip):
    a = hip.malloc(64)
    assert hip.get(c_size_t, hip.ok.hipPointerGetAttribute, 3, a + 4) == a + 4
    assert hip.get(c_size_t, hip.ok.hipPointerGetAttribute, 11, a + 4) == a
    assert hip.hipPointerGetAttribute(c_size_t(), 4, a) == INVALID  # no host pointer
    first, second = (
        hip.get(c_int, hip.ok.hipPointerGetAttribute, 7, x) for x in (a, hip.malloc(8))
    )
    assert first != second
    for unsupported in (1, 5, 10, 14, 15, 17):
        assert hip.hipPointerGetAttribute(c_size_t(), unsupported, a) == "hipErrorNotSupported"
    assert hip.hipPointerGetAttribute(c_size_t(), 18, a) == INVALID
    ordinal, pointer = c_int(5), c_size_t()
    into = (c_size_t * 2)(ctypes.addressof(ordinal), ctypes.addressof(pointer))
    hip.ok.hipDrvPointerGetAttributes(2, (c_int * 2)(9, 3), into, a)
    assert (ordinal.value, pointer.value) == (0, a)
    hip.ok.hipPointerSetAttribute(c_int(1), 6, a)
    assert hip.hipPointerSetAttribute(c_int(1), 6, 4096) == "hipErrorInvalidDevicePointer"


def test_a_pointer_of_the_host_is_a_device_pointer(hip):
    """As where devices can access pageable memory; Triton asks this of each tensor."""
    array = np.zeros(10)
    assert hip.get(c_size_t, hip.ok.hipPointerGetAttribute, 3, array) == array.ctypes.data
    nowhere = c_size_t(9)
    assert hip.hipPointerGetAttribute(nowhere, 3, 0x1000) == INVALID
    assert nowhere.value == 0
    ordinal = c_int()
    assert hip.hipPointerGetAttribute(ordinal, 9, array) == INVALID
    assert ordinal.value == -2


def test_mappings_of_the_host_without_what_is_known():
    known = Memory()
    memory = mmap.mmap(-1, 3 * 4096)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    known.add(Allocation(start + 4096, 4096, "test", 0, 0))
    pieces = host_memory([start + 5, start + 5000], known)
    assert [one for one in pieces if one.start < start + 8192 and one.end > start + 4096] == []
    assert any(one.start <= start + 5 < one.end and one.writable for one in pieces)
    assert host_memory([start + 5000, 5, 0x1000], known) == []


# -- copies


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("hipMemcpy", (4,)),
        ("hipMemcpyAsync", (4, 0)),
        ("hipMemcpyWithStream", (4, 0)),
        *((f"hipMemcpy{way}", ()) for way in ("HtoD", "DtoH", "DtoD")),
        *((f"hipMemcpy{way}Async", (0,)) for way in ("HtoD", "DtoH", "DtoD")),
    ],
)
def test_copies(hip, name, more):
    numbers = np.arange(50, dtype="i4")
    device = hip.malloc(400)
    getattr(hip.ok, name)(device + 8, numbers, 200, *more)
    assert hip.values(device + 8, numbers).tolist() == list(range(50))
    assert getattr(hip, name)(device + 204, numbers, 200, *more) == INVALID
    assert getattr(hip, name)(numbers, device + 204, 200, *more) == INVALID
    assert getattr(hip, name)(0, device, 200, *more) == INVALID
    getattr(hip.ok, name)(0, device, 0, *more)


def test_the_kind_and_the_stream_of_a_copy(hip):
    a = hip.malloc(8)
    for kind in (0, 1, 2, 3, 4, 1024):
        hip.ok.hipMemcpy(a, a, 8, kind)
    assert hip.hipMemcpy(a, a, 8, 5) == "hipErrorInvalidMemcpyDirection"
    assert hip.hipMemcpyAsync(a, a, 8, 4, 0x1234) == "hipErrorContextIsDestroyed"
    hip.ok.hipMemcpyPeer(a, 0, a, 0, 8)
    hip.ok.hipMemcpyPeerAsync(a, 0, a, 0, 8, 0)
    assert hip.hipMemcpyPeer(a, 0, a, 1, 8) == "hipErrorInvalidDevice"


def test_copies_in_two_dimensions(hip):
    source = np.arange(48, dtype="u1").reshape(4, 12)
    device = hip.malloc(64)
    hip.ok.hipMemcpy2D(device, 16, source, 12, 5, 4, 1)
    found = hip.values(device, np.empty((4, 16), "u1"))
    assert (found[:, :5] == source[:, :5]).all()
    assert not found[:, 5:].any()
    hip.ok.hipMemcpy2DAsync(device, 16, source, 12, 12, 4, 1, 0)
    assert hip.hipMemcpy2D(device, 4, source, 12, 5, 4, 1) == "hipErrorInvalidPitchValue"
    assert hip.hipMemcpy2D(device, 16, source, 12, 12, 5, 1) == INVALID
    # hip_Memcpy2D: the source is host memory at (2, 1), the destination device memory at (1, 0).
    block = struct.pack(
        "<QQixxxxQQQQQQixxxxQQQQQQ",
        *(2, 1, HOST, source.ctypes.data, 0, 0, 12),
        *(1, 0, DEVICE, 0, device, 0, 16, 3, 2),
    )
    for name, more in (
        ("hipMemcpyParam2D", ()),
        ("hipMemcpyParam2DAsync", (0,)),
        ("hipDrvMemcpy2DUnaligned", ()),
    ):
        hip.ok.hipMemset(device, 0, 64)
        getattr(hip.ok, name)(ctypes.create_string_buffer(block, len(block)), *more)
        found = hip.values(device, np.empty((4, 16), "u1"))
        assert (found[:2, 1:4] == source[1:3, 2:5]).all()
        assert found.astype(int).sum() == source[1:3, 2:5].astype(int).sum()
    array = block[:16] + struct.pack("<i", 10) + block[20:]
    held = ctypes.create_string_buffer(array, len(array))
    assert hip.hipMemcpyParam2D(held) == "hipErrorNotSupported"


@pytest.mark.parametrize("more", [(), (0,)])
@pytest.mark.parametrize(
    ("bits", "value"), [("", 0x1A5), ("D8", 0xA5), ("D16", 0x1234), ("D32", -3)]
)
def test_fills(hip, bits, value, more):
    size = int(bits[1:] or 8) // 8
    name = f"hipMemset{bits}{'Async' if more else ''}"
    device = hip.malloc(200_000 * size)
    getattr(hip.ok, name)(device + size, value, 199_998, *more)
    found = hip.values(device, np.empty(200_000, f"u{size}"))
    assert (found[0], found[-1]) == (0, 0)
    assert set(found[1:-1].tolist()) == {value & (1 << 8 * size) - 1}
    assert getattr(hip, name)(device + size, value, 200_000, *more) == INVALID
    assert getattr(hip, name)(0, value, 1, *more) == INVALID
    if size > 1:
        assert getattr(hip, name)(device + 1, value, 1, *more) == INVALID


def test_fills_in_two_dimensions(hip):
    device = hip.malloc(40)
    hip.ok.hipMemset2D(device, 10, 3, 4, 4)
    hip.ok.hipMemset2DAsync(device, 10, 5, 1, 4, 0)
    found = hip.values(device, np.empty((4, 10), "u1"))
    assert found[:, :5].tolist() == [[5, 3, 3, 3, 0]] * 4
    assert hip.hipMemset2D(device, 3, 3, 4, 4) == "hipErrorInvalidPitchValue"


def test_memory_that_does_not_exist(hip):
    """The operating system's answer, not a crash."""
    a, page = hip.malloc(8), mmap.mmap(-1, 4096, prot=mmap.PROT_READ)
    assert hip.hipMemcpy(a, 0x1000, 8, 4) == INVALID
    assert hip.hipMemcpy(0x1000, a, 8, 4) == hip.hipMemset(0x1000, 1, 8) == INVALID
    start = np.frombuffer(page, "u1").ctypes.data
    assert hip.hipMemset(start, 1, 8) == INVALID
    hip.ok.hipMemcpy(a, start, 8, 4)


def test_copies_where_the_system_call_is_forbidden(hip, monkeypatch):
    def forbidden(*_):
        ctypes.set_errno(errno.EPERM)
        return -1

    monkeypatch.setattr(hip.runtime.memory._libc, "process_vm_writev", forbidden)
    numbers = np.arange(9)
    assert (hip.values(hip.array(numbers), numbers) == numbers).all()
