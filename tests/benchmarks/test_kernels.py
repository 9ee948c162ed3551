"""benchmarks/kernels.py: times on a GPU, the share of the roofline, what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fly_common.errors import UsageError
from fly_run.devices.gpu import device as gpu_device
from fly_run.devices.gpu import driver as drivers
from fly_run.devices.gpu.cuda import Cuda
from fly_run.launch import runtime
from gpu_support.drivers import FakeGpu
from gpu_support.prototypes import CUDA

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
import kernel_calls  # noqa: E402 - it is in benchmarks/
import kernel_costs  # noqa: E402
import kernel_times  # noqa: E402
from kernel_inputs import LARGE, SMALL  # noqa: E402

PROGRAM = BENCHMARKS / "kernels.py"
(SOFTMAX,) = (row for row in kernel_calls.CALLS if row.name == "softmax(x)")
(MATMUL,) = (row for row in kernel_calls.CALLS if row.name == "matmul(a, b)")


def run(*words: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, str(PROGRAM), *words]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_bound_is_that_of_the_slowest():
    peak = kernel_times.Peak(100.0, 10.0, 1000.0, "")
    assert peak.bound(200, 10, 500) == (2.0, "memory")
    assert peak.bound(200, 30, 500) == (3.0, "arithmetic")
    assert peak.bound(200, 30, 4000) == (4.0, "arithmetic")
    assert peak.bound(0, 0, 0) == (0.0, "memory")


def test_no_bound_without_a_peak_that_is_needed():
    peak = kernel_times.Peak(100.0, 0.0, 0.0, "")
    assert peak.bound(200, 0, 0) == (2.0, "memory")
    assert peak.bound(200, 1, 0) is None
    assert peak.bound(200, 0, 1) is None


def test_peaks_are_the_drivers_then_the_tables():
    table = kernel_times.of_table("gfx942")
    assert (table.bandwidth, table.source) == (5.3e12, "the data sheet of the MI300X")
    assert kernel_times.of_device({}, "gfx942") == table
    told = kernel_times.of_device({"bytes": 5e12, "flops": 1e14}, "gfx942")
    assert (told.bandwidth, told.vector, told.matrix) == (5e12, 1e14, table.matrix)
    assert told.source.startswith("the driver's clocks and widths for memory and vector")
    assert told.source.endswith("the data sheet of the MI300X for the rest")
    other = kernel_times.of_device({"bytes": 5e12}, "sm_90a")
    assert (other.bandwidth, other.vector, other.matrix) == (5e12, 0, 0)


def test_what_a_problem_asks_for():
    costs = kernel_costs.Costs(0, 7, 0, 10**9, 0, 0, 0)
    (x,) = SOFTMAX.arguments(SMALL)
    assert kernel_times.work(SOFTMAX, costs, (x,), x, 4.0) == (2 * 2 * 8 * 4096, 28.0, 0.0)
    few = kernel_costs.Costs(0, 7, 0, 10, 0, 0, 0)
    assert kernel_times.work(SOFTMAX, few, (x,), x, 4.0) == (40.0, 28.0, 0.0)
    pair = MATMUL.arguments(SMALL)
    asked = 2 * 256**3
    assert kernel_times.work(MATMUL, costs, pair, pair[0], 1.0)[1:] == (asked, 0.0)
    matrix = kernel_costs.Costs(0, 7, 7, 10**9, 0, 0, 0)
    assert kernel_times.work(MATMUL, matrix, pair, pair[0], 1.0)[1:] == (0.0, asked)


def test_a_gpu_is_given_more():
    shapes = {row.name: row.arguments(SMALL)[0].shape for row in kernel_calls.CALLS}
    assert shapes["softmax(x)"] == (SMALL.rows, 4096)
    assert LARGE.rows * 4096 * 2 > 1e8


@pytest.fixture
def gpu(monkeypatch):
    """A GPU whose softmax takes 3 ms, and does nothing."""
    runtime.close_all()
    made = FakeGpu(architectures=((9, 0),))

    def softmax(gpu, launch):
        gpu.clock += 0.001  # beside the 2 ms of each launch

    made.kernels["softmax_kernel"] = softmax
    library = made.library(CUDA)
    monkeypatch.setattr(gpu_device, "_drivers", {})
    monkeypatch.setattr(drivers, "find", lambda names: library if names == Cuda.LIBRARIES else None)
    monkeypatch.setenv("FLY_TARGET", "sm_90a")
    monkeypatch.setenv("FLY_PTXAS", "none")
    yield made
    runtime.close_all()


@pytest.mark.heavy
def test_times_are_the_devices(gpu):
    clock = kernel_times.Clock("cuda")
    clock.run(SOFTMAX.call, SOFTMAX.arguments(SMALL), timed=False)
    assert (len(gpu.launches), clock.seconds) == (1, 0.0)
    clock.run(SOFTMAX.call, SOFTMAX.arguments(SMALL), timed=True)
    assert len(gpu.launches) > 20
    assert clock.seconds == pytest.approx(0.003, rel=1e-5)
    assert clock.device == "cuda:0 (Fake 0)"
    assert not gpu.memory


@pytest.mark.heavy
def test_on_the_device_hip():
    fly_run = str(Path(sys.executable).with_name("fly-run"))
    words = ("--device", "hip", "--small", "softmax", "cross_entropy")
    done = run(*words, before=(fly_run, "--hip", "gfx942", "--"))
    assert done.returncode == 0, done.stderr
    softmax, cross_entropy = (line.split("│") for line in done.stdout.splitlines() if "(x" in line)
    assert [cell.strip() for cell in softmax[2:8]] == [
        "5,920",
        "132,096",
        "215,040",
        "26",
        "16",
        "3.4e-06",
    ]
    assert float(cross_entropy[7]) < 1e-5, "the result on the device"
    assert softmax[-2].strip() == "memory"
    assert "%" in softmax[-3]
    assert "the driver's clocks" in done.stdout
    assert "emulated by fly-run" in done.stdout


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing",), "no call has 'nothing' in its name"),
        (("--target", "sm_90a"), "the emulator does not count code for sm_90a"),
    ],
)
def test_what_is_refused(words, said):
    done = run(*words)
    assert done.returncode == UsageError.exit_code
    assert f"kernels: error: {said}" in done.stderr


@pytest.mark.heavy
def test_a_refused_call_does_not_end_the_table():
    done = run("--target", "gfx908", "attention", "softmax")
    assert done.returncode == UsageError.exit_code
    assert "softmax(x)" in done.stdout
    assert "flash_attention" not in done.stdout
    refused = [line for line in done.stderr.splitlines() if "error" in line]
    assert [line.partition("(")[0] for line in refused] == [
        "kernels: flash_attention",
        "kernels: flash_attention_varlen",
    ]
    assert all("which gfx908 lacks" in line for line in refused)
