"""What native code launches by: contexts of threads, streams, errors, and what lives how long."""

from __future__ import annotations

import ctypes
import gc
import struct
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from fly_common.errors import Fault, InputError
from fly_common.record import replace
from fly_host.native import calling, specialisation
from fly_host.native import library as libraries
from fly_host.native.unavailable import Unavailable
from fly_run.devices.gpu.cuda import Cuda
from fly_run.devices.gpu.device import Gpu
from fly_run.devices.gpu.hip import Hip
from fly_run.devices.protocol import FROM_DEVICE, TO_DEVICE
from fly_run.launch import native
from fly_run.launch.runtime import Opened
from gpu_support.drivers import FakeGpu, vadd
from gpu_support.images import FakeImage, kernel
from gpu_support.prototypes import CUDA, HIP, prototypes


@pytest.fixture(params=[Cuda, Hip], ids=["cuda", "hip"])
def kind(request):
    return request.param


class Case:
    """A device, and native code for the program `add` whose tensors' addresses are taken for the
    device's."""

    def __init__(self, kind: type, program, **limits):
        self.kind = kind
        architectures = ((9, 0), (9, 0)) if kind is Cuda else ("gfx942", "gfx942")
        self.gpu = FakeGpu(architectures=architectures)
        self.gpu.kernels["add"] = lambda *_: None
        target = "sm_90a" if kind is Cuda else "gfx942"
        driver = kind(self.gpu.library(CUDA if kind is Cuda else HIP))
        self.device = Gpu(driver, target, 1)
        program = replace(program, target=target)
        self.image = FakeImage({"add": kernel("add", "p", "p", "p", 8, **limits)}, target, program)
        self.module = self.device.load(self.image)
        self.arrays = [np.zeros(100, np.float32) for _ in range(3)]
        limits = native.limits_of(program, self.image)
        made = specialisation.specialise(program, self.arrays, limits)
        self.entry = self.device.driver_entry([self.module.function("add")])
        self.native = calling.compile(made, self.entry)

    @property
    def own(self) -> int:
        """The device's context."""
        return self.device.context.handle

    def call(self):
        return self.native.call(*self.arrays)


@pytest.fixture
def case(kind, add_program):
    return Case(kind, add_program)


def test_the_driver_gets_the_launch(case):
    case.gpu._current.context = case.own
    assert case.call() is None
    (launch,) = case.gpu.launches
    assert (launch.kernel, launch.grid, launch.block) == ("add", (2, 1, 1), (64, 1, 1))
    words = np.frombuffer(launch.packed, np.int64).tolist()
    assert words == [*(array.ctypes.data for array in case.arrays), 100]
    assert case.gpu.log[-1][0] == case.kind.CALLS["launch"].name


@pytest.mark.parametrize("other", [False, True])
def test_a_kernel_that_waits_for_the_launch_before(add_program, other):
    """CUDA gets an attribute; in a thread with another context too."""
    case = Case(Cuda, add_program, dependent=True)
    case.gpu._current.context = 0xABC if other else case.own
    case.call()
    (launch,) = case.gpu.launches
    assert launch.dependent
    assert (launch.grid, launch.block, launch.stream) == ((2, 1, 1), (64, 1, 1), 0)
    assert np.frombuffer(launch.packed, np.int64)[3] == 100
    assert case.gpu.called("cuLaunchKernel") == 0
    assert case.gpu.called("cuLaunchKernelEx") == 1 + other


def test_a_kernel_that_waits_on_a_driver_without_dependent_launches(add_program, monkeypatch):
    monkeypatch.setattr(Cuda, "extended_launch", lambda self: None)
    case = Case(Cuda, add_program, dependent=True)
    case.gpu._current.context = case.own
    case.call()
    assert [launch.dependent for launch in case.gpu.launches] == [False]


def test_other_vendors_have_no_dependent_launches(add_program):
    case = Case(Hip, add_program, dependent=True)
    case.gpu._current.context = case.own
    case.call()
    assert [launch.dependent for launch in case.gpu.launches] == [False]


def test_a_thread_with_another_context_gets_it_back(case):
    """Each launch goes to the kernel's own context."""
    other = 0xABC if case.kind is Cuda else 0
    case.gpu._current.context = other
    case.gpu.log.clear()
    case.call()
    assert case.gpu.current() == other
    assert len(case.gpu.launches) == 1
    names = [case.kind.CALLS[role].name for role in ("launch", "current", "switch", "launch",
                                                     "switch")]  # fmt: skip
    assert [one[0] for one in case.gpu.log] == names


def test_a_thread_without_a_context(case):
    thread = threading.Thread(target=case.call)
    thread.start()
    thread.join()
    assert len(case.gpu.launches) == 1


def test_an_error_in_the_right_context_is_not_tried_again(case):
    case.gpu._current.context = case.own
    name = case.kind.CALLS["launch"].name
    case.gpu.fail[name] = 400
    before = case.gpu.called(name)
    with pytest.raises(InputError) as caught:
        case.call()
    assert caught.value.message == (
        f"kernel add: {name} failed: ERROR_INVALID_HANDLE: invalid resource handle"
    )
    assert case.gpu.called(name) == before + 1
    case.gpu.fail[case.kind.CALLS["current"].name] = 1
    with pytest.raises(InputError, match=f"kernel add: {name} failed: ERROR_INVALID_HANDLE"):
        case.call()


def test_a_fault_that_a_launch_reports(case):
    case.gpu._current.context = case.own
    case.gpu.fail[case.kind.CALLS["launch"].name] = 700
    with pytest.raises(Fault, match=r"^kernel add: "):
        case.call()


def test_a_fault_of_native_launches_names_what_they_may_launch(case):
    case.gpu._current.context = case.own
    case.call()
    case.gpu.broken = 700
    with pytest.raises(Fault, match=r"^kernel add: "):
        case.device.synchronize()


def test_a_fault_of_native_and_other_launches(add_program):
    case = Case(Hip, add_program)
    case.gpu.sticky = False
    names = [f"k{number}" for number in range(12)]
    case.device.context.launches_natively(names)
    case.device.context.launched("other")
    for first in ("other, add, k0", "add, k0, k1"):
        case.gpu.broken = 719
        with pytest.raises(Fault, match=f"^one of the kernels {first}, .* and others: hipDevice"):
            case.device.synchronize()
        case.device.synchronize()


def test_prepared_calls_outlive_the_device(case):
    case.gpu._current.context = case.own
    handle = case.native.prepare(*case.arrays)
    case.module.unload()
    case.device.close()
    device, case.device, case.module, case.native, case.entry = case.device, *(None,) * 4
    handles = device.context.handle
    del device
    gc.collect()
    case.gpu._current.context = handles
    assert handle() is None
    assert len(case.gpu.launches) == 1
    assert len(case.gpu.loaded) == 1
    del handle
    gc.collect()
    assert not case.gpu.loaded


def test_the_current_stream_is_torchs(case, monkeypatch):
    asked = []

    def raw(number: int) -> int:
        asked.append(number)
        return 0x77

    case.gpu.streams.add(0x77)
    monkeypatch.setitem(
        sys.modules, "torch", SimpleNamespace(_C=SimpleNamespace(_cuda_getCurrentRawStream=raw))
    )
    entry = case.device.driver_entry(case.entry and [case.module.function("add")])
    assert entry.stream is not None
    assert entry.stream() == 0x77
    assert asked == [1]
    case.device.launch(case.module.function("add"), (1, 1, 1), (1, 1, 1), bytes(32))
    assert case.gpu.launches[-1].stream == 0x77
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(_C=SimpleNamespace()))
    assert case.device.driver_entry([case.module.function("add")]).stream is None


def test_shared_memory_is_allowed_ahead(add_program):
    case = Case(Cuda, add_program)
    function = case.module.function("add")
    assert case.gpu.attributes[function.handle, 8] == 232_448


def test_host_arrays_have_no_native_code(case):
    """They are staged by Python."""
    opened = Opened(case.device, shared=False)
    with pytest.raises(Unavailable, match=r"A is not in the memory of .*:1 \(Fake 1\)"):
        native.compile(case.image.program, case.image, case.arrays, lambda: opened)


def test_the_address_is_a_function_of_this_process(case):
    launch = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *(ctypes.c_uint,) * 7,
                              *(ctypes.c_void_p,) * 3)(case.entry.function)  # fmt: skip
    case.gpu._current.context = case.own
    extra = (ctypes.c_uint64 * 5)(1, 0, 2, ctypes.addressof(ctypes.c_uint64(0)), case.kind.END)
    assert launch(case.entry.kernels[0], 1, 2, 3, 4, 5, 6, 7, None, None, extra) == 0
    made = case.gpu.launches[0]
    assert (made.grid, made.block, made.shared) == ((1, 2, 3), (4, 5, 6), 7)


# -- a shared library


def trampolines(header: str) -> str:
    """LLVM IR of a library with a driver's functions, each of which jumps to the address in its
    place of @table."""
    kinds = {ctypes.c_void_p: "ptr", ctypes.c_size_t: "i64", ctypes.c_ubyte: "i8"}
    declared = prototypes(header)
    lines = [f"@table = global [{len(declared)} x ptr] zeroinitializer"]
    for number, (name, (result, parameters)) in enumerate(declared.items()):
        words = [f"{kinds.get(one, 'i32')} %a{place}" for place, one in enumerate(parameters)]
        given, made = ", ".join(words), kinds.get(result, "i32")
        lines += [
            f"define {made} @{name}({given}) {{",
            f"  %at = getelementptr ptr, ptr @table, i64 {number}",
            "  %to = load ptr, ptr %at",
            f"  %made = tail call {made} %to({given})",
            f"  ret {made} %made",
            "}",
        ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("kind", "header"), [(Cuda, CUDA), (Hip, HIP)], ids=["cuda", "hip"])
def test_a_driver_that_is_a_shared_library(kind, header, add_program, monkeypatch):
    """The functions as the dynamic loader finds them, called from Python and from native code."""
    made = FakeGpu.library

    def library(gpu: FakeGpu, text: str) -> ctypes.CDLL:
        functions = made(gpu, text)
        loaded = libraries.load(trampolines(text), specialisation.Options())
        loaded.functions = functions  # the table holds their addresses
        names = list(prototypes(text))
        table = (ctypes.c_void_p * len(names)).in_dll(loaded, "table")
        for number, name in enumerate(names):
            table[number] = ctypes.cast(getattr(functions, name), ctypes.c_void_p).value
        return loaded

    monkeypatch.setattr(FakeGpu, "library", library)
    case = Case(kind, add_program)
    case.gpu.kernels["add"] = vadd
    n, device = 100, case.device
    host = np.arange(n, dtype=np.float32)
    places = [device.alloc(4 * n) for _ in range(3)]
    for place in places[:2]:
        device.copy(place, host.ctypes.data, 4 * n, TO_DEVICE)
    start = device.event()
    packed = struct.pack("<3Qq", *places, n)
    device.launch(case.module.function("add"), (2, 1, 1), (64, 1, 1), packed)
    end = device.event()
    found = np.zeros(n, np.float32)
    device.copy(found.ctypes.data, places[2], 4 * n, FROM_DEVICE)
    device.synchronize(end)
    assert (found == 2 * host).all()
    assert device.elapsed(start, end) == pytest.approx(0.002)
    case.gpu.kernels["add"] = lambda *_: None
    case.call()
    assert [launch.kernel for launch in case.gpu.launches] == ["add", "add"]
    name = kind.CALLS["wait"].name
    case.gpu.fail[name] = 719
    with pytest.raises(Fault, match=f"{name} failed: ERROR_LAUNCH_FAILED: unspecified launch fail"):
        device.synchronize()
