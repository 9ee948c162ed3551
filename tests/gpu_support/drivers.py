"""A GPU in Python behind a driver's functions: memory, kernels that are Python functions, errors.

    gpu = FakeGpu()
    gpu.kernels["vadd"] = lambda gpu, launch: …
    driver = Cuda(gpu.library(CUDA))             as if libcuda had been loaded

Device addresses are not addresses of this process. A function can be made to fail: `gpu.fail`.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from gpu_support.prototypes import prototypes

ILLEGAL, LAUNCH_FAILED = 700, 719
NO_CONTEXT, WRONG_HANDLE = 201, 400
_NAMES = {
    1: ("INVALID_VALUE", "invalid argument"),
    2: ("OUT_OF_MEMORY", "out of memory"),
    3: ("NOT_INITIALIZED", "initialization error"),
    100: ("NO_DEVICE", "no CUDA-capable device is detected"),
    101: ("INVALID_DEVICE", "invalid device ordinal"),
    200: ("INVALID_IMAGE", "device kernel image is invalid"),
    201: ("INVALID_CONTEXT", "invalid device context"),
    209: ("NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"),
    218: ("INVALID_PTX", "a PTX JIT compilation failed"),
    400: ("INVALID_HANDLE", "invalid resource handle"),
    500: ("NOT_FOUND", "named symbol not found"),
    700: ("ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
    719: ("LAUNCH_FAILED", "unspecified launch failure"),
    999: ("UNKNOWN", "unknown error"),
}


@dataclass
class Launch:
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int
    packed: bytes
    dependent: bool = False
    cluster: tuple[int, ...] | None = None


class Illegal(Exception):
    """A kernel's access outside of memory."""


@dataclass
class FakeGpu:
    """`architectures`: of each device, (9, 0) or "gfx942:sramecc+:xnack-". `fail`: function name →
    the status that its calls return from now on."""

    architectures: tuple[Any, ...] = ((9, 0), (8, 0))
    memory_size: int = 1 << 30
    sticky: bool = True  # CUDA's contexts stay unusable after a fault
    kernels: dict[str, Callable[[FakeGpu, Launch], None]] = field(default_factory=dict)
    fail: dict[str, int] = field(default_factory=dict)
    log: list[tuple[Any, ...]] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    memory: dict[int, np.ndarray] = field(default_factory=dict)
    loaded: dict[int, bytes] = field(default_factory=dict)
    functions: dict[int, tuple[int, int, str]] = field(default_factory=dict)
    # Content that each module's variables have at first, and where the modules' own are.
    variables: dict[str, bytes] = field(default_factory=dict)
    placed: dict[tuple[int, str], int] = field(default_factory=dict)
    attributes: dict[tuple[int, int], int] = field(default_factory=dict)
    streams: set[int] = field(default_factory=set)
    events: dict[int, float] = field(default_factory=dict)
    retained: dict[int, int] = field(default_factory=dict)
    broken: int = 0
    clock: float = 0.0

    def __post_init__(self) -> None:
        self._handles = itertools.count(0x7F0000001000, 0x1000)
        self._addresses = itertools.count(0x5_0000_0000_0000, 0x1_0000_0000)
        self._current = threading.local()
        self._text: dict[str, ctypes.Array] = {}

    # -- the library

    def library(self, text: str) -> Any:
        """An object with the functions of a header as attributes."""
        made, self._kept = SimpleNamespace(), []
        for name, (result, kinds) in prototypes(text).items():
            function = ctypes.CFUNCTYPE(result, *kinds)(self._wrapped(name))
            self._kept.append(function)
            setattr(made, name, function)
        return made

    def _wrapped(self, name: str) -> Callable[..., Any]:
        role = _ROLES[name]
        body = getattr(self, role)

        def call(*arguments: Any) -> Any:
            self.log.append((name, *arguments))
            if role.startswith("text_"):
                return body(*arguments)
            if name in self.fail:
                return self.fail[name]
            needs_context = role not in _WITHOUT_CONTEXT
            if needs_context and name.startswith("cu") and not self.current():
                return NO_CONTEXT
            if needs_context and self.broken:
                status = self.broken
                self.broken = status if self.sticky else 0
                return status
            return body(*arguments) or 0

        return call

    def called(self, name: str) -> int:
        """How often a function was called."""
        return sum(one[0] == name for one in self.log)

    # -- the functions, by what they do

    def current(self) -> int:
        return getattr(self._current, "context", 0)

    def init(self, flags: int) -> None:
        assert flags == 0

    def count(self, out: int) -> None:
        _put(ctypes.c_int, out, len(self.architectures))

    def device(self, out: int, number: int) -> None:
        _put(ctypes.c_int, out, number)

    def name(self, out: int, size: int, device: int) -> None:
        ctypes.memmove(out, f"Fake {device}".encode() + b"\0", 7)

    def total(self, out: int, device: int) -> None:
        _put(ctypes.c_size_t, out, self.memory_size)

    def attribute(self, out: int, attribute: int, device: int) -> int | None:
        cuda = {75: 0, 76: 1}
        if attribute in cuda and isinstance(self.architectures[device], tuple):
            value = self.architectures[device][cuda[attribute]]
        else:
            values = {36: 3_201_000, 37: 6144, 13: 1_980_000, 16: 132, 97: 232_448}
            if isinstance(self.architectures[device], str):
                values = {60: 1_300_000, 59: 8192, 5: 2_100_000, 63: 304}
            if attribute not in values:
                return 1
            value = values[attribute]
        _put(ctypes.c_int, out, value)
        return None

    def properties(self, out: int, device: int) -> None:
        ctypes.memset(out, 0, 1472)
        ctypes.memmove(out + 1160, self.architectures[device].encode() + b"\0",
                       len(self.architectures[device]) + 1)  # fmt: skip

    def retain(self, out: int, device: int) -> None:
        self.retained[device] = self.retained.get(device, 0) + 1
        _put(ctypes.c_void_p, out, 0xC000 + device)

    def release(self, device: int) -> None:
        self.retained[device] -= 1

    def get_context(self, out: int) -> None:
        _put(ctypes.c_void_p, out, self.current())

    def set_context(self, context: int | None) -> None:
        self._current.context = context or 0

    def get_device(self, out: int) -> None:
        _put(ctypes.c_int, out, self.current())

    def wait(self, *_: Any) -> None:
        pass

    def load(self, out: int, image: int, *options: Any) -> int | None:
        data = ctypes.string_at(image)
        if data.startswith(b"bad"):
            if options:
                count, names, values = options
                keys = (ctypes.c_int * count).from_address(names)
                words = (ctypes.c_uint64 * count).from_address(values)
                told = dict(zip(keys, words, strict=True))
                ctypes.memmove(told[5], b"ptxas: line 3: Parsing error\0", 29)
            return 218
        handle = next(self._handles)
        self.loaded[handle] = data
        _put(ctypes.c_void_p, out, handle)
        return None

    def unload(self, module: int) -> None:
        del self.loaded[module]

    def function(self, out: int, module: int, name: int) -> int | None:
        text = ctypes.string_at(name).decode()
        if text not in self.kernels:
            return 500
        handle = next(self._handles)
        self.functions[handle] = (self.current(), module, text)
        _put(ctypes.c_void_p, out, handle)
        return None

    def variable(self, out: int, size: int, module: int, name: int) -> int | None:
        text = ctypes.string_at(name).decode()
        assert module in self.loaded
        if text not in self.variables:
            return 500
        content = self.variables[text]
        if (module, text) not in self.placed:
            address = self.placed[module, text] = next(self._addresses)
            self.memory[address] = np.frombuffer(content, np.uint8).copy()
        _put(ctypes.c_void_p, out, self.placed[module, text])
        _put(ctypes.c_size_t, size, len(content))
        return None

    def function_attribute(self, out: int, attribute: int, function: int) -> None:
        _put(ctypes.c_int, out, self.attributes.get((function, attribute), 0))

    def set_function_attribute(self, function: int, attribute: int, value: int) -> None:
        self.attributes[function, attribute] = value

    def describe(self, out: int, kind: int, rank: int, address: int, *rest: Any) -> None:
        """A descriptor that consists of the arguments, as numbers of 8 bytes."""
        extents, strides, box, steps, *choices = rest
        long, short = ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint)
        lists = [ctypes.cast(extents, long)[:rank], ctypes.cast(strides, long)[: rank - 1]]
        lists += [ctypes.cast(box, short)[:rank], ctypes.cast(steps, short)[:rank]]
        numbers = [kind, rank, address, *itertools.chain(*lists), *choices]
        ctypes.memmove(out, struct.pack(f"<{len(numbers)}Q", *numbers), 8 * len(numbers))

    def launch_extended(
        self, config: int, function: int, parameters: int | None, extra: int | None
    ) -> int | None:
        """The fields of CUlaunchConfig and CUlaunchAttribute by their offsets in cuda.h."""
        numbers = struct.unpack_from("<7I", ctypes.string_at(config, 56))
        stream, attributes, count = struct.unpack_from("<QQI", ctypes.string_at(config, 56), 32)
        told = {}
        for place in range(count):
            content = ctypes.string_at(attributes + 72 * place, 72)
            kind, pad, *value = struct.unpack("<18i", content)
            assert (pad, any(value[3:])) == (0, False)
            told[kind] = tuple(value[:3])
        assert told.get(6, (1, 0, 0)) == (1, 0, 0)
        assert set(told) <= {4, 6}
        assert told
        status = self.launch(function, *numbers, stream, parameters, extra)
        if not status:
            self.launches[-1].dependent, self.launches[-1].cluster = 6 in told, told.get(4)
        return status

    def launch(self, function: int, *rest: Any) -> int | None:
        *sizes, shared, stream, parameters, extra = rest
        cuda = isinstance(self.architectures[0], tuple)
        context, module, name = self.functions[function]
        if context != self.current():
            return WRONG_HANDLE
        assert module in self.loaded
        assert not parameters
        packed = b""
        if extra:
            words = (ctypes.c_uint64 * 5).from_address(extra)
            assert (words[0], words[2]) == (1, 2)
            assert words[4] == (0 if cuda else 3)
            packed = ctypes.string_at(words[1], ctypes.c_size_t.from_address(words[3]).value)
        if min(sizes) < 1 or (stream and stream not in self.streams):
            return 1
        if cuda and shared > 49152 and shared > self.attributes.get((function, 8), 0):
            return 1
        made = Launch(name, tuple(sizes[:3]), tuple(sizes[3:]), shared, stream or 0, packed)
        self.launches.append(made)
        self.clock += 0.002
        try:
            self.kernels[name](self, made)
        except Illegal:
            self.broken = ILLEGAL
        return None

    def alloc(self, out: int, size: int) -> int | None:
        if sum(map(len, self.memory.values())) + size > self.memory_size:
            return 2
        address = next(self._addresses)
        self.memory[address] = np.full(size, 0xA5, np.uint8)
        _put(ctypes.c_void_p, out, address)
        return None

    def free(self, address: int) -> int | None:
        return 1 if self.memory.pop(address, None) is None else None

    def info(self, free: int, total: int) -> None:
        used = sum(map(len, self.memory.values()))
        _put(ctypes.c_size_t, free, self.memory_size - used)
        _put(ctypes.c_size_t, total, self.memory_size)

    def bytes_at(self, address: int, size: int) -> np.ndarray:
        """Bytes of device memory; Illegal if they are not of one allocation."""
        for start, memory in self.memory.items():
            if start <= address and address + size <= start + len(memory):
                return memory[address - start : address - start + size]
        raise Illegal

    def to_device(self, to: int, source: int, size: int, stream: int) -> None:
        self.bytes_at(to, size)[:] = np.frombuffer(ctypes.string_at(source, size), np.uint8)

    def from_device(self, to: int, source: int, size: int, stream: int) -> None:
        ctypes.memmove(to, self.bytes_at(source, size).tobytes(), size)

    def on_device(self, to: int, source: int, size: int, stream: int) -> None:
        self.bytes_at(to, size)[:] = self.bytes_at(source, size).copy()

    def fill(self, to: int, value: int, size: int, stream: int) -> None:
        self.bytes_at(to, size)[:] = value

    def stream(self, out: int, flags: int) -> None:
        handle = next(self._handles)
        self.streams.add(handle)
        _put(ctypes.c_void_p, out, handle)

    def destroy_stream(self, stream: int) -> None:
        self.streams.remove(stream)

    def event(self, out: int, flags: int) -> None:
        handle = next(self._handles)
        self.events[handle] = -1.0
        _put(ctypes.c_void_p, out, handle)

    def destroy_event(self, event: int) -> None:
        del self.events[event]

    def record(self, event: int, stream: int) -> None:
        self.events[event] = self.clock

    def elapsed(self, out: int, start: int, end: int) -> None:
        _put(ctypes.c_float, out, 1000 * (self.events[end] - self.events[start]))

    def version(self, out: int) -> None:
        _put(ctypes.c_int, out, 13000)

    def _words(self, text: str) -> int:
        kept = self._text.setdefault(text, ctypes.create_string_buffer(text.encode()))
        return ctypes.addressof(kept)

    def text_name(self, status: int, out: int | None = None) -> int:
        return self._told(f"ERROR_{_NAMES.get(status, ('?',))[0]}", out)

    def text_words(self, status: int, out: int | None = None) -> int:
        return self._told(_NAMES[status][1], out)

    def _told(self, text: str, out: int | None) -> int:
        if out is None:  # HIP's return the text
            return self._words(text)
        _put(ctypes.c_void_p, out, self._words(text))
        return 0


def _put(kind: Any, address: int, value: Any) -> None:
    kind.from_address(address).value = value


def vadd(gpu: FakeGpu, launch: Launch) -> None:
    """C[i] = A[i] + B[i] over n elements, as the kernel `add` of fly_run's tests."""
    a, b, c, n = struct.unpack("<3Qq", launch.packed[:32])
    count = min(n, launch.grid[0] * launch.block[0])
    first, second, third = (gpu.bytes_at(at, 4 * count).view(np.float32) for at in (a, b, c))
    third[:] = first + second


_WITHOUT_CONTEXT = frozenset(
    ("init", "count", "device", "name", "total", "attribute", "properties", "retain", "release",
     "get_context", "set_context", "get_device", "version")
)  # fmt: skip

_ROLES = {
    "cuInit": "init", "hipInit": "init",
    "cuDeviceGetCount": "count", "hipGetDeviceCount": "count",
    "cuDeviceGet": "device",
    "cuDeviceGetName": "name", "hipDeviceGetName": "name",
    "cuDeviceTotalMem_v2": "total", "hipDeviceTotalMem": "total",
    "cuDeviceGetAttribute": "attribute", "hipDeviceGetAttribute": "attribute",
    "hipGetDevicePropertiesR0600": "properties",
    "cuDevicePrimaryCtxRetain": "retain", "cuDevicePrimaryCtxRelease_v2": "release",
    "cuCtxGetCurrent": "get_context", "hipGetDevice": "get_device",
    "cuCtxSetCurrent": "set_context", "hipSetDevice": "set_context",
    "cuCtxSynchronize": "wait", "hipDeviceSynchronize": "wait",
    "cuModuleLoadDataEx": "load", "hipModuleLoadData": "load",
    "cuModuleUnload": "unload", "hipModuleUnload": "unload",
    "cuModuleGetFunction": "function", "hipModuleGetFunction": "function",
    "cuModuleGetGlobal_v2": "variable", "hipModuleGetGlobal": "variable",
    "cuFuncGetAttribute": "function_attribute", "hipFuncGetAttribute": "function_attribute",
    "cuFuncSetAttribute": "set_function_attribute",
    "cuTensorMapEncodeTiled": "describe",
    "cuLaunchKernelEx": "launch_extended",
    "cuLaunchKernel": "launch", "hipModuleLaunchKernel": "launch",
    "cuMemAlloc_v2": "alloc", "hipMalloc": "alloc",
    "cuMemFree_v2": "free", "hipFree": "free",
    "cuMemGetInfo_v2": "info", "hipMemGetInfo": "info",
    "cuMemcpyHtoDAsync_v2": "to_device", "hipMemcpyHtoDAsync": "to_device",
    "cuMemcpyDtoHAsync_v2": "from_device", "hipMemcpyDtoHAsync": "from_device",
    "cuMemcpyDtoDAsync_v2": "on_device", "hipMemcpyDtoDAsync": "on_device",
    "cuMemsetD8Async": "fill", "hipMemsetD8Async": "fill",
    "cuStreamCreate": "stream", "hipStreamCreateWithFlags": "stream",
    "cuStreamDestroy_v2": "destroy_stream", "hipStreamDestroy": "destroy_stream",
    "cuStreamSynchronize": "wait", "hipStreamSynchronize": "wait",
    "cuEventCreate": "event", "hipEventCreateWithFlags": "event",
    "cuEventRecord": "record", "hipEventRecord": "record",
    "cuEventSynchronize": "wait", "hipEventSynchronize": "wait",
    "cuEventElapsedTime": "elapsed", "hipEventElapsedTime": "elapsed",
    "cuEventDestroy_v2": "destroy_event", "hipEventDestroy": "destroy_event",
    "cuDriverGetVersion": "version", "hipDriverGetVersion": "version",
    "cuGetErrorName": "text_name", "hipGetErrorName": "text_name",
    "cuGetErrorString": "text_words", "hipGetErrorString": "text_words",
}  # fmt: skip
