"""Modules: images at an address, kernels, global variables, attributes, occupancy."""

from __future__ import annotations

import ctypes
import struct
from ctypes import c_int, c_size_t, c_uint32

import numpy as np
import pytest
from emulator_support.engine import compile_opencl
from hip_support import Hip, parameters

INVALID, HANDLE = "hipErrorInvalidValue", "hipErrorInvalidHandle"

# Two kernels that use variables of the module.
VARIABLES = """
__attribute__((used)) global int counter = 5;
__attribute__((used)) global int zeros[4096];
__attribute__((used)) constant int table[3] = {10, 20, 30};
kernel void count(global int *out, int index) { out[0] = counter++ + table[index]; }
__attribute__((amdgpu_flat_work_group_size(1, 1024))) kernel void large(global int *out) {
    local int shared[1024];
    shared[TID] = TID; BARRIER; out[TID] = shared[1023 - TID];
}
"""


@pytest.fixture(scope="module")
def variables() -> bytes:
    return compile_opencl(VARIABLES, "gfx942", "-O3").data


def bundle(*entries: tuple[str, bytes]) -> bytes:
    """A bundle as clang-offload-bundler makes it."""
    header = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries))
    start = len(header) + sum(24 + len(name) for name, _ in entries)
    body = b""
    for name, data in entries:
        place = struct.pack("<QQQ", start + len(body), len(data), len(name))
        header, body = header + place + name.encode(), body + data
    return header + body


def load(hip: Hip, data: bytes) -> str:
    return hip.hipModuleLoadData(c_size_t(), data)


def test_the_image_is_copied_and_its_size_is_found(hip, add):
    """What follows the file does not matter, nor what becomes of it afterwards."""
    held = ctypes.create_string_buffer(add + b"\xff" * 4096)
    module = hip.get(c_size_t, hip.ok.hipModuleLoadData, held)
    ctypes.memset(held, 0, len(held))
    assert hip.runtime.modules[module].loaded.image.data == add
    assert hip.get(c_uint32, hip.ok.hipModuleGetFunctionCount, module) == 1


def test_bundles_and_wrappers(hip, add):
    host, other = ("host-x86_64-unknown-linux--", b""), "hipv4-amdgcn-amd-amdhsa--gfx1100"
    ours = ("hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+", add)
    data = bundle(host, (other, b"not this"), ours)
    hip.load(data, "add")
    hip.get(c_size_t, hip.ok.hipModuleLoadFatBinary, data)
    held = ctypes.create_string_buffer(data, len(data))
    wrapper = struct.pack("<IIQQ", 0x48495046, 1, ctypes.addressof(held), 0)
    hip.load(wrapper, "add")
    assert load(hip, bundle(host, (other, add))) == "hipErrorNoBinaryForGpu"
    assert load(hip, b"CCOB" + bytes(60)) == "hipErrorNotSupported"


def test_images_that_are_none(hip, add, assemble):
    assert load(hip, b"\0" * 64) == "hipErrorInvalidImage"
    assert load(hip, add[:18] + b"\x3e" + add[19:]) == "hipErrorInvalidImage"  # x86-64
    assert load(hip, b"\x7fELF\x01" + add[5:]) == "hipErrorInvalidImage"  # 32 bits
    assert load(hip, add[:40] + b"\xff" * 8 + add[48:]) == "hipErrorInvalidImage"  # e_shoff
    assert load(hip, assemble("add", target="gfx90a")) == "hipErrorNoBinaryForGpu"
    assert load(hip, bundle()[:24] + b"\xff" * 8) == "hipErrorInvalidImage"
    assert hip.hipModuleLoadData(c_size_t(), 0) == INVALID
    assert hip.hipModuleLoadData(0, add) == INVALID


def test_files(hip, add, tmp_path):
    path = tmp_path / "add.hsaco"
    path.write_bytes(add)
    module = hip.get(c_size_t, hip.ok.hipModuleLoad, str(path))
    hip.get(c_size_t, hip.ok.hipModuleGetFunction, module, "add")
    assert hip.hipModuleLoad(c_size_t(), str(tmp_path / "no")) == "hipErrorFileNotFound"


def test_the_reason_of_a_failure_is_in_the_log(hip, assemble):
    log = ctypes.create_string_buffer(b"?" * 40, 40)
    options = (c_int * 3)(5, 6, 12)
    values = (c_size_t * 3)(ctypes.addressof(log), 30, 1)
    code = assemble("add", target="gfx90a")
    result = hip.hipModuleLoadDataEx(c_size_t(), code, 3, options, values)
    assert result == "hipErrorNoBinaryForGpu"
    assert log.raw == b"the code is for gfx90a, the d\0" + b"?" * 10
    hip.ok.hipModuleLoadDataEx(c_size_t(), assemble("add"), 3, options, values)
    assert log.value == b""
    hip.ok.hipModuleLoadDataEx(c_size_t(), assemble("add"), 0, 0, 0)


def test_functions(hip, variables):
    module, count = hip.load(variables, "count")
    assert hip.get(c_size_t, hip.ok.hipModuleGetFunction, module, "count") == count
    assert hip.hipKernelNameRef(count) == "count"
    assert hip.hipKernelNameRef(4) == ""
    assert hip.hipModuleGetFunction(c_size_t(), module, "nothing") == "hipErrorNotFound"
    assert hip.hipModuleGetFunction(c_size_t(), module, "") == INVALID
    assert hip.hipModuleGetFunction(0, module, "count") == INVALID
    assert hip.hipModuleGetFunction(c_size_t(), 0, "count") == HANDLE
    hip.ok.hipModuleUnload(module)
    assert hip.hipModuleUnload(module) == HANDLE
    assert hip.launch(count, 1, 1, []) == HANDLE
    assert hip.hipKernelNameRef(count) == ""


def test_unsupported_instructions(hip):
    source = "kernel void k(global float *a) { __builtin_amdgcn_s_sleep_var(a[0]); }"
    source = (
        'kernel void k(global float *a) { __asm__ volatile("image_load v0, v0, s[0:7] dmask:1"); }'
    )
    code = compile_opencl(source, "gfx90a", "-O1").data
    other = Hip(FLY_HIP_TARGET="gfx90a")
    module = other.get(c_size_t, other.ok.hipModuleLoadData, code)
    assert other.hipModuleGetFunction(c_size_t(), module, "k") == "hipErrorNotSupported"


def test_global_variables(hip, variables):
    module, count = hip.load(variables, "count")
    address, size = c_size_t(), c_size_t()
    hip.ok.hipModuleGetGlobal(address, size, module, "counter")
    assert size.value == 4
    assert hip.values(address.value, np.empty(1, "i4"))[0] == 5
    hip.ok.hipMemsetD32(address.value, 100, 1)
    out = hip.malloc(4)
    arguments = [c_size_t(out), c_int(2)]
    assert hip.launch(count, 1, 1, arguments) == "hipSuccess"
    assert hip.values(out, np.empty(1, "i4"))[0] == 130
    assert hip.values(address.value, np.empty(1, "i4"))[0] == 101
    # Kernels can be passed its address.
    assert hip.launch(count, 1, 1, [address, c_int(0)]) == "hipSuccess"
    assert hip.values(address.value, np.empty(1, "i4"))[0] in (111, 102)
    assert hip.get(c_size_t, hip.ok.hipModuleGetGlobal, size, module, "counter") == address.value
    hip.ok.hipModuleGetGlobal(0, size, module, "table")
    assert size.value == 12
    # What begins as zeros is not in the file.
    hip.ok.hipModuleGetGlobal(address, size, module, "zeros")
    assert size.value == 16384
    assert not hip.values(address.value, np.empty(4096, "i4")).any()
    for name in ("nothing", "count", "count.kd"):
        assert hip.hipModuleGetGlobal(address, size, module, name) == "hipErrorNotFound"
    assert hip.hipModuleGetGlobal(0, 0, module, "counter") == INVALID
    hip.ok.hipModuleUnload(module)
    assert hip.hipFree(address.value) == INVALID


def test_attributes_of_functions(hip, variables):
    _, large = hip.load(variables, "large")
    names = "threads shared const local registers ptx binary cache dynamic"
    found = {
        name: hip.get(c_int, hip.ok.hipFuncGetAttribute, number, large)
        for number, name in enumerate(names.split())
    }
    assert found["shared"] == 4096
    assert found["dynamic"] == 65536 - 4096
    assert found["threads"] == 1024
    assert found["const"] == found["local"] == found["cache"] == 0
    assert found["binary"] == found["ptx"] == 94
    assert 0 < found["registers"] < 512
    room = ctypes.create_string_buffer(56)
    hip.ok.hipFuncGetAttributes(room, large)
    assert struct.unpack_from("<iiqqiiiii", room.raw) == (
        *(94, 0, 0, 0, 65536 - 4096, 1024, found["registers"], 0, 94),
    )
    assert struct.unpack_from("<q", room.raw, 48) == (4096,)
    hip.ok.hipFuncSetAttribute(large, 8, 65536 - 4096)
    assert hip.hipFuncSetAttribute(large, 8, 65536) == INVALID
    assert hip.hipFuncSetAttribute(large, 3, 0) == INVALID
    hip.ok.hipFuncSetCacheConfig(large, 1)
    hip.ok.hipFuncSetSharedMemConfig(large, 1)
    assert hip.hipFuncSetCacheConfig(1, 1) == HANDLE
    assert hip.hipFuncGetAttribute(c_int(), 10, large) == INVALID
    assert hip.hipFuncGetAttribute(0, 1, large) == INVALID
    assert hip.hipFuncGetAttribute(c_int(), 1, 5) == HANDLE
    assert hip.hipFuncGetAttributes(room, 5) == "hipErrorInvalidDeviceFunction"


def test_occupancy(hip, variables):
    """A workgroup of 256 is 4 waves, one on each SIMD, which holds 8; 64 KiB of LDS are shared."""
    _, large = hip.load(variables, "large")
    name = "OccupancyMaxActiveBlocksPerMultiprocessor"
    for prefix, suffix, more in (("hip", "", ()), ("hipModule", "WithFlags", (0,))):
        resident = getattr(hip.ok, f"{prefix}{name}{suffix}")
        assert hip.get(c_int, resident, large, 256, 0, *more) == 8
        assert hip.get(c_int, resident, large, 256, 12 << 10, *more) == 4
        assert hip.get(c_int, resident, large, 256, 61 << 10, *more) == 0
        assert hip.get(c_int, resident, large, 2048, 0, *more) == 0
    assert (
        hip.hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(c_int(), large, 64, 0, 9)
        == INVALID
    )
    grid, block = c_int(), c_int()
    hip.ok.hipModuleOccupancyMaxPotentialBlockSize(grid, block, large, 0, 512)
    assert (grid.value, block.value) == (4 * 304, 512)
    hip.ok.hipOccupancyMaxPotentialBlockSize(grid, block, large, 0, 0)
    assert (grid.value, block.value) == (2 * 304, 1024)
    potential = hip.hipModuleOccupancyMaxPotentialBlockSizeWithFlags
    assert potential(grid, block, large, 0, 0, 0) == "hipSuccess"
    assert potential(grid, block, 3, 0, 0, 0) == "hipErrorInvalidDeviceFunction"
    assert potential(0, block, large, 0, 0, 0) == INVALID


def test_modules_belong_to_the_device_that_loaded_them(assemble):
    hip = Hip(FLY_HIP_TARGET="gfx942,gfx90a")
    _, first = hip.load(assemble("add"), "add")
    hip.ok.hipSetDevice(1)
    _, second = hip.load(assemble("add", target="gfx90a"), "add")
    numbers = np.arange(64, dtype="f4")
    memory = hip.array(numbers)
    for function in (first, second):
        pointers = parameters([c_size_t(memory)] * 3 + [c_size_t(64)])
        hip.ok.hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, 0, pointers, 0)
    assert (hip.values(memory, numbers) == 4 * numbers).all()
