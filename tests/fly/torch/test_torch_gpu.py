"""torch's tensors on a GPU: used where they are, by the device that they are on.

There is no GPU here. The tensors describe memory of the fake one, and a Python function stands in
for the kernel; what is tested is which driver's functions are called, with what.
"""

from __future__ import annotations

import inspect
import struct
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fly_common.errors import FlyError, InputError, UsageError
from fly_image.image import POINTER
from fly_run.devices.gpu import device as gpu_device
from fly_run.devices.gpu import driver as drivers
from fly_run.devices.gpu.hip import Hip
from fly_run.launch import runtime
from gpu_support.drivers import FakeGpu
from gpu_support.prototypes import HIP

import fly
import fly.expr as fx
from fly.call.arrays.array_kinds import TORCH, TorchArrays, arrays_for
from fly.call.arrays.views import as_value


class OnGpu(torch.Tensor):
    """A tensor of the device cuda, without CUDA."""

    address: int

    @staticmethod
    def __new__(cls, address: int, shape, strides, dtype, number: int = 0):
        made = torch.Tensor._make_wrapper_subclass(
            cls, shape, strides=strides, dtype=dtype, device=f"cuda:{number}"
        )
        made.address = address
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise AssertionError(f"{function} on a tensor of the GPU")

    def data_ptr(self) -> int:
        return self.address


@fly.kernel
def add_kernel(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * fx.block_dim.x + fx.thread_idx.x
    if i < n:
        c[i] = a[i] + b[i]


@fly.jit
def add(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
    n = a.shape[0]
    add_kernel(a, b, c, n).launch(grid=(n + 63) // 64, block=64, stream=stream)


def added(gpu: FakeGpu, launch) -> None:
    addresses = struct.unpack_from("<Q8xQ8xQ", launch.packed)  # each before its extent
    n = 100
    a, b, c = (gpu.bytes_at(at, 4 * n).view(np.float32) for at in addresses)
    c[:] = a + b


@pytest.fixture
def gpu(monkeypatch):
    runtime.close_all()
    made = FakeGpu(architectures=("gfx942", "gfx942"))
    made.kernels["add_kernel"] = added
    library = made.library(HIP)
    monkeypatch.setattr(gpu_device, "_drivers", {})
    monkeypatch.setattr(drivers, "find", lambda names: library if names == Hip.LIBRARIES else None)
    yield made
    runtime.close_all()


def tensors(gpu: FakeGpu, number: int = 0) -> list[OnGpu]:
    found = []
    for place in range(3):
        address = 0x9000_0000_0000 + (place << 32)
        gpu.memory[address] = np.arange(100, dtype=np.float32).view(np.uint8).copy() + 0
        found.append(OnGpu(address, (100,), (1,), torch.float32, number))
    return found


def result(gpu: FakeGpu) -> np.ndarray:
    return gpu.memory[0x9002_0000_0000].view(np.float32)


def test_tensors_on_the_gpu_are_used_where_they_are(gpu):
    given = tensors(gpu)
    for _ in range(3):
        gpu.memory[0x9002_0000_0000][:] = 0
        add(*given)
        assert (result(gpu) == 2 * np.arange(100)).all()
    assert gpu.called("hipMemcpyHtoDAsync") == gpu.called("hipMalloc") == 0
    assert gpu.called("hipDeviceSynchronize") == 0
    assert gpu.called("hipModuleLoadData") == 1


def test_they_choose_the_device(gpu):
    add(*tensors(gpu, 1))
    (opened,) = runtime._opened.values()
    assert opened.device.name == "hip:1 (Fake 1)"


def test_the_current_stream_of_torch(gpu, monkeypatch):
    gpu.streams |= {0x50, 0x60}
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda n: 0x50, raising=False)
    given = tensors(gpu)
    add(*given)
    add(*given, stream=SimpleNamespace(cuda_stream=0x60))
    add(*given, stream=0x60)
    assert [launch.stream for launch in gpu.launches] == [0x50, 0x60, 0x60]


def test_tensors_in_several_places_are_refused(gpu):
    a, b, c = tensors(gpu)
    with pytest.raises(InputError, match="a is on cuda:0, but b is in host memory") as caught:
        add(a, torch.zeros(100), c)
    assert caught.value.hint == "all arrays of a call must be in one place: b.to('cuda:0')"
    other = OnGpu(b.address, (100,), (1,), torch.float32, 1)
    with pytest.raises(InputError, match="a is on cuda:0, but b is on cuda:1"):
        add(a, other, c)
    assert not gpu.launches


def test_a_device_of_another_number_is_refused(gpu):
    compiled = add.compile(*tensors(gpu))
    values = dict(zip("abc", tensors(gpu, 1), strict=True))
    with pytest.raises(
        InputError, match=r"argument a is on cuda:1, but hip:0 \(Fake 0\) has other"
    ):
        compiled.run(values, device="hip:0")
    with pytest.raises(InputError, match="argument a is on cuda:1, but emulator works on host mem"):
        compiled.run(values, device="emulator")
    compiled.run(values, device="hip")
    assert len(gpu.launches) == 1


def test_host_tensors_are_copied(gpu):
    a, b, c = (torch.arange(100, dtype=torch.float32) for _ in range(3))
    for _ in range(3):
        c.zero_()
        add(a, b, c)
        assert (c == 2 * a).all()
    assert not gpu.memory
    assert add._native is None  # host arrays are staged by Python


def test_a_kernel_by_its_own_arguments(gpu):
    given = iter(tensors(gpu))
    compiled = add.compile(*tensors(gpu))
    arguments = [
        next(given) if argument.kind == POINTER else bytes(argument.size)
        for argument in compiled.kernels["add_kernel"].arguments
    ]
    compiled.launch(None, 2, 64, arguments)
    assert (result(gpu) == 2 * np.arange(100)).all()
    assert gpu.called("hipDeviceSynchronize") == 0


def test_types_and_strides_are_described():
    for dtype, name in ((torch.bfloat16, "uint16"), (torch.float8_e4m3fn, "uint8"),
                        (torch.bool, "bool"), (torch.int64, "int64")):  # fmt: skip
        array = as_value(OnGpu(0x1000, (3, 5), (7, 1), dtype), "a")
        assert (array.dtype.name, array.shape, array.place) == (name, (3, 5), ("cuda", 0))
        assert array.strides == (7 * array.itemsize, array.itemsize)
    with pytest.raises(UsageError, match=r"elements of type torch\.complex64 are not supported"):
        as_value(OnGpu(0x1000, (3,), (1,), torch.complex64), "a")


def test_other_devices_are_refused():
    with pytest.raises(UsageError, match="argument a is on meta, but kernels read host memory"):
        as_value(torch.empty(3, device="meta"), "a")


def test_what_a_program_makes_is_on_the_tensors_device(monkeypatch):
    found = arrays_for([1, OnGpu(0x1000, (3,), (1,), torch.float32, 1)])
    assert found == TorchArrays(torch.device("cuda:1"))
    assert arrays_for([torch.zeros(3)]) is TORCH
    asked = []
    empty = torch.empty

    def on_gpu(elements, dtype, device):
        asked.append((elements, dtype, device))
        return empty(elements, dtype=dtype)

    monkeypatch.setattr(torch, "empty", on_gpu)
    made, _ = found.empty("f32", (2, 3), (3, 1), 6)
    assert asked[0] == (6, torch.float32, torch.device("cuda:1"))
    assert {device for *_, device in asked} == {torch.device("cuda:1")}
    assert tuple(made.shape) == (2, 3)
    assert sys.modules["torch"] is torch


@pytest.mark.parametrize("status", [1, 999])
def test_errors_of_native_launches_have_the_kernels_line(gpu, status):
    given = tensors(gpu)
    for _ in range(3):
        add(*given)
    gpu.fail["hipModuleLaunchKernel"] = status
    with pytest.raises(FlyError, match="kernel add_kernel: hipModuleLaunchKernel failed") as caught:
        add(*given)
    assert caught.value.place is not None
    assert caught.value.place.text == add_kernel_text()
    (launch,) = caught.value.related or ()
    assert launch.message == "launched"
    assert ".launch(grid=(n + 63) // 64" in (launch.place.text or "")


def add_kernel_text() -> str:
    lines, _ = inspect.getsourcelines(add_kernel.function)
    return next(line.rstrip() for line in lines if line.startswith("def "))
