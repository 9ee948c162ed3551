"""The device behind a driver: memory, launches, order, faults. Its memory is not host memory."""

from __future__ import annotations

import dataclasses
import gc
import os
import struct
import threading

import numpy as np
import pytest
from fly_common.errors import InputError, MissingError, UsageError
from fly_common.record import replace
from fly_run.devices.gpu.cuda import Cuda
from fly_run.devices.gpu.hip import Hip
from fly_run.devices.gpu.order import handle_of
from fly_run.devices.protocol import ON_DEVICE, TO_DEVICE
from gpu_support.images import FakeImage

from .gpu_kernels import KERNELS, MATRIX, ONE, image, opened, run_add


def test_a_kernel_runs(kind):
    gpu, device = opened(kind)
    assert device.name == f"{kind.NAME}:0 (Fake 0)"
    assert run_add(gpu, device)
    assert not gpu.memory
    (launch,) = gpu.launches
    assert (launch.grid, launch.block, launch.shared) == ((16, 1, 1), (64, 1, 1), 0)


def test_memory_is_zeroed_and_copied_on_the_device(kind):
    gpu, device = opened(kind)
    a, b = device.alloc(16), device.alloc(16)
    assert not gpu.bytes_at(a, 16).any()
    text = np.frombuffer(b"0123456789abcdef", np.uint8)
    device.copy(a, text.ctypes.data, 16, TO_DEVICE)
    device.copy(b + 4, a, 8, ON_DEVICE)
    assert gpu.bytes_at(b, 16).tobytes() == b"\0\0\0\00001234567".replace(b"00", b"0") + b"\0" * 4
    device.copy(b, a, 0, ON_DEVICE)
    device.free(a)
    with pytest.raises(UsageError, match="no memory was allocated at 0x"):
        device.free(a)
    device.close()
    assert not gpu.memory


def test_memory_of_no_bytes_has_an_address(kind):
    gpu, device = opened(kind)
    assert device.alloc(0) in gpu.memory


def test_host_memory_is_not_adopted(kind):
    _, device = opened(kind)
    assert device.own_memory
    with pytest.raises(MissingError, match=r"\(Fake 0\) does not see host memory") as caught:
        device.adopt(4096, 16)
    assert caught.value.hint == "allocate memory of the device, and copy: alloc, copy"
    with pytest.raises(MissingError):
        device.adopt_all([("A", 4096, 16, True)])
    assert device.adopt_all([]) == []
    with pytest.raises(UsageError, match="no buffer begins at 0x1000"):
        device.release_all([4096])


def test_out_of_memory_says_what_there_is(kind):
    _, device = opened(kind, memory_size=1000)
    device.alloc(600)
    with pytest.raises(MissingError) as caught:
        device.alloc(500, "C")
    name = kind.CALLS["alloc"].name
    assert caught.value.message == (
        f"there is no memory for 500 bytes for C: {name} failed: ERROR_OUT_OF_MEMORY: out of memory"
    )
    assert caught.value.hint == "400 of 1000 bytes are free"


def test_a_device_is_chosen_by_the_target(kind):
    target = {Cuda: "sm_80", Hip: "gfx90a"}[kind]
    _, device = opened(kind, target, {Cuda: 1, Hip: None}[kind])
    assert device.ordinal == {Cuda: 1, Hip: 2}[kind]
    assert device.place == ("cuda", device.ordinal)
    with pytest.raises(MissingError) as caught:
        opened(kind, "sm_120a" if kind is Cuda else "gfx1100")
    assert caught.value.message.startswith("no device runs code for ")
    assert f"{kind.NAME}:1 is " in caught.value.message
    with pytest.raises(MissingError, match=f"there is no {kind.NAME}:7: .* has [23] devices"):
        opened(kind, ordinal=7)
    with pytest.raises(MissingError, match="there is no device"):
        opened(kind, architectures=())


def test_code_for_another_chip_is_refused(kind):
    _, device = opened(kind)
    with pytest.raises(InputError, match="the code is for sm_120a, but "):
        device.load(FakeImage(KERNELS, "sm_120a"))


def test_code_that_the_driver_refuses(kind):
    gpu, device = opened(kind)
    with pytest.raises(InputError, match="failed: ERROR_INVALID_PTX") as caught:
        device.load(image(device, data=b"bad"))
    if kind is Cuda:
        assert caught.value.hint == "ptxas: line 3: Parsing error"
    gpu.fail[kind.CALLS["load"].name] = 209
    with pytest.raises(InputError, match="no kernel image is available") as caught:
        device.load(image(device))
    assert caught.value.hint.startswith(f"the code is for {device.target}; {kind.NAME}:0 is ")


def test_a_kernel_that_the_module_lacks(kind):
    gpu, device = opened(kind)
    del gpu.kernels["none"]
    module = device.load(image(device))
    with pytest.raises(InputError, match=r"kernel none: .* failed: ERROR_NOT_FOUND"):
        module.function("none")
    with pytest.raises(InputError, match="no kernel 'other'"):
        module.function("other")
    assert module.function("add") is module.function("add")


def test_a_module_is_unloaded_when_its_functions_are_gone(kind):
    gpu, device = opened(kind)
    module = device.load(image(device))
    function = module.function("none")
    module.unload()
    del module
    gc.collect()
    assert len(gpu.loaded) == 1
    device.launch(function, ONE, ONE, b"")
    del function
    gc.collect()
    assert not gpu.loaded


def test_a_kernel_without_arguments_and_an_empty_grid(kind):
    gpu, device = opened(kind)
    function = device.load(image(device)).function("none")
    device.launch(function, ONE, ONE, b"")
    device.launch(function, (0, 1, 1), ONE, b"")
    assert [launch.packed for launch in gpu.launches] == [b""]


@pytest.mark.parametrize("there", [True, False])
def test_a_kernel_that_waits_for_the_launch_before(monkeypatch, there):
    gpu, device = opened(Cuda)
    if not there:
        monkeypatch.setattr(Cuda, "extended_launch", lambda self: None)
    function = device.load(image(device)).function("add")
    function.interface = dataclasses.replace(function.interface, dependent=True)
    stream = device.stream()
    size = 64
    addresses = [device.alloc(4 * size) for _ in range(3)]
    packed = struct.pack("<4Q", *addresses, size)
    device.launch(function, (1, 1, 1), (size, 1, 1), packed, 256, stream)
    (launch,) = gpu.launches
    assert launch.dependent is there
    assert (launch.grid, launch.block, launch.shared) == ((1, 1, 1), (size, 1, 1), 256)
    assert (launch.stream, launch.packed) == (stream.handle, packed)


@pytest.mark.parametrize("dependent", [True, False])
def test_clusters_that_the_launch_says(dependent):
    gpu, device = opened(Cuda)
    function = device.load(image(device)).function("none")
    function.interface = dataclasses.replace(function.interface, dependent=dependent)
    device.launch(function, (4, 2, 1), ONE, b"", cluster=(2, 1, 1))
    (launch,) = gpu.launches
    assert (launch.grid, launch.cluster, launch.dependent) == ((4, 2, 1), (2, 1, 1), dependent)


@pytest.mark.parametrize("old", [True, False])
def test_clusters_that_a_driver_can_not_be_told(monkeypatch, old):
    gpu, device = opened(Cuda if old else Hip)
    monkeypatch.setattr(Cuda, "extended_launch", lambda self: None)
    function = device.load(image(device)).function("none")
    with pytest.raises(UsageError, match="launches no clusters that a kernel does not say"):
        device.launch(function, (4, 1, 1), ONE, b"", cluster=(2, 1, 1))
    assert not gpu.launches


def test_much_shared_memory_is_asked_for_once():
    gpu, device = opened(Cuda)
    function = device.load(image(device)).function("shared")
    packed = struct.pack("<Q", 0)
    device.launch(function, ONE, ONE, packed, 1024)
    assert gpu.called("cuFuncSetAttribute") == 0
    gpu.attributes[function.handle, 1] = 1024
    for _ in range(2):
        device.launch(function, ONE, ONE, packed, 200_000)
    assert gpu.called("cuFuncSetAttribute") == 1
    assert gpu.attributes[function.handle, 8] == 232_448 - 1024
    with pytest.raises(InputError, match="kernel shared: cuLaunchKernel failed: ERROR_INVALID_VA"):
        device.launch(function, ONE, ONE, packed, 232_000)


def test_streams_and_events(kind):
    gpu, device = opened(kind)
    stream = device.stream()
    assert run_add(gpu, device, 100, stream)
    assert gpu.launches[-1].stream == stream.handle
    start = device.event(stream)
    run_add(gpu, device, 100, stream)
    end = device.event(stream)
    device.synchronize(end)
    assert device.elapsed(start, end) == pytest.approx(0.002)
    gpu.streams.add(77)

    class Torchs:
        cuda_stream = 77

    for given in (77, Torchs()):
        assert run_add(gpu, device, 100, given)
        assert gpu.launches[-1].stream == 77
    del stream, start, end
    gc.collect()
    assert gpu.streams == {77}
    assert not gpu.events


@pytest.mark.parametrize("stream", ["a", 1.5, -1, 1 << 64, True])
def test_what_is_no_stream(stream):
    with pytest.raises(UsageError, match="is not a stream"):
        handle_of(stream)


def test_the_context_is_shared_and_restored(kind):
    """Work goes to the device whatever the thread uses, which is as it was afterwards."""
    gpu, device = opened(kind, ordinal=1, target="sm_80" if kind is Cuda else None)
    before = 0xABC if kind is Cuda else 2
    gpu._current.context = before
    assert run_add(gpu, device)
    assert gpu.current() == before
    if kind is Cuda:
        assert gpu.retained == {1: 1}
        gpu.fail["cuMemAlloc_v2"] = 1
        with pytest.raises(InputError):
            device.alloc(1)
        assert gpu.current() == before


def test_the_context_lives_as_long_as_something_of_it():
    gpu, device = opened(Cuda)
    stream, module = device.stream(), device.load(image(device))
    device.close()
    del device
    gc.collect()
    assert gpu.retained == {0: 1}
    del stream, module
    gc.collect()
    assert gpu.retained == {0: 0}


def test_threads_have_contexts_of_their_own(kind):
    gpu, device = opened(kind)
    found: list[bool] = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(run_add(gpu, device, n)))
        for n in range(100, 108)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8
    assert not gpu.memory


def test_a_forked_child_leaves_the_parents_objects_alone(kind):
    """It has no context to destroy them in."""
    gpu, device = opened(kind)
    held = [device.stream(), device.event(), device.load(image(device))]
    if (child := os.fork()) == 0:
        before = len(gpu.log)
        held.clear()
        del device
        gc.collect()
        os._exit(len(gpu.log) - before)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    before = len(gpu.log)
    held.clear()
    gc.collect()
    assert len(gpu.log) > before


# -- variables


def test_a_variable_is_read_and_written(kind):
    gpu, device = opened(kind)
    first, second = (device.load(image(device)).variable("table") for _ in range(2))
    assert (first.nbytes, first.read()) == (16, bytes(range(16)))
    assert first.read(3) == b"\0\1\2"
    assert first.read(0) == b""
    first.write(b"abc")
    first.write(b"")
    assert first.read(5) == b"abc\3\4"
    first.clear(2)
    assert first.read(4) == b"\0\0c\3"
    assert first.address != second.address
    assert second.read() == bytes(range(16))
    second.clear()
    assert second.read() == bytes(16)
    assert gpu.bytes_at(second.address, 16).tobytes() == bytes(16)


def test_a_variable_has_so_many_bytes(kind):
    _, device = opened(kind)
    variable = device.load(image(device)).variable("table")
    for work in (lambda: variable.read(17), lambda: variable.write(bytes(17)),
                 lambda: variable.clear(-1)):  # fmt: skip
        with pytest.raises(InputError, match=r"the variable table has 16 bytes, not (17|-1)"):
            work()


def test_a_variable_that_there_is_not(kind):
    _, device = opened(kind)
    assert device.load(image(device)).variable("chair") is None


def test_a_variable_keeps_its_module(kind):
    gpu, device = opened(kind)
    module = device.load(image(device))
    variable = module.variable("table")
    del module
    gc.collect()
    assert variable.read(1) == b"\0"
    del variable
    gc.collect()
    assert not gpu.loaded


def test_a_descriptor_of_a_tensor():
    """The data type, the rank, the address, extents, bytes between rows, the box, the steps; dense,
    a swizzle of 128 bytes, promotion to 256 bytes, zeros out of bounds."""
    _, device = opened(Cuda)
    found = struct.unpack("<16Q", device.describe(MATRIX))
    assert found[:14] == (9, 2, 1 << 20, 100, 30, 208, 64, 8, 1, 1, 0, 3, 3, 0)


def test_elements_that_no_descriptor_has():
    _, device = opened(Cuda)
    with pytest.raises(InputError, match="TMA copies no i4"):
        device.describe(replace(MATRIX, dtype="i4"))


def test_descriptors_on_other_hardware():
    _, device = opened(Hip)
    with pytest.raises(MissingError, match="no descriptors for copies of tiles"):
        device.describe(MATRIX)
