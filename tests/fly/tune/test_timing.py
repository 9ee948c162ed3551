"""Measuring by time: on a GPU behind a fake driver, and on the device `cpu`."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from fly_common.errors import Fault
from fly_run.devices.gpu import device as gpu_device
from fly_run.devices.gpu import driver as drivers
from fly_run.devices.gpu.cuda import Cuda
from fly_run.launch import runtime
from gpu_support.drivers import FakeGpu, Illegal
from gpu_support.prototypes import CUDA

import fly
from fly.tune.measurement import REPETITIONS, TIMED, WARM_UP

from . import planted
from .planted import blocks

# By block size, in addition to the fake driver's own 2 ms.
SECONDS = {64: 0.004, 128: 0.001, 256: 0.002}


@pytest.fixture
def gpu(monkeypatch, private_cache):
    runtime.close_all()
    made = FakeGpu(architectures=((9, 0),))

    def drained(gpu, launch):
        """What the kernel does, on the addresses that its arguments begin with."""
        q, y = struct.unpack("<2Q", launch.packed[:16])
        first, count = 0, launch.grid[0] * launch.block[0]
        left = gpu.bytes_at(q + first, 4 * count).view(np.float32)
        gpu.bytes_at(y + first, 4 * count).view(np.float32)[:] += left
        gpu.clock += SECONDS[launch.block[0]] if left.any() else 0.0001
        left[:] = 0

    made.kernels["drained_kernel"] = drained
    library = made.library(CUDA)
    monkeypatch.setattr(gpu_device, "_drivers", {})
    monkeypatch.setattr(drivers, "find", lambda names: library if names == Cuda.LIBRARIES else None)
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_PTXAS", "none")
    yield made
    runtime.close_all()


def arguments() -> tuple[np.ndarray, np.ndarray]:
    return np.full(256, 3, np.float32), np.ones(256, np.float32)


def test_the_fastest_by_the_devices_events(gpu, tmp_path):
    q, y = arguments()
    path = tmp_path / "winners.json"
    tuned = fly.autotune(blocks(*SECONDS), reset=["Q"], file=path)(planted.drained)
    assert tuned.tune(q, y) == fly.Config(BLOCK=128)
    assert len(gpu.launches) == len(SECONDS) * (1 + WARM_UP + REPETITIONS)
    assert (q == 3).all()
    assert (y == 1).all()
    assert not gpu.memory
    (winner,) = json.loads(path.read_text())["winners"]
    assert winner["cost"] == pytest.approx(0.003, rel=1e-5)
    assert (winner["unit"], winner["method"]) == ("seconds", TIMED)
    assert (winner["target"], winner["device"]) == ("sm_90a", "Fake 0")
    report = tuned.report(q, y)
    assert "BLOCK=128      3 ms  1.00" in report
    assert "BLOCK=64       6 ms  2.00" in report
    tuned(q, y)
    assert not q.any()
    assert (y == 4).all()


def test_without_reset_later_repetitions_find_what_the_first_left(gpu):
    q, y = arguments()
    tuned = fly.autotune(blocks(*SECONDS))(planted.drained)
    assert tuned.report(q, y).count("2.1 ms  1.00") == len(SECONDS)
    assert (q == 3).all()


def test_a_fault_ends_the_process_but_not_the_sweep(gpu, monkeypatch):
    q, y = arguments()
    works = gpu.kernels["drained_kernel"]

    def faulty(gpu, launch):
        if launch.block[0] == 128:
            raise Illegal
        works(gpu, launch)

    gpu.kernels["drained_kernel"] = faulty
    tuned = fly.autotune(blocks(*SECONDS), reset=["Q"])(planted.drained)
    with pytest.raises(Fault) as caught:
        tuned.tune(q, y)
    assert (caught.value.hint or "").endswith(
        "run the program again, and tuning goes on after Config(BLOCK=128)"
    )
    # Another process has another context.
    runtime.close_all()
    gpu.broken = 0
    gpu_device._drivers.clear()
    assert tuned.tune(q, y) == fly.Config(BLOCK=256)
    assert "BLOCK=128: can't be used: " in tuned.report(q, y)


def test_on_the_device_cpu(monkeypatch, tmp_path):
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_PTXAS", "none")
    q, y = arguments()
    path: Path = tmp_path / "winners.json"
    function = fly.jit(device="cpu")(planted.drained.function)
    tuned = fly.autotune(blocks(64, 128), reset=["Q"], file=path)(function)
    tuned.tune(q, y)
    assert (y == 1).all()
    (winner,) = json.loads(path.read_text())["winners"]
    assert winner["cost"] > 0
    assert (winner["unit"], winner["device"]) == ("seconds", "cpu")
    tuned(q, y)
    assert (y == 4).all()
