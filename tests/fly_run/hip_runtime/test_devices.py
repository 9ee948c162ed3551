"""Devices, properties, attributes, contexts. Offsets and sizes are those that a C compiler finds in
the headers of HIP 7.1."""

from __future__ import annotations

import ctypes
import struct
from ctypes import c_int, c_size_t

import pytest
from fly_common.errors import MissingError
from hip_support import Hip

TWO = {"FLY_HIP_TARGET": "gfx942, gfx1100"}


def properties(hip: Hip, device: int = 0, name: str = "hipGetDevicePropertiesR0600") -> bytes:
    size = 1472 if name.endswith("R0600") else 792
    made = ctypes.create_string_buffer(b"\xff" * (size + 8), size + 8)
    getattr(hip.ok, name)(made, device)
    assert made.raw[size:] == b"\xff" * 8, "it is longer than the structure"
    return made.raw[:size]


def number(data: bytes, offset: int, kind: str = "i") -> int:
    return struct.unpack_from(f"<{kind}", data, offset)[0]


def attribute(hip: Hip, which: int, device: int = 0) -> int:
    return hip.get(c_int, hip.ok.hipDeviceGetAttribute, which, device)


def test_properties_are_where_the_headers_have_them(hip):
    data = properties(hip)
    assert data[:256].split(b"\0")[0] == b"AMD Instinct MI300X (emulated by fly-run)"
    assert data[1160:1416].split(b"\0")[0] == b"gfx942:sramecc+:xnack-"
    assert number(data, 296, "Q") == 65536  # sharedMemPerBlock
    assert number(data, 308) == 64  # warpSize
    assert number(data, 348) == 2_100_000  # clockRate
    assert number(data, 360) == 9  # major
    assert number(data, 388) == 304  # multiProcessorCount
    assert number(data, 612) == 8192  # memoryBusWidth
    assert number(data, 688) == 1  # cooperativeLaunch
    assert number(data, 1464) == 1  # isLargeBar
    memory = hip.get(c_size_t, hip.ok.hipDeviceTotalMem, 0)
    assert number(data, 288, "Q") == memory > 1 << 20


@pytest.mark.parametrize("suffix", ["", "R0000"])
def test_the_older_structure(hip, suffix):
    data = properties(hip, name=f"hipGetDeviceProperties{suffix}")
    assert data[396:652].split(b"\0")[0] == b"gfx942:sramecc+:xnack-"
    assert (number(data, 276), number(data, 336), number(data, 784)) == (64, 304, 1)


@pytest.mark.parametrize(
    ("target", "wave", "lds", "processors"),
    [("gfx90a", 64, 65536, 104), ("gfx950", 64, 163840, 256), ("gfx1201", 32, 65536, 32)],
)
def test_attributes_are_the_chips(target, wave, lds, processors):
    hip = Hip(FLY_HIP_TARGET=target)
    data = properties(hip)
    assert attribute(hip, 87) == number(data, 308) == wave
    assert attribute(hip, 74) == number(data, 296, "Q") == lds
    assert attribute(hip, 63) == number(data, 388) == processors
    assert attribute(hip, 5) == number(data, 348)
    assert f"gfx{attribute(hip, 23)}{attribute(hip, 61)}" == target[:-1]
    assert attribute(hip, 56) == 1024
    assert attribute(hip, 26) == attribute(hip, 28) == 1024
    assert attribute(hip, 84) == min(number(data, 288, "Q"), (1 << 31) - 1)
    assert attribute(hip, 42) == 0  # a texture's
    assert hip.hipDeviceGetAttribute(c_int(), 92, 0) == "hipErrorInvalidValue"
    assert hip.hipDeviceGetAttribute(c_int(), 10021, 0) == "hipErrorInvalidValue"
    assert hip.hipDeviceGetAttribute(0, 1, 0) == "hipErrorInvalidValue"
    assert hip.hipDeviceGetAttribute(c_int(), 1, 1) == "hipErrorInvalidDevice"
    major, minor = c_int(), c_int()
    hip.ok.hipDeviceComputeCapability(major, minor, 0)
    assert (major.value, minor.value) == (attribute(hip, 23), attribute(hip, 61))


def test_registers_and_residence():
    """gfx942: 4 SIMDs of 512 registers × 64 lanes, 8 waves each; gfx1100: 4 of 1536 × 32, 16."""
    cdna, rdna = Hip(FLY_HIP_TARGET="gfx942"), Hip(FLY_HIP_TARGET="gfx1100")
    assert (attribute(cdna, 71), attribute(cdna, 57)) == (4 * 512 * 64, 4 * 8 * 64)
    assert (attribute(rdna, 71), attribute(rdna, 57)) == (4 * 1536 * 32, 4 * 16 * 32)
    assert attribute(cdna, 10018) == 8  # XCCs
    assert attribute(rdna, 10018) == 1


def test_two_devices():
    hip = Hip(**TWO)
    assert hip.get(c_int, hip.ok.hipGetDeviceCount) == 2
    assert hip.get(c_int, hip.ok.hipGetDevice) == 0
    hip.ok.hipSetDevice(1)
    assert hip.get(c_int, hip.ok.hipGetDevice) == 1
    assert properties(hip, 1)[1160:1168] == b"gfx1100\0"
    assert hip.hipSetDevice(2) == hip.hipSetDevice(-1) == "hipErrorInvalidDevice"
    assert hip.get(c_int, hip.ok.hipGetDevice) == 1
    assert hip.get(c_int, hip.ok.hipDeviceGet, 1) == 1
    assert hip.hipDeviceGet(c_int(), 2) == "hipErrorInvalidDevice"
    assert hip.get(c_int, hip.ok.hipDeviceCanAccessPeer, 0, 1) == 1
    assert hip.get(c_int, hip.ok.hipDeviceCanAccessPeer, 1, 1) == 0
    hip.ok.hipDeviceEnablePeerAccess(0, 0)
    assert hip.hipDeviceEnablePeerAccess(1, 0) == "hipErrorInvalidDevice"
    hip.ok.hipDeviceDisablePeerAccess(0)
    assert hip.get(c_int, hip.ok.hipDeviceGetP2PAttribute, 1, 0, 1) == 1
    assert hip.get(c_int, hip.ok.hipDeviceGetP2PAttribute, 3, 0, 1) == 0
    assert hip.hipDeviceGetP2PAttribute(c_int(), 1, 1, 1) == "hipErrorInvalidDevice"
    hip.ok.hipSetValidDevices((c_int * 2)(1, 0), 2)
    assert hip.hipSetValidDevices((c_int * 2)(1, 2), 2) == "hipErrorInvalidDevice"


def test_names():
    hip = Hip(**TWO)
    name = ctypes.create_string_buffer(b"?" * 12, 12)
    hip.ok.hipDeviceGetName(name, 11, 1)
    assert name.raw == b"AMD Radeon\0?"
    uuids = [(ctypes.c_uint8 * 16)() for _ in range(2)]
    for device, uuid in enumerate(uuids):
        hip.ok.hipDeviceGetUuid(uuid, device)
        assert bytes(uuid) == properties(hip, device)[256:272]
    assert bytes(uuids[0]) != bytes(uuids[1])
    bus = ctypes.create_string_buffer(20)
    hip.ok.hipDeviceGetPCIBusId(bus, 20, 1)
    assert hip.get(c_int, hip.ok.hipDeviceGetByPCIBusId, bus.value) == 1
    assert hip.hipDeviceGetByPCIBusId(c_int(), "0000:09:00.0") == "hipErrorInvalidValue"
    assert hip.hipDeviceGetName(name, 0, 1) == "hipErrorInvalidValue"


def test_versions_and_flags(hip):
    version = hip.get(c_int, hip.ok.hipDriverGetVersion)
    assert version == hip.get(c_int, hip.ok.hipRuntimeGetVersion)
    assert version // 10_000_000 >= 6  # Triton requires it
    hip.ok.hipInit(0)
    assert hip.hipInit(1) == "hipErrorInvalidValue"
    hip.ok.hipSetDeviceFlags(4)
    assert hip.get(c_int, hip.ok.hipGetDeviceFlags) == 4
    assert hip.hipSetDeviceFlags(1 << 10) == "hipErrorInvalidValue"
    assert hip.get(c_int, hip.ok.hipChooseDevice, ctypes.create_string_buffer(2000)) == 0
    assert hip.hipChooseDeviceR0600(c_int(), 0) == "hipErrorInvalidValue"
    hip.ok.hipDeviceSynchronize()
    hip.ok.hipProfilerStart()
    hip.ok.hipProfilerStop()


def test_limits(hip):
    before = hip.get(c_size_t, hip.ok.hipDeviceGetLimit, 0)
    hip.ok.hipDeviceSetLimit(0, before + 8)
    assert hip.get(c_size_t, hip.ok.hipDeviceGetLimit, 0) == before + 8
    assert hip.hipDeviceGetLimit(c_size_t(), 1) == "hipErrorUnsupportedLimit"
    assert hip.hipDeviceSetLimit(77, 1) == "hipErrorUnsupportedLimit"
    for subject in ("Cache", "SharedMem"):
        for owner in ("Device", "Ctx"):
            getattr(hip.ok, f"hip{owner}Set{subject}Config")(1)
            assert hip.get(c_int, getattr(hip.ok, f"hip{owner}Get{subject}Config")) == 0


def test_contexts():
    hip = Hip(**TWO)
    first = hip.get(c_size_t, hip.ok.hipCtxGetCurrent)
    second = hip.get(c_size_t, hip.ok.hipDevicePrimaryCtxRetain, 1)
    assert first == hip.get(c_size_t, hip.ok.hipDevicePrimaryCtxRetain, 0) != second
    hip.ok.hipCtxPushCurrent(second)
    assert hip.get(c_int, hip.ok.hipCtxGetDevice) == hip.get(c_int, hip.ok.hipGetDevice) == 1
    assert hip.get(c_size_t, hip.ok.hipCtxPopCurrent) == second
    assert hip.get(c_int, hip.ok.hipCtxGetDevice) == 0
    assert hip.hipCtxPopCurrent(0) == "hipErrorInvalidContext"
    hip.ok.hipCtxSetCurrent(second)
    hip.ok.hipSetDevice(0)
    assert hip.get(c_int, hip.ok.hipGetDevice) == 0
    hip.ok.hipCtxSetCurrent(0)
    made = hip.get(c_size_t, hip.ok.hipCtxCreate, 4, 1)
    assert hip.get(c_int, hip.ok.hipCtxGetFlags) == 4
    assert hip.get(c_size_t, hip.ok.hipCtxGetCurrent) == made not in (first, second)
    hip.ok.hipCtxEnablePeerAccess(first, 0)
    hip.ok.hipCtxDisablePeerAccess(first)
    hip.ok.hipCtxDestroy(made)
    assert hip.hipCtxDestroy(made) == hip.hipCtxSetCurrent(made) == "hipErrorInvalidContext"
    assert hip.hipCtxDestroy(first) == "hipErrorInvalidContext"
    assert hip.hipCtxGetApiVersion(made, c_int()) == "hipErrorInvalidContext"
    assert hip.get(c_int, lambda out: hip.ok.hipCtxGetApiVersion(first, out)) > 0
    hip.ok.hipCtxSynchronize()


def test_primary_contexts_are_active_once_retained(hip):
    flags, active = c_int(7), c_int(7)
    hip.ok.hipDevicePrimaryCtxSetFlags(0, 2)
    hip.ok.hipDevicePrimaryCtxGetState(0, flags, active)
    assert (flags.value, active.value) == (2, 0)
    hip.get(c_size_t, hip.ok.hipDevicePrimaryCtxRetain, 0)
    hip.ok.hipDevicePrimaryCtxGetState(0, 0, active)
    assert active.value == 1
    assert hip.hipDevicePrimaryCtxSetFlags(0, 1) == "hipErrorContextAlreadyInUse"
    hip.ok.hipDevicePrimaryCtxRelease(0)
    hip.ok.hipDevicePrimaryCtxReset(0)
    hip.ok.hipDevicePrimaryCtxSetFlags(0, 1)
    assert hip.hipDevicePrimaryCtxRetain(c_size_t(), 3) == "hipErrorInvalidDevice"


def test_reset_frees_the_devices_memory_and_modules(hip, add):
    module, _ = hip.load(add, "add")
    memory = hip.malloc(64)
    stream = hip.get(c_size_t, hip.ok.hipStreamCreate)
    hip.ok.hipDeviceReset()
    assert hip.hipFree(memory) == "hipErrorInvalidValue"
    assert hip.hipModuleUnload(module) == "hipErrorInvalidHandle"
    assert hip.hipStreamQuery(stream) == "hipErrorContextIsDestroyed"


def test_a_chip_that_is_not_emulated():
    with pytest.raises(MissingError, match="does not run gfx9"):
        Hip(FLY_HIP_TARGET="gfx9")
