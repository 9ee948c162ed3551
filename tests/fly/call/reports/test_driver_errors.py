"""Errors of CUDA's and HIP's drivers: they name the kernel, its line, and those of its launches.

There is no GPU here: the drivers' functions are those of a fake one.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from fly_common import diagnostics
from fly_common.errors import Fault, FlyError, InputError
from fly_run.devices.gpu import device as gpu_device
from fly_run.devices.gpu import driver as drivers
from fly_run.devices.gpu.cuda import Cuda
from fly_run.devices.gpu.hip import Hip
from fly_run.launch import runtime
from gpu_support.drivers import FakeGpu, Illegal
from gpu_support.prototypes import CUDA, HIP

import fly
import fly.expr as fx

HERE = Path(__file__).resolve()
TARGETS = {Cuda: "sm_90a", Hip: "gfx942"}


@fly.kernel
def first_kernel(A: fx.Tensor):
    A[fx.thread_idx.x] = 1.0


@fly.kernel
def scale_kernel(A: fx.Tensor, by: fx.Float32):
    A[fx.thread_idx.x] = A[fx.thread_idx.x] * by


def launched(A, by):
    scale_kernel(A, by).launch(grid=1, block=64)  # in a helper


@fly.jit
def one(A: fx.Tensor[fx.Float32, 64], by: fx.Float32):
    launched(A, by)


@fly.jit
def two(A: fx.Tensor[fx.Float32, 64], by: fx.Float32):
    first_kernel(A).launch(grid=1, block=64)
    launched(A, by)


def line_of(function, text: str) -> int:
    """The line of this file that has the text, from the function's first on."""
    lines, start = inspect.getsourcelines(function)
    (at,) = (number for number, line in enumerate(lines) if text in line)
    return start + at


KERNEL = line_of(scale_kernel.function, "def scale_kernel")
LAUNCH = line_of(launched, "launch(")


@pytest.fixture(params=[Cuda, Hip], ids=["cuda", "hip"])
def kind(request):
    return request.param


@pytest.fixture
def gpu(kind, monkeypatch):
    runtime.close_all()
    made = FakeGpu(architectures=((9, 0),) if kind is Cuda else ("gfx942",))
    made.kernels |= {"first_kernel": lambda *_: None, "scale_kernel": lambda *_: None}
    library = made.library(CUDA if kind is Cuda else HIP)
    monkeypatch.setattr(gpu_device, "_drivers", {})
    monkeypatch.setattr(drivers, "find", lambda names: library if names == kind.LIBRARIES else None)
    yield made
    runtime.close_all()


def failure(function, kind) -> FlyError:
    compiled = fly.jit(target=TARGETS[kind], device=kind.NAME)(function.function)
    with pytest.raises(FlyError) as caught:
        compiled(np.zeros(64, np.float32), 2.0)
    return caught.value


def is_placed(error: FlyError, function) -> None:
    """The error has the kernel's line, and that of its launch with the helper's call."""
    place = error.place
    assert place is not None
    assert Path(place.file).resolve() == HERE
    assert place.line == KERNEL
    assert "def scale_kernel" in (place.text or "")
    call = line_of(function.function, "launched(")
    assert [(one.message, one.place.line) for one in error.related or ()] == [
        ("launched", LAUNCH),
        ("called", call),
    ]


@pytest.mark.parametrize("function", [one, two], ids=["one", "two"])
@pytest.mark.parametrize("status", [1, 999])
def test_a_launch_that_the_driver_refuses(gpu, kind, function, status):
    name = kind.CALLS["launch"].name
    launch = gpu.kernels["scale_kernel"]

    def fails(*_):
        raise AssertionError("it was launched")

    gpu.kernels["scale_kernel"] = fails
    if function is one:
        gpu.fail[name] = status
    else:  # the first launch succeeds
        gpu.kernels["first_kernel"] = lambda *_: gpu.fail.update({name: status})
    error = failure(function, kind)
    assert error.message.startswith(f"kernel scale_kernel: {name} failed: ERROR_")
    assert isinstance(error, Fault) == (status == 999)
    assert error.exit_code == 1
    is_placed(error, function)
    gpu.kernels["scale_kernel"] = launch


def test_a_kernel_that_faults(gpu, kind):
    def wild(*_):
        raise Illegal

    gpu.kernels["scale_kernel"] = wild
    error = failure(one, kind)
    assert isinstance(error, Fault)
    assert error.message.startswith("kernel scale_kernel: ")
    assert "ERROR_ILLEGAL_ADDRESS" in error.message
    is_placed(error, one)


def test_a_fault_of_one_of_several_kernels_has_no_line(kind, gpu):
    device = gpu_device.open_gpu(kind, TARGETS[kind], _options(), 0)
    for name in ("a", "b"):
        device.context.launched(name)
    error = device.context.error("wait", 700)
    assert error.message.startswith("one of the kernels a, b: ")
    assert error.kernel is None


def _options():
    from fly_run.devices.options import Options

    return Options()


@pytest.mark.parametrize("role", ["load", "function"])
def test_code_that_the_driver_does_not_load(gpu, kind, role):
    name = kind.CALLS[role].name
    gpu.fail[name] = 209
    error = failure(one, kind)
    assert error.message.startswith(f"kernel scale_kernel: {name} failed: ERROR_NO_BINARY_FOR_GPU")
    assert isinstance(error, InputError)
    is_placed(error, one)


def test_a_module_of_several_kernels_names_them(gpu, kind):
    name = kind.CALLS["load"].name
    gpu.fail[name] = 209
    error = failure(two, kind)
    assert error.message.startswith(f"kernels first_kernel, scale_kernel: {name} failed: ")
    assert error.place is None


def test_out_of_memory_is_a_lack_of_the_environment(gpu, kind):
    gpu.memory_size = 10
    error = failure(one, kind)
    assert error.exit_code == 3
    assert "there is no memory for 256 bytes for A" in error.message
    assert error.place is None


def test_every_function_that_fails_in_a_call_is_told_with_its_name(gpu, kind):
    """Those that a call needs, one after the other."""
    compiled = fly.jit(target=TARGETS[kind], device=kind.NAME)(one.function)
    compiled(np.zeros(64, np.float32), 2.0)
    undone = {"unload", "free", "destroy stream", "destroy event", "release", "memory"}
    roles = {call.name: role for role, call in kind.CALLS.items() if role not in undone}
    used = [name for name in dict.fromkeys(entry[0] for entry in gpu.log) if name in roles]
    assert {roles[name] for name in used} >= {"load", "function", "launch", "wait", "alloc"}
    for name in used:
        runtime.close_all()
        gpu_device._drivers.clear()
        gpu.fail = {name: 1}
        error = failure(one, kind)
        assert f"{name} failed: ERROR_INVALID_VALUE: invalid argument" in error.message
        if roles[name] in ("load", "function", "launch"):
            is_placed(error, one)
        gpu.fail = {}


def test_diagnostics_for_editors(gpu, kind, monkeypatch, capfd):
    monkeypatch.setenv(diagnostics.VARIABLE, "json")
    gpu.fail[kind.CALLS["launch"].name] = 1
    diagnostics.print_error(failure(one, kind), "fly")
    found = json.loads(capfd.readouterr().err)
    assert found["message"].startswith("kernel scale_kernel: ")
    assert Path(found["file"]).resolve() == HERE
    assert found["range"]["start"]["line"] == KERNEL - 1
    launch, call = found["related"]
    assert (launch["message"], launch["range"]["start"]["line"]) == ("launched", LAUNCH - 1)
    assert call["message"] == "called"


def test_the_text(gpu, kind):
    gpu.fail[kind.CALLS["launch"].name] = 1
    told = failure(one, kind).render("fly").splitlines()
    assert told[0].endswith("failed: ERROR_INVALID_VALUE: invalid argument")
    assert f"{HERE.name}:{KERNEL}:1: kernel scale_kernel: " in told[0]
    assert told[1] == "  def scale_kernel(A: fx.Tensor, by: fx.Float32):"
    assert told[3].startswith("  launched at ")
    assert f"{HERE.name}:{LAUNCH}:" in told[3]
    assert told[3].endswith(": scale_kernel(A, by).launch(grid=1, block=64)  # in a helper")
