"""Launching on devices with memory of their own: host arrays are copied there and back, arrays of
the device are used where they are."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from fly_common.errors import Fault, InputError
from fly_common.record import replace
from fly_host import program as steps
from fly_host.readers.values import Extents
from fly_run.devices.gpu.cuda import Cuda
from fly_run.devices.gpu.device import Gpu
from fly_run.emulator.machine import Emulator
from fly_run.launch.arrays.device_arrays import device_array
from fly_run.launch.arrays.memory import Memory, span_of
from fly_run.launch.execution import run
from fly_run.launch.launch import launch
from fly_run.launch.runtime import Opened
from gpu_support.drivers import FakeGpu, Illegal, vadd
from gpu_support.images import FakeImage, kernel
from gpu_support.prototypes import CUDA

KERNELS = {"add": kernel("add", "p", "p", "p", 8), "wild": kernel("wild", "p", "p", "p", 8)}


def illegal(gpu, launch):
    raise Illegal


@pytest.fixture
def gpu():
    made = FakeGpu()
    made.kernels |= {"add": vadd, "wild": illegal}
    return made


@pytest.fixture
def device(gpu):
    return Gpu(Cuda(gpu.library(CUDA)), "sm_90a")


@pytest.fixture
def image(add_program):
    return FakeImage(KERNELS, program=replace(add_program, target="sm_90a"))


def numbers(n: int = 1000) -> dict[str, np.ndarray]:
    a, b = np.random.default_rng(n).random((2, n), np.float32)
    return {"A": a, "B": b, "C": np.zeros(n, np.float32)}


def on_device(gpu, array, place=("cuda", 0)):
    """A copy of an array in the device's memory."""
    address = 0x9000_0000_0000 + 0x1_0000_0000 * len(gpu.memory)
    gpu.memory[address] = np.frombuffer(array.tobytes(), np.uint8).copy()
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return device_array(place, address, array.shape, strides, array.dtype.str)


def test_host_arrays_are_copied_there_and_back(gpu, device, image):
    given = numbers()
    opened = Opened(device, shared=False)
    outcome = opened.run(image.program, image, given)
    assert (given["C"] == given["A"] + given["B"]).all()
    assert outcome.results is None
    (ran,) = outcome.ran
    assert (ran.grid, ran.block, ran.instructions) == ((16, 1, 1), (64, 1, 1), None)
    assert not gpu.memory
    assert gpu.called("cuMemcpyDtoHAsync_v2") == 1  # only what is written


def test_overlapping_arrays_are_one_region(gpu, device, image):
    whole = np.arange(3000, dtype=np.float32)
    given = {"A": whole[:1000], "B": whole[500:1500], "C": whole[2000:]}
    Opened(device, shared=False).run(image.program, image, given)
    wanted = np.arange(1000) + np.arange(500, 1500)
    assert (whole[2000:] == wanted).all()
    assert (whole[:2000] == np.arange(2000)).all()
    assert gpu.called("cuMemAlloc_v2") == 2
    a, b, _ = struct.unpack_from("<3Q", gpu.launches[0].packed)
    assert b - a == 2000


def test_negative_strides_begin_at_element_zero(device):
    array = np.arange(10, dtype=np.float32)[::-1]
    memory = Memory(device)
    adopted = memory.adopt(span_of(array), "A")
    (start,) = device._own
    assert adopted.address == start + 36
    memory.close()
    assert not device._own


def test_memory_between_the_elements_survives(gpu, device):
    """A strided array is copied back with what lies between its elements."""
    whole = np.arange(20, dtype=np.float32)
    memory = Memory(device)
    span = span_of(whole[::2])
    address = memory.adopt_all([("C", span, True)])[0]
    gpu.bytes_at(address, 76).view(np.float32)[::2] = -1
    memory.to_host()
    assert (whole[::2] == -1).all()
    assert (whole[1::2] == np.arange(1, 20, 2)).all()


def test_what_the_program_makes_lies_on_the_device_and_comes_back(gpu, device, image):
    """A temporary and a result: C = (A + B) + B."""
    program = image.program
    buffers = (
        steps.Buffer("t", "f32", (0,), (3,), 0),
        steps.Buffer("r", "f32", (0,), (3,), 0),
    )
    words = program.steps[0].arguments

    def step(a, b, c):
        names = [(steps.Word("pointer", name),) for name in (a, b, c)]
        return replace(program.steps[0], arguments=(*names, words[3]))

    made = replace(
        program,
        parameters=program.parameters[:2],
        tensors=buffers,
        steps=(
            steps.Allocate("t"),
            step("A", "B", "t"),
            steps.Allocate("r"),
            step("t", "B", "r"),
            steps.Free("t"),
        ),
        results=steps.Operand("tensor", "r"),
        result_names=("r",),
    )
    given = numbers()
    del given["C"]
    results = Opened(device, shared=False).run(made, replace(image, program=made), given).results
    np.testing.assert_array_equal(results, given["A"] + given["B"] + given["B"])
    assert gpu.called("cuMemcpyDtoHAsync_v2") == 1  # the result; the temporary was freed
    assert gpu.called("cuMemcpyHtoDAsync_v2") == 2
    assert not gpu.memory


def test_library_calls_see_what_kernels_wrote_and_kernels_what_they_wrote(device):
    host = np.zeros(4, np.float32)
    memory = Memory(device)
    (address,) = memory.adopt_all([("C", span_of(host), True)])
    twos = np.full(4, 2, np.float32)
    device.copy(address, twos.ctypes.data, 16, "to device")
    memory.to_host()
    assert (host == 2).all()
    host += 1
    memory.to_device()
    device.copy(twos.ctypes.data, address, 16, "from device")
    assert (twos == 3).all()
    # What such a call returns may be a view of its argument.
    part = memory.adopt(span_of(host[1:3]), "r")
    assert part.address == address + 4
    part.release()
    same = memory.adopt(span_of(host), "same")
    assert same.address == address
    same.release()
    assert list(device._own) == [address]
    memory.release(address)
    assert not device._own
    memory.close()


def test_a_fault_frees_everything_and_is_what_is_raised(gpu, device, image):
    program = image.program
    broken = replace(program, steps=(replace(program.steps[0], kernel="wild"),))
    given = numbers()
    with pytest.raises(Fault, match=r"^kernel wild: cuCtxSynchronize failed: ERROR_ILLEGAL"):
        Opened(device, shared=False).run(broken, replace(image, program=broken), given)
    assert (given["C"] == 0).all()
    assert not device._own


def test_device_arrays_are_used_where_they_are(gpu, device, image):
    """Nothing is copied, and nothing waits."""
    given = numbers()
    there = {name: on_device(gpu, array) for name, array in given.items()}
    opened = Opened(device, shared=False)
    opened.module(image).function("add")
    gpu.log.clear()
    (ran,) = opened.run(image.program, image, there).ran
    names = {one[0] for one in gpu.log}
    assert names == {"cuCtxGetCurrent", "cuCtxSetCurrent", "cuLaunchKernel"}
    assert ran.kernel == "add"
    found = gpu.memory[there["C"].ctypes.data].view(np.float32)
    assert (found == given["A"] + given["B"]).all()


def test_a_kernel_by_its_own_arguments(gpu, device, image):
    given = numbers()
    n = np.int64(1000)
    launch(image, "add", 16, 64, [*given.values(), n], device=device)
    assert (given["C"] == given["A"] + given["B"]).all()
    there = [on_device(gpu, array) for array in given.values()]
    waits = gpu.called("cuCtxSynchronize")
    launch(image, "add", 16, 64, [*there, n], device=device)
    assert (gpu.memory[there[2].ctypes.data].view(np.float32) == given["C"]).all()
    assert gpu.called("cuCtxSynchronize") <= waits + 1  # the module's end
    with pytest.raises(InputError, match="a0 is on cuda:0, but a2 is in host memory"):
        launch(image, "add", 16, 64, [*there[:2], given["C"], n], device=device)


def test_arrays_in_different_places_are_refused(gpu, device, image):
    given = numbers()
    opened = Opened(device, shared=False)
    with pytest.raises(InputError) as caught:
        opened.run(image.program, image, {**given, "B": on_device(gpu, given["B"])})
    assert caught.value.message == "A is in host memory, but B is on cuda:0"
    assert caught.value.hint == "all arrays of a call must be in one place: A.to('cuda:0')"
    there = {name: on_device(gpu, array, ("cuda", 1)) for name, array in given.items()}
    with pytest.raises(InputError) as caught:
        opened.run(image.program, image, there)
    assert caught.value.message == ("argument A is on cuda:1, but cuda:0 (Fake 0) has other memory")
    there["A"] = on_device(gpu, given["A"])
    with pytest.raises(InputError, match="A is on cuda:0, but B is on cuda:1"):
        opened.run(image.program, image, there)


def test_device_arrays_on_the_emulator_are_refused(gpu, add):
    there = {name: on_device(gpu, array) for name, array in numbers().items()}
    device = Emulator("gfx942")
    with pytest.raises(InputError) as caught:
        run(add.program, add, device.load(add), device, there)
    assert caught.value.message == "argument A is on cuda:0, but emulator works on host memory"
    assert caught.value.hint == "pass A.cpu(), or choose the device: cuda:0"


def test_the_elements_of_a_device_array_are_not_read():
    array = device_array(("cuda", 1), 0x1000, (3, 4), (1, 3), "float32")
    assert repr(array) == str(array) == f"{array}" == "<float32 array of shape (3, 4) on cuda:1>"
    assert array.view("u4").place == ("cuda", 1)
    for read in (
        lambda: array[0], lambda: array + 1, lambda: list(array), lambda: np.sum(array),
        lambda: bool(array), lambda: array.tolist(), lambda: array.item(), lambda: array.copy(),
        lambda: np.array_equal(array, array), lambda: array.astype("f8"), lambda: 1 in array,
    ):  # fmt: skip
        with pytest.raises(InputError, match="are in the memory of cuda:1"):
            read()


def test_device_arrays_are_described_as_others():
    array = device_array(("cuda", 0), 0x2000, (3, 4), (-4, 1), "u2", writable=False)
    assert (array.strides, array.itemsize, array.flags.writeable) == ((-8, 2), 2, False)
    span = span_of(array)
    assert (span.host, span.nbytes, span.origin, span.place) == (0x2000 - 16, 24, 16, ("cuda", 0))
    empty = device_array(("cuda", 0), 0, (0, 4), (4, 1), "f4")
    assert span_of(empty).nbytes == 0
    assert Extents(empty.shape, (4, 1)).shape == (0, 4)


def test_grids_of_cuda_count_blocks(device, image):
    given = numbers(1)
    with pytest.raises(InputError, match="add: 65536 workgroups in y; sm_90a has 65535"):
        launch(image, "add", (1, 65536), 64, [*given.values(), np.int64(1)], device=device)
    # Work items are not limited.
    launch(image, "add", (1 << 28, 1), 64, [*given.values(), np.int64(1)], device=device)
