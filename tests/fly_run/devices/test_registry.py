"""Which device a name stands for."""

from __future__ import annotations

import pytest
from fly_common.errors import MissingError, UsageError
from fly_run.devices import registry
from fly_run.devices.gpu import device as gpu_device
from fly_run.devices.gpu import driver as drivers
from fly_run.devices.gpu.cuda import Cuda
from fly_run.devices.gpu.hip import Hip
from fly_run.devices.options import Options
from fly_run.devices.registry import open_device
from gpu_support.drivers import FakeGpu
from gpu_support.prototypes import CUDA, HIP


@pytest.fixture
def libraries(monkeypatch):
    """Libraries by driver, as if they were installed."""
    found: dict[type, object] = {}

    def find(names):
        return next((made for kind, made in found.items() if names == kind.LIBRARIES), None)

    monkeypatch.setattr(drivers, "find", find)
    monkeypatch.setattr(gpu_device, "_drivers", {})
    return found


def cuda(**options):
    return FakeGpu(**options).library(CUDA)


def hip(*architectures):
    return FakeGpu(architectures=architectures or ("gfx942:sramecc+:xnack-",)).library(HIP)


def test_auto_is_the_gpu_that_runs_the_code(libraries):
    assert open_device("auto", "gfx942").name == "emulator"
    libraries[Hip] = hip("gfx90a", "gfx942")
    assert open_device("auto", "gfx942").name == "hip:1 (Fake 1)"
    assert open_device("auto", "gfx1201").name == "emulator"  # no such GPU is here
    libraries[Cuda] = cuda()
    assert open_device("auto", "sm_90a").name == "cuda:0 (Fake 0)"
    assert open_device("auto", "gfx942").name == "hip:1 (Fake 1)"


def test_without_a_gpu_that_runs_it_auto_is_the_cpu(libraries):
    assert open_device("auto", "sm_90a").name == "cpu"
    libraries[Cuda] = cuda()
    assert open_device("auto", "sm_100a").name == "cpu"
    with pytest.raises(MissingError, match="no device runs code for sm_100a: cuda:0 is sm_90,"):
        open_device("cuda", "sm_100a")


def test_cuda_without_a_driver_says_what_is_missing(libraries):
    with pytest.raises(MissingError, match=r"CUDA's driver is not here: no libcuda\.so\.1"):
        open_device("cuda", "sm_90a")


def test_a_driver_that_does_not_work_leaves_the_emulator(libraries):
    gpu = FakeGpu(architectures=("gfx942",), fail={"hipInit": 3})
    libraries[Hip] = gpu.library(HIP)
    assert open_device("auto", "gfx942").name == "emulator"
    with pytest.raises(MissingError, match="hipInit failed: ERROR_NOT_INITIALIZED"):
        open_device("hip", "gfx942")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (Options(max_instructions=9), "--max-instructions"),
        (Options(threads=2), "--threads"),
        (Options(mfma="fast"), "--mfma fast"),
        (Options(observers=(object(),)), "--stats or --trace"),  # type: ignore[arg-type]
    ],
)
def test_options_of_the_emulator_ask_for_it(libraries, options, name):
    libraries[Hip], libraries[Cuda] = hip(), cuda()
    if not options.observers:
        assert open_device("auto", "gfx942", options).name == "emulator"
    for device, target in (
        *(("hip", "gfx942"), ("cuda:0", "sm_90a"), ("auto", "sm_90a"), ("cpu", "sm_90a")),
    ):
        with pytest.raises(UsageError, match=f"^{name} is an option of the emulator"):
            open_device(device, target, options)


def test_strict_asks_for_the_emulator_or_cpu(libraries):
    libraries[Hip], libraries[Cuda] = hip(), cuda()
    strict = Options(strict=True)
    assert open_device("auto", "gfx942", strict).name == "emulator"
    assert open_device("auto", "sm_90a", strict).name == "cpu"
    for device, target, own in (("hip", "gfx942", "emulator"), ("cuda:0", "sm_90a", "cpu")):
        with pytest.raises(UsageError, match="is an option of the emulator and of cpu") as caught:
            open_device(device, target, strict)
        assert caught.value.hint == f"add --device {own}"
    with pytest.raises(UsageError, match=r"^--threads is an option of the emulator"):
        open_device("cpu", "sm_90a", Options(strict=True, threads=2))


def test_a_progress_bar_is_nothing_of_the_emulators(libraries):
    libraries[Cuda] = cuda()
    assert open_device("auto", "sm_90a", Options(progress=print)).name == "cuda:0 (Fake 0)"


def test_devices_have_numbers(libraries):
    libraries[Cuda], libraries[Hip] = cuda(), hip("gfx942", "gfx942")
    assert open_device("cuda:1", "sm_80").name == "cuda:1 (Fake 1)"
    assert open_device("hip:1", "gfx942").name == "hip:1 (Fake 1)"
    for name in ("cuda:", "cuda:x", "hip:-1", "cuda:1:2", "cuda:99999"):
        with pytest.raises(UsageError, match=f"--device {name}: .* is not the number of a device"):
            open_device(name, "gfx942")
    with pytest.raises(UsageError, match="--device emulator:0: no such device"):
        open_device("emulator:0", "gfx942")


def test_one_driver_serves_all_devices(libraries):
    libraries[Cuda] = cuda()
    first, second = open_device("cuda:0", "sm_90a"), open_device("cuda:1", "sm_80")
    assert first.driver is second.driver  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "target", "number", "wanted"),
    [
        ("auto", "gfx942", 1, "hip:1"),
        ("auto", "sm_90a", 0, "cuda:0"),
        ("hip", "gfx942", 2, "hip:2"),
        ("cuda:1", "sm_90a", 0, "cuda:1"),
        ("emulator", "gfx942", 0, "emulator"),
        ("auto", "vendors", 0, "auto"),
    ],
)
def test_tensors_on_a_gpu_choose_its_number(name, target, number, wanted):
    assert registry.numbered(name, target, number) == wanted
