"""fly-run, where a driver refuses a kernel or a kernel fails: the error has the kernel's line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fly_common import diagnostics
from fly_common.errors import FlyError
from fly_run.devices.gpu import device as gpu_device
from fly_run.devices.gpu import driver as drivers
from fly_run.devices.gpu.cuda import Cuda
from fly_run.devices.gpu.hip import Hip
from fly_run.shell import command
from fly_trace.session.load import find_entry, load_file
from gpu_support.drivers import FakeGpu, Illegal
from gpu_support.prototypes import CUDA, HIP

import fly

ARGUMENTS = ("A=arange(100)", "B=arange(100)")
SOURCE = """import fly
import fly.expr as fx


@fly.kernel
def double_kernel(A: fx.Tensor, B: fx.Tensor):
    i = fx.thread_idx.x
    B[i] = A[i] * 2.0


@fly.jit
def double(A: fx.Tensor[fx.Float32, "n"], B: fx.Tensor[fx.Float32, "n"]):
    double_kernel(A, B).launch(grid=1, block=A.shape[0])
"""
BODY = range(6, 9)  # lines of the kernel


@pytest.fixture(params=[Cuda, Hip], ids=["cuda", "hip"])
def kind(request):
    return request.param


@pytest.fixture
def gpu(kind, monkeypatch):
    made = FakeGpu(architectures=((9, 0),) if kind is Cuda else ("gfx942",))
    made.kernels["double_kernel"] = lambda *_: None
    library = made.library(CUDA if kind is Cuda else HIP)
    monkeypatch.setattr(gpu_device, "_drivers", {})
    monkeypatch.setattr(drivers, "find", lambda names: library if names == kind.LIBRARIES else None)
    return made


@pytest.fixture
def failure(kind, gpu, tmp_path, monkeypatch):
    """failure(lines) → the error of fly-run for an image with or without line tables."""
    monkeypatch.chdir(tmp_path)

    def made(lines: bool) -> FlyError:
        Path("double.py").write_text(SOURCE)
        function = find_entry(load_file("double.py"), "double.py", "double").function
        chain = fly.chain("sm_90a" if kind is Cuda else "gfx942")
        compiled = fly.jit(chain=chain.with_lines() if lines else chain)(function).compile()
        compiled.save("double.image")
        with pytest.raises(FlyError) as caught:
            command.call(command.Call(("double.image", *ARGUMENTS), device=kind.NAME))
        return caught.value

    return made


@pytest.mark.parametrize("role", ["load", "function", "launch"])
def test_what_the_driver_refuses_has_the_kernels_line(failure, gpu, kind, role):
    gpu.fail[kind.CALLS[role].name] = 1
    error = failure(True)
    assert error.message.startswith(f"kernel double_kernel: {kind.CALLS[role].name} failed: ")
    assert error.exit_code == 1
    assert error.place is not None
    assert Path(error.place.file).name == "double.py"
    assert error.place.line in BODY
    gpu_device._drivers.clear()
    assert failure(False).place is None


def test_a_fault_has_the_kernels_line(failure, gpu, capfd, monkeypatch):
    def wild(*_):
        raise Illegal

    gpu.kernels["double_kernel"] = wild
    error = failure(True)
    monkeypatch.setenv(diagnostics.VARIABLE, "json")
    diagnostics.print_error(error, "fly-run")
    found = json.loads(capfd.readouterr().err.splitlines()[-1])
    assert found["message"].startswith("kernel double_kernel: ")
    assert Path(found["file"]).name == "double.py"
    assert found["range"]["start"]["line"] + 1 in BODY
