"""The tables of the drivers' functions, and statuses as exceptions."""

from __future__ import annotations

import ctypes
import os
from types import SimpleNamespace

import pytest
from fly_common.errors import Fault, InputError, MissingError
from fly_run.devices.gpu import driver as drivers
from fly_run.devices.gpu.cuda import Cuda
from fly_run.devices.gpu.hip import Hip
from gpu_support.drivers import FakeGpu
from gpu_support.prototypes import CUDA, HIP, prototypes


def fake(kind: type, **options):
    gpu = FakeGpu(**options)
    return gpu, kind(gpu.library(CUDA if kind is Cuda else HIP))


@pytest.mark.parametrize(("kind", "header"), [(Cuda, CUDA), (Hip, HIP)])
def test_signatures_are_those_of_the_headers(kind, header):
    declared = prototypes(header)
    for role, call in kind.CALLS.items():
        result, parameters = declared[call.name]
        assert result is ctypes.c_int, role
        assert len(call.parameters) == len(parameters), role
        for ours, theirs in zip(call.parameters, parameters, strict=True):
            pointer = issubclass(ours, (ctypes.c_void_p, ctypes.c_char_p, ctypes._Pointer))
            if theirs is ctypes.c_void_p:
                assert pointer, role
            else:
                assert ours is theirs, role


def test_a_library_is_loaded_by_the_first_name_that_is_there(monkeypatch):
    assert drivers.find(("libnothing-of-the-kind.so", "libc.so.6")) is not None
    assert drivers.find(("libnothing-of-the-kind.so",)) is None
    asked = []

    def load(name, mode):
        asked.append((name, mode))
        if (name, mode) != ("b", os.RTLD_NOLOAD | os.RTLD_LAZY):
            raise OSError
        return "loaded"

    monkeypatch.setattr(drivers.ctypes, "CDLL", load)
    assert drivers.find(("a", "b")) == "loaded"
    assert [name for name, _ in asked] == ["a", "b"]


def test_a_function_that_the_library_lacks():
    with pytest.raises(MissingError, match="CUDA's driver has no function cuInit"):
        Cuda(SimpleNamespace()).devices()


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (1, InputError, "ERROR_INVALID_VALUE: invalid argument"),
        (2, MissingError, "ERROR_OUT_OF_MEMORY: out of memory"),
        (100, MissingError, "ERROR_NO_DEVICE: no CUDA-capable device is detected"),
        (209, InputError, "ERROR_NO_BINARY_FOR_GPU"),
        (218, InputError, "ERROR_INVALID_PTX: a PTX JIT compilation failed"),
        (700, Fault, "ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"),
        (719, Fault, "ERROR_LAUNCH_FAILED"),
        (999, Fault, "ERROR_UNKNOWN: unknown error"),
    ],
)
@pytest.mark.parametrize("driver", [Cuda, Hip])
def test_a_status_is_an_exception_with_the_drivers_words(driver, status, kind, text):
    gpu, made = fake(driver)
    name = driver.CALLS["wait"].name
    gpu.fail[name] = status
    gpu._current.context = 1
    with pytest.raises(InputError if kind is Fault else kind) as caught:
        made.call("wait", doing="the end")
    assert type(caught.value) is kind
    assert str(caught.value).startswith(f"the end: {name} failed: ")
    assert text in str(caught.value)


def test_a_status_without_words():
    made = Cuda(FakeGpu().library(CUDA))
    made._library.cuGetErrorName = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1)
    made._library.cuGetErrorString = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1)
    assert made.text(4321) == "status 4321"


def test_no_device_is_none_of_them():
    gpu, made = fake(Hip)
    gpu.fail["hipGetDeviceCount"] = 100
    assert made.devices() == 0
    gpu.fail["hipGetDeviceCount"] = 3
    with pytest.raises(MissingError, match="hipGetDeviceCount failed: ERROR_NOT_INITIALIZED"):
        made.devices()


def test_it_is_initialised_once():
    gpu, made = fake(Cuda)
    assert (made.devices(), made.devices()) == (2, 2)
    assert gpu.called("cuInit") == 1


def test_a_forked_child_is_told_so():
    gpu, made = fake(Cuda)
    gpu.fail["cuDeviceGetCount"] = 3
    made._process += 1  # as if this were a child
    with pytest.raises(MissingError, match="this process was forked from one") as caught:
        made.devices()
    assert "'spawn'" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("target", "has", "runs"),
    [
        ("sm_90a", "sm_90", True),
        ("sm_90a", "sm_100", False),
        ("sm_90", "sm_100", True),
        ("sm_80", "sm_90", True),
        ("sm_86", "sm_80", False),
        ("sm_100a", "sm_100", True),
        ("sm_100f", "sm_103", True),
        ("sm_100f", "sm_120", False),
        ("gfx942", "sm_90", False),
    ],
)
def test_what_a_device_of_cuda_runs(target, has, runs):
    assert Cuda(None).runs(has, target) is runs


def test_architectures():
    _, made = fake(Cuda)
    assert [made.architecture(0), made.architecture(1)] == ["sm_90", "sm_80"]
    assert made.product(1) == "Fake 1"
    _, made = fake(Hip, architectures=("gfx942:sramecc+:xnack-", "gfx90a"))
    assert [made.architecture(0), made.architecture(1)] == ["gfx942:sramecc+:xnack-", "gfx90a"]
    assert made.runs("gfx942:sramecc+:xnack-", "gfx942")
    assert not made.runs("gfx90a", "gfx90")


def test_limits():
    """6144 bits at 3.2 GHz, twice, and 132 multiprocessors; 8192 bits, and 304 compute units."""
    _, made = fake(Cuda)
    assert made.limits(0) == pytest.approx({"bytes": 4.917e12, "flops": 66.9e12}, rel=1e-3)
    _, made = fake(Hip, architectures=("gfx942:xnack-", "gfx1100"))
    assert made.limits(0) == pytest.approx({"bytes": 2.662e12, "flops": 163.4e12}, rel=1e-3)
    assert made.limits(1) == pytest.approx({"bytes": 2.662e12}, rel=1e-3)
