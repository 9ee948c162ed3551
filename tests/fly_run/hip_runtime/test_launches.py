"""Launches, faults, streams and events."""

from __future__ import annotations

import ctypes
import mmap
import struct
import threading
import time
from ctypes import c_double, c_float, c_int, c_size_t, c_uint32, c_uint64

import numpy as np
import pytest
from emulator_support.engine import compile_opencl
from fly_common.errors import UsageError
from hip_support import Hip, parameters

INVALID, HANDLE = "hipErrorInvalidValue", "hipErrorInvalidHandle"
N = 100

KERNELS = """
typedef struct { char flag; global int *at; int n; } Where;
kernel void through(Where where, char more) {
    if (TID < where.n) where.at[TID] += where.flag + more; }
kernel void shift(global int *at, local int *shared) {
    shared[TID] = at[TID]; BARRIER; at[TID] = shared[(TID + 1) % 64];
}
kernel void nothing() {}
kernel void ever(global volatile int *at) { while (at[0] == 0); }
kernel void trap() { __builtin_trap(); }
kernel void grid(global int *at) { if (TID == 0) {
    at[0] = __builtin_amdgcn_grid_size_x() / SIZE; at[1] = __builtin_amdgcn_grid_size_y(); } }
__attribute__((reqd_work_group_size(64, 1, 1))) kernel void small(global int *at) { at[TID] = 1; }
"""


@pytest.fixture(scope="module")
def kernels() -> bytes:
    return compile_opencl(KERNELS, "gfx942", "-O3").data


@pytest.fixture
def vectors(hip):
    values = np.arange(N, dtype="f4"), np.full(N, 0.5, "f4"), np.zeros(N, "f4")
    return [c_size_t(hip.array(one)) for one in values]


def summed(hip: Hip, vectors) -> bool:
    expected = np.arange(N, dtype="f4") + np.float32(0.5)
    return bool((hip.values(vectors[2].value, expected) == expected).all())


# -- arguments


def test_parameters(hip, add, vectors):
    _, function = hip.load(add, "add")
    assert hip.launch(function, 2, 64, [*vectors, c_size_t(N)]) == "hipSuccess"
    assert summed(hip, vectors)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_packed_buffer(hip, add, vectors, swapped):
    _, function = hip.load(add, "add")
    packed = struct.pack("<QQQQ", *(one.value for one in vectors), N)
    held, size = ctypes.create_string_buffer(packed, 32), c_size_t(32)
    pairs = [(1, ctypes.addressof(held)), (2, ctypes.addressof(size))]
    extra = [*sum(pairs[::-1] if swapped else pairs, ()), 3]
    words = (c_size_t * 5)(*extra)
    hip.ok.hipModuleLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, 0, 0, words)
    assert summed(hip, vectors)
    both = hip.hipModuleLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, 0, words, words)
    assert both == INVALID
    size.value = 33
    assert hip.hipModuleLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, 0, 0, words) == INVALID
    words[4] = 7
    assert hip.hipModuleLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, 0, 0, words) == INVALID


def test_missing_arguments(hip, add, kernels):
    _, function = hip.load(add, "add")
    assert hip.hipModuleLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, 0, 0, 0) == INVALID
    holes = (c_size_t * 4)()
    assert hip.hipModuleLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, 0, holes, 0) == INVALID
    _, none = hip.load(kernels, "nothing")
    hip.ok.hipModuleLaunchKernel(none, 1, 1, 1, 64, 1, 1, 0, 0, 0, 0)


def test_memory_of_the_host(hip, add):
    """Arrays that HIP does not know, as torch's CPU tensors."""
    _, function = hip.load(add, "add")
    a, b, c = np.arange(N, dtype="f4"), np.ones(N, "f4"), np.zeros(N, "f4")
    arguments = [*(c_size_t(one.ctypes.data) for one in (a, b, c)), c_size_t(N)]
    assert hip.launch(function, 2, 64, arguments) == "hipSuccess"
    assert (c == a + 1).all()
    assert hip.launch(function, 2, 64, arguments) == "hipSuccess", "mapped anew each time"


def test_memory_of_the_host_that_is_read_only(hip, add, capfd):
    _, function = hip.load(add, "add")
    memory = mmap.mmap(-1, 4096)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None)
    assert libc.mprotect(c_size_t(start), c_size_t(4096), 1) == 0
    arguments = [c_size_t(start)] * 3 + [c_size_t(N)]
    assert hip.launch(function, 2, 64, arguments) == "hipErrorIllegalAddress"
    assert "write to read-only memory" in capfd.readouterr().err
    assert libc.mprotect(c_size_t(start), c_size_t(4096), 3) == 0


def test_pointers_in_structures(hip, kernels):
    """The struct is {char, pointer, int} at offset 0; its pointer is looked up, too."""
    _, function = hip.load(kernels, "through")
    numbers = np.zeros(40, "i4")
    where = ctypes.create_string_buffer(struct.pack("<bxxxxxxxQixxxx", 3, numbers.ctypes.data, 30))
    pointers = (c_size_t * 2)(ctypes.addressof(where), ctypes.addressof(c := ctypes.c_int8(4)))
    hip.ok.hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, 0, pointers, 0)
    assert numbers.tolist() == [7] * 30 + [0] * 10
    assert c.value == 4


def test_dynamic_shared_memory(hip, kernels):
    _, function = hip.load(kernels, "shift")
    numbers = np.arange(64, dtype="i4")
    memory = hip.array(numbers)
    arguments = [c_size_t(memory), c_uint32(0)]
    assert hip.launch(function, 1, 64, arguments, shared=256) == "hipSuccess"
    assert (hip.values(memory, numbers) == np.roll(numbers, -1)).all()
    assert hip.launch(function, 1, 64, arguments, shared=65537) == INVALID


# -- sizes


def test_sizes_of_launches(hip, kernels):
    _, nothing = hip.load(kernels, "nothing")
    _, small = hip.load(kernels, "small")
    assert hip.launch(nothing, 0, 64, []) == INVALID
    assert hip.launch(nothing, 1, 0, []) == "hipErrorInvalidConfiguration"
    assert hip.launch(nothing, 1, 1025, []) == INVALID
    pointer = [c_size_t(hip.malloc(1024))]
    assert hip.launch(small, 1, 128, pointer) == "hipErrorLaunchFailure"
    assert hip.launch(small, 1, 64, pointer) == "hipSuccess"
    assert hip.launch(small, 1, 64, pointer, stream=0x99) == "hipErrorContextIsDestroyed"
    assert hip.launch(0, 1, 64, []) == HANDLE


def test_the_grid_in_work_items(hip, kernels):
    _, function = hip.load(kernels, "grid")
    out = hip.malloc(8)
    pointers = parameters([c_size_t(out)])
    start, stop = (hip.get(c_size_t, hip.ok.hipEventCreate) for _ in range(2))
    events = start, stop, 0
    hip.ok.hipExtModuleLaunchKernel(function, 192, 3, 1, 64, 1, 1, 0, 0, pointers, 0, *events)
    assert hip.values(out, np.empty(2, "i4")).tolist() == [3, 3]
    assert hip.get(c_float, hip.ok.hipEventElapsedTime, start, stop) > 0
    extended = hip.hipExtModuleLaunchKernel
    assert extended(function, 100, 1, 1, 64, 1, 1, 0, 0, pointers, 0, 0, 0, 0) == INVALID


def test_cooperative_launches(hip, kernels):
    """Up to as many workgroups as are resident at once: 304 × 32 of one wave."""
    _, function = hip.load(kernels, "nothing")
    cooperative = hip.hipModuleLaunchCooperativeKernel
    assert cooperative(function, 100, 1, 1, 64, 1, 1, 0, 0, 0) == "hipSuccess"
    found = cooperative(function, 304 * 32 + 1, 1, 1, 64, 1, 1, 0, 0, 0)
    assert found == "hipErrorCooperativeLaunchTooLarge"


@pytest.mark.parametrize("name", ["hipDrvLaunchKernelEx", "hipLaunchKernelExC"])
def test_launches_with_a_configuration(hip, kernels, name):
    _, function = hip.load(kernels, "grid")
    out = hip.malloc(8)
    driver = name == "hipDrvLaunchKernelEx"
    attributes = ctypes.create_string_buffer(144)

    def call(cluster: tuple[int, int, int], blocks: int, cooperative: int) -> str:
        struct.pack_into("<iiIII", attributes, 0, 4, 0, *cluster)
        struct.pack_into("<iii", attributes, 72, 2, 0, cooperative)
        sizes = (blocks, 2, 1, 64, 1, 1)
        at = ctypes.addressof(attributes)
        layout = "<6IIxxxxQQIxxxx" if driver else "<6IQQQIxxxx"
        config = struct.pack(layout, *sizes, 0, 0, at, 2)
        held = ctypes.create_string_buffer(config, len(config))
        pointers = parameters([c_size_t(out)])
        return getattr(hip, name)(held, function, pointers, *([0] if driver else []))

    assert call((1, 1, 1), 5, 0) == "hipSuccess"
    assert hip.values(out, np.empty(2, "i4")).tolist() == [5, 2]
    assert call((2, 1, 1), 4, 0) == INVALID  # gfx942 has no clusters
    assert call((1, 1, 1), 304 * 32, 1) == "hipErrorCooperativeLaunchTooLarge"
    with_none = getattr(hip, name)(0, function, 0, *([0] if driver else []))
    assert with_none == (INVALID if driver else "hipErrorInvalidConfiguration")


# -- faults


def test_a_fault_is_returned_and_the_next_launch_works(hip, add, vectors, capfd):
    _, function = hip.load(add, "add")
    assert hip.launch(function, 3, 64, [*vectors, c_size_t(N + 20)]) == "hipErrorIllegalAddress"
    printed = capfd.readouterr().err
    assert "memory fault: 4 bytes at" in printed
    assert "at the end of `device memory 1` (400 bytes)" in printed
    assert "kernel add" in printed
    assert hip.hipGetLastError() == "hipErrorIllegalAddress"
    hip.ok.hipDeviceSynchronize()
    assert hip.launch(function, 2, 64, [*vectors, c_size_t(N)]) == "hipSuccess"
    assert summed(hip, vectors)


def test_a_use_after_the_free_is_a_fault(hip, add, vectors, capfd):
    _, function = hip.load(add, "add")
    hip.ok.hipFree(vectors[0].value)
    assert hip.launch(function, 2, 64, [*vectors, c_size_t(N)]) == "hipErrorIllegalAddress"
    assert "memory fault" in capfd.readouterr().err


@pytest.mark.parametrize(
    "waiting",
    [
        "hipDeviceSynchronize",
        "hipCtxSynchronize",
        "hipStreamSynchronize",
        "hipStreamQuery",
        "hipEventSynchronize",
        "hipEventQuery",
        "hipMemcpy",
        "hipMemset",
        "hipFree",
    ],
)
def test_deferred_faults(add, capfd, waiting):
    """The next call that waits returns it, once."""
    hip = Hip(FLY_HIP_DEFER_FAULTS="1")
    _, function = hip.load(add, "add")
    memory = hip.malloc(400)
    arguments = {
        "hipStreamSynchronize": (0,),
        "hipStreamQuery": (0,),
        "hipEventSynchronize": (hip.get(c_size_t, hip.ok.hipEventCreate),),
        "hipEventQuery": (hip.get(c_size_t, hip.ok.hipEventCreate),),
        "hipMemcpy": (memory, memory, 4, 4),
        "hipMemset": (memory, 0, 4),
        "hipFree": (0,),
    }.get(waiting, ())
    wild = [*[c_size_t(memory)] * 3, c_size_t(N + 20)]
    assert hip.launch(function, 2, 64, wild) == "hipSuccess"
    assert hip.hipGetLastError() == "hipSuccess"
    assert getattr(hip, waiting)(*arguments) == "hipErrorIllegalAddress"
    assert hip.hipGetLastError() == "hipErrorIllegalAddress"
    assert getattr(hip, waiting)(*arguments) == "hipSuccess"
    assert "memory fault" in capfd.readouterr().err


def test_traps_and_limits(kernels, capfd):
    hip = Hip(FLY_HIP_MAX_INSTRUCTIONS="10000")
    _, trap = hip.load(kernels, "trap")
    _, ever = hip.load(kernels, "ever")
    assert hip.launch(trap, 1, 64, []) == "hipErrorLaunchFailure"
    assert hip.launch(ever, 1, 64, [c_size_t(hip.malloc(4))]) == "hipErrorLaunchTimeOut"
    assert "timeout" in capfd.readouterr().err
    with pytest.raises(UsageError, match="FLY_HIP_MAX_INSTRUCTIONS=many"):
        Hip(FLY_HIP_MAX_INSTRUCTIONS="many")


# -- streams and events


def test_streams(hip, add, vectors):
    _, function = hip.load(add, "add")
    stream = hip.get(c_size_t, hip.ok.hipStreamCreateWithPriority, 1, -7)
    assert hip.get(c_int, lambda out: hip.ok.hipStreamGetPriority(stream, out)) == -1
    assert hip.get(c_int, lambda out: hip.ok.hipStreamGetFlags(stream, out)) == 1
    assert hip.get(c_int, lambda out: hip.ok.hipStreamGetDevice(stream, out)) == 0
    for one in (stream, hip.get(c_size_t, hip.ok.hipStreamCreate), 0, 1, 2):
        assert hip.launch(function, 2, 64, [*vectors, c_size_t(N)], stream=one) == "hipSuccess"
        hip.ok.hipStreamSynchronize(one)
        hip.ok.hipStreamQuery(one)
    least, greatest = c_int(), c_int()
    hip.ok.hipDeviceGetStreamPriorityRange(least, greatest)
    assert (least.value, greatest.value) == (1, -1)
    hip.ok.hipStreamDestroy(stream)
    for name, more in (
        ("hipStreamDestroy", ()),
        ("hipStreamSynchronize", ()),
        ("hipStreamQuery", ()),
        ("hipStreamGetFlags", (c_int(),)),
        ("hipStreamIsCapturing", (c_int(),)),
    ):
        assert getattr(hip, name)(stream, *more) == "hipErrorContextIsDestroyed"
    assert hip.hipStreamDestroy(0) == HANDLE
    assert hip.hipStreamCreateWithFlags(c_size_t(), 2) == INVALID
    assert hip.hipStreamCreate(0) == INVALID


def test_functions_of_the_host_in_a_stream(hip):
    seen = []
    plain = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(seen.append)
    kinds = ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
    callback = ctypes.CFUNCTYPE(None, *kinds)(lambda *arguments: seen.append(arguments))
    address = lambda function: ctypes.cast(function, ctypes.c_void_p).value  # noqa: E731
    stream = hip.get(c_size_t, hip.ok.hipStreamCreate)
    hip.ok.hipLaunchHostFunc(stream, address(plain), 77)
    hip.ok.hipStreamAddCallback(stream, address(callback), 78, 0)
    assert seen == [77, (stream, 0, 78)]
    assert hip.hipLaunchHostFunc(stream, 0, 1) == INVALID
    assert hip.hipStreamAddCallback(stream, address(callback), 78, 1) == INVALID


def test_a_function_of_the_host_may_call_hip(hip):
    """It may also wait for another thread that does."""
    codes = []

    def work(_):
        thread = threading.Thread(target=lambda: codes.append(hip.hipMalloc(c_size_t(), 4)))
        thread.start()
        thread.join(timeout=20)
        codes.append(hip.hipMalloc(c_size_t(), 4))

    again = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(work)
    hip.ok.hipLaunchHostFunc(0, ctypes.cast(again, ctypes.c_void_p).value, 0)
    assert codes == ["hipSuccess"] * 2


def test_capturing_is_not_supported(hip):
    status, number = c_int(7), c_uint64(7)
    hip.ok.hipStreamIsCapturing(0, status)
    assert status.value == 0
    hip.ok.hipStreamGetCaptureInfo(0, status, number)
    hip.ok.hipStreamGetCaptureInfo_v2(0, status, 0, 0, 0, 0)
    assert (status.value, number.value) == (0, 0)
    assert hip.hipStreamBeginCapture(0, 0) == "hipErrorNotSupported"
    assert hip.hipStreamEndCapture(0, c_size_t()) == "hipErrorIllegalState"
    mode = c_int(2)
    hip.ok.hipThreadExchangeStreamCaptureMode(mode)
    assert mode.value == 0
    hip.ok.hipThreadExchangeStreamCaptureMode(mode)
    assert mode.value == 2
    mode.value = 3
    assert hip.hipThreadExchangeStreamCaptureMode(mode) == INVALID


@pytest.mark.parametrize(("bits", "kind"), [(32, c_uint32), (64, c_uint64)])
def test_values_in_memory(hip, bits, kind):
    write, wait = (getattr(hip, f"hipStream{verb}Value{bits}") for verb in ("Write", "Wait"))
    at = hip.malloc(8)
    big, every = (1 << bits) - 2, (1 << bits) - 1
    assert write(0, at, big, 0) == "hipSuccess"
    assert kind.from_address(at).value == big
    for flags, value, mask, true in (
        (0, big, every, True),
        (0, big + 1, every, False),
        (1, big, every, True),
        (1, big - 1, every, False),
        (1, 0xE, 0xF, True),
        (2, 1, every, False),
        (2, 2, every, True),
        (3, 1, every, False),
        (3, 0, every, True),
    ):
        expected = "hipSuccess" if true else "hipErrorNotReady"
        assert wait(0, at, value, flags, mask) == expected, (flags, value)
    assert wait(0, at, 0, 4, every) == INVALID
    assert hip.hipGetLastError() == INVALID, "not ready is no error"


def test_events(hip):
    first, second = (hip.get(c_size_t, hip.ok.hipEventCreate) for _ in range(2))
    milliseconds = c_float()
    assert hip.hipEventElapsedTime(milliseconds, first, second) == HANDLE  # not recorded
    hip.ok.hipEventQuery(first)
    hip.ok.hipEventRecord(first, 0)
    time.sleep(0.02)
    hip.ok.hipEventRecordWithFlags(second, 0, 0)
    hip.ok.hipEventSynchronize(second)
    hip.ok.hipStreamWaitEvent(0, second, 0)
    hip.ok.hipEventElapsedTime(milliseconds, first, second)
    assert 19 < milliseconds.value < 10_000
    untimed = hip.get(c_size_t, hip.ok.hipEventCreateWithFlags, 2)
    hip.ok.hipEventRecord(untimed, 0)
    assert hip.hipEventElapsedTime(milliseconds, first, untimed) == HANDLE
    assert hip.hipEventElapsedTime(0, first, second) == INVALID
    hip.ok.hipEventDestroy(first)
    for name, more in (
        ("hipEventDestroy", ()),
        ("hipEventRecord", (0,)),
        ("hipEventSynchronize", ()),
        ("hipEventQuery", ()),
    ):
        assert getattr(hip, name)(first, *more) == HANDLE
    assert hip.hipStreamWaitEvent(0, first, 0) == HANDLE
    assert hip.hipEventCreateWithFlags(c_size_t(), 0x100) == INVALID
    assert hip.hipEventRecord(second, 5) == "hipErrorContextIsDestroyed"


def test_doubles_as_arguments(hip):
    """An argument has the size that the code object gives."""
    source = "kernel void k(global double *at, char c, double d) { at[0] = c + d; }"
    _, function = hip.load(compile_opencl(source, "gfx942", "-O1").data, "k")
    out = hip.malloc(8)
    arguments = [c_size_t(out), ctypes.c_int8(-3), c_double(0.25)]
    assert hip.launch(function, 1, 1, arguments) == "hipSuccess"
    assert hip.values(out, np.empty(1))[0] == -2.75
