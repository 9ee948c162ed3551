"""Faults of kernels, and functions of drivers that fail."""

from __future__ import annotations

import dataclasses
import gc

import pytest
from fly_common.errors import Fault, FlyError, MissingError
from fly_run.devices.gpu.cuda import Cuda
from fly_run.devices.gpu.hip import Hip
from fly_run.devices.protocol import ON_DEVICE
from gpu_support.drivers import FakeGpu

from .gpu_kernels import MATRIX, ONE, image, opened, run_add

# -- faults


def test_a_fault_names_the_kernel_and_the_next_call_says_that_all_is_lost():
    _, device = opened(Cuda)
    module = device.load(image(device))
    device.launch(module.function("wild"), ONE, ONE, bytes(8))
    with pytest.raises(Fault) as caught:
        device.synchronize()
    assert caught.value.message == (
        "kernel wild: cuCtxSynchronize failed: ERROR_ILLEGAL_ADDRESS: an illegal memory access"
        " was encountered"
    )
    for call in (device.synchronize, lambda: device.alloc(8), device.stream):
        with pytest.raises(Fault, match="cuda:0 is unusable since a fault of kernel wild") as lost:
            call()
        assert "started anew" in lost.value.hint
    device.close()


def test_after_a_fault_that_passes_the_next_call_works():
    gpu, device = opened(Hip, sticky=False)
    for _ in range(2):
        module = device.load(image(device))
        device.launch(module.function("wild"), ONE, ONE, bytes(8))
        with pytest.raises(Fault, match="kernel wild: hipDeviceSynchronize failed"):
            device.synchronize()
        assert run_add(gpu, device)
        device.synchronize()


def test_a_fault_of_several_kernels(kind):
    _, device = opened(kind)
    module = device.load(image(device))
    device.launch(module.function("none"), ONE, ONE, b"")
    device.launch(module.function("wild"), ONE, ONE, bytes(8))
    with pytest.raises(Fault, match=r"^one of the kernels none, wild: ") as caught:
        device.alloc(16)
    assert ("CUDA_LAUNCH_BLOCKING" in str(caught.value.hint)) == (kind is Cuda)


def test_kernels_that_ended_well_are_not_named(kind):
    _, device = opened(kind)
    module = device.load(image(device))
    device.launch(module.function("none"), ONE, ONE, b"")
    device.synchronize()
    device.launch(module.function("wild"), ONE, ONE, bytes(8))
    with pytest.raises(Fault, match=r"^kernel wild: "):
        device.synchronize()


# -- each function fails


def everything(kind) -> None:
    gpu, device = opened(kind, away=True)
    everything_on(gpu, device)


def everything_on(gpu, device) -> None:
    stream = device.stream()
    run_add(gpu, device, 100, stream)
    a, b = device.alloc(8), device.alloc(8)
    device.copy(a, b, 8, ON_DEVICE)
    module = device.load(image(device))
    assert module.variable("table") is not None
    function = module.function("shared")
    device.launch(function, ONE, ONE, bytes(8), 60_000)
    start, end = device.event(), device.event(stream)
    device.synchronize(start)
    device.synchronize()
    device.elapsed(start, end)
    device.limits()
    if isinstance(device.driver, Cuda):
        device.describe(MATRIX)
        function.interface = dataclasses.replace(function.interface, dependent=True)
        device.launch(function, ONE, ONE, bytes(8))


def functions(kind):
    """The functions whose status decides; those that undo are called when nothing can be done."""
    undone = {"unload", "destroy stream", "destroy event", "release"}
    for role, call in kind.CALLS.items():
        if role not in undone and role != "memory" and not role.startswith("error "):
            yield pytest.param(kind, call.name, id=call.name)


@pytest.mark.parametrize(("kind", "name"), [*functions(Cuda), *functions(Hip)])
@pytest.mark.parametrize("status", [1, 999])
def test_a_function_that_fails_is_an_error_with_its_name(kind, name, status, monkeypatch):
    made = FakeGpu.library

    def library(gpu, text):
        gpu.fail[name] = status
        return made(gpu, text)

    everything(kind)  # it succeeds where nothing fails
    monkeypatch.setattr(FakeGpu, "library", library)
    with pytest.raises(FlyError) as caught:
        everything(kind)
    words = "invalid argument" if status == 1 else "unknown error"
    assert f"{name} failed: ERROR_" in caught.value.message
    assert words in caught.value.message
    assert isinstance(caught.value, Fault) == (status == 999)


@pytest.mark.parametrize("kind", [Cuda, Hip])
def test_what_undoes_may_fail(kind):
    gpu, device = opened(kind)
    for role in ("unload", "destroy stream", "destroy event", "free"):
        gpu.fail[kind.CALLS[role].name] = 1
    stream, event, module = device.stream(), device.event(), device.load(image(device))
    device.alloc(8)
    module.unload()
    del stream, event, module
    gc.collect()
    device.close()


def test_memory_information_may_fail(kind):
    gpu, device = opened(kind, memory_size=10)
    gpu.fail[kind.CALLS["memory"].name] = 1
    with pytest.raises(MissingError, match="there is no memory for 100 bytes") as caught:
        device.alloc(100)
    assert caught.value.hint is None
