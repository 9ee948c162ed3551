"""--bench: what is repeated, how it is measured, what is printed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fly_common.errors import FlyError, UsageError
from fly_common.record import replace
from fly_host import program as steps
from fly_run.devices.gpu import device as gpu_device
from fly_run.devices.gpu import driver as drivers
from fly_run.devices.gpu.cuda import Cuda
from fly_run.devices.gpu.device import Gpu
from fly_run.devices.gpu.hip import Hip
from fly_run.launch import execution
from fly_run.shell import bench, command
from fly_run.shell.argument_values import Given
from fly_run.shell.flops import evaluate
from gpu_support.drivers import FakeGpu, vadd
from gpu_support.images import FakeImage, kernel
from gpu_support.prototypes import CUDA, HIP

N = 1000


def slowly(gpu: FakeGpu, launch) -> None:
    """The sum; each launch takes longer than the one before: 2 ms, 3 ms, …"""
    vadd(gpu, launch)
    gpu.clock += 0.001 * (len(gpu.launches) - 1)


def given(**changes: np.ndarray) -> Given:
    a, b = np.random.default_rng(3).random((2, N), np.float32)
    values = {"A": a, "B": b, "C": np.zeros(N, np.float32)} | changes
    return Given(values, dict.fromkeys(values, "f32"), frozenset("C"), {})


def measured(add_program, options: bench.Options, held: Given | None = None):
    gpu = FakeGpu()
    gpu.kernels["add"] = slowly
    program = replace(add_program, target="sm_90a")
    image = FakeImage({"add": kernel("add", "p", "p", "p", 8)}, program=program)
    device = Gpu(Cuda(gpu.library(CUDA)), "sm_90a")
    recorder, held = bench.Recorder(device), held or given()
    module = device.load(image)
    outcome = execution.run(program, image, module, recorder, held.values)  # type: ignore[arg-type]
    found = bench.measure(recorder, outcome.ran, program, held, options)
    assert gpu.memory or not gpu.launches  # it stays as long as launches are repeated
    recorder.close()
    assert not gpu.memory
    return gpu, held, found


def test_launches_are_repeated_between_events(add_program):
    gpu, held, found = measured(add_program, bench.Options(5, 2))
    assert (held.values["C"] == held.values["A"] + held.values["B"]).all()
    assert len(gpu.launches) == 1 + 2 + 5
    assert len({launch.packed for launch in gpu.launches}) == 1
    # The first takes 2 ms, two warm up, then 5, 6, 7, 8, 9.
    assert found.whole == pytest.approx((0.007, 0.005, 0.0054, 0.0086, 0.009))
    assert list(found.times) == [pytest.approx(found.whole)]
    copies = [one[0] for one in gpu.log if one[0].startswith("cuMemcpy")]
    assert copies.count("cuMemcpyHtoDAsync_v2") == 3  # for the run itself
    log = [one[0] for one in gpu.log]
    marks = [place for place, name in enumerate(log) if name == "cuEventRecord"]
    launches = [place for place, name in enumerate(log) if name == "cuLaunchKernel"]
    assert "cuCtxSynchronize" in log[launches[2] : marks[0]]  # what warms up has ended
    assert "cuCtxSynchronize" not in log[marks[0] : marks[-1]]
    assert "cuCtxSynchronize" in log[marks[-1] : log.index("cuEventElapsedTime")]


def test_rates_and_shares(add_program):
    _, _, found = measured(add_program, bench.Options(1, 0, "2*n"))
    assert (found.bytes, found.flops) == (3 * 4 * N, 2 * N)
    assert found.rate("bytes") == pytest.approx(12000 / 0.003)
    document = json.loads(found.json())
    assert document["device"] == "cuda:0 (Fake 0)"
    assert document["seconds"]["median"] == pytest.approx(0.003)
    assert document["flops_per_second"] == pytest.approx(2000 / 0.003)
    assert document["share"]["bytes"] == pytest.approx(4e6 / 4.917e12, rel=1e-3)
    assert document["share"]["flops"] == pytest.approx(6.667e5 / 66.9e12, rel=1e-3)
    assert document["launches"][0]["grid"] == [16, 1, 1]
    assert found.lines() == [
        "12,000 bytes: 4 MB/s, 0.0 % of 4.917 TB/s",
        "2,000 FLOPs: 666.7 kFLOP/s, 0.0 % of 66.91 TFLOP/s in f32, without matrix instructions",
        "1 repetitions after 0 on cuda:0 (Fake 0)",
    ]
    assert found.rows() == [
        ("kernel", "grid", "block", "median", "least", "10 %", "90 %", "most"),
        ("add", "16", "64", *["3 ms"] * 5),
    ]


def test_an_empty_grid_takes_no_time(add_program):
    held = given(**{name: np.zeros(0, np.float32) for name in "ABC"})
    gpu, _, found = measured(add_program, bench.Options(3, 1), held)
    assert not gpu.launches
    assert found.whole == (0.0,) * 5
    assert found.rate("bytes") is None
    assert found.rows() == [("kernel", "grid", "block", "median", "least", "10 %", "90 %", "most")]


def test_several_launches_have_a_sum():
    ran = [bench.Ran(name, (1, 1, 1), (64, 1, 1), 0, 0.0, None) for name in ("a", "b")]
    times = [bench.Times(1e-6, 1e-6, 1e-6, 1e-6, 2.5), bench.Times(*[1.23456e-3] * 5)]
    whole = bench.Times(*[2e-3] * 5)
    common = ("d", "t", bench.Options(), ran, times, whole, 0, None, {})
    rows = bench.Report(*common).rows()
    assert rows[1:] == [
        ("a", "1", "64", "1 µs", "1 µs", "1 µs", "1 µs", "2.5 s"),
        ("b", "1", "64", *["1.235 ms"] * 5),
        ("all", "", "", *["2 ms"] * 5),
    ]


def test_bytes_count_by_access(add_program):
    written = replace(add_program.parameters[2], access="rw")
    program = replace(add_program, parameters=(*add_program.parameters[:2], written))
    assert bench.nbytes(add_program, given()) == 12000
    assert bench.nbytes(program, given()) == 16000
    assert bench.nbytes(None, given()) == 12000


@pytest.mark.parametrize(
    ("text", "value"),
    [("2*n", 2000), ("n**2/4 - 1", 249_999), ("A[0]*(1+1)", 2000), ("7//2", 3), ("--3", 3)],
)
def test_expressions(add_program, text, value):
    assert evaluate(text, add_program, given().values) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2*m", "m is not known"),
        ("2*", "it can't be parsed"),
        ("A", "it is not a number of operations"),
        ("2*A", "an extent of it is A[0]"),
        ("A[1]", "A[1] is not an extent"),
        ("n[0]", "n[0] is not an extent"),
        ("9**9**9", "the exponent is too large"),
        ("1e20**64", "it is too large"),
        ("0-n", "it is not a number of operations"),
        ("1/0", "division by zero"),
        ("__import__('os')", "is not allowed"),
        ("'a'*9", "'a' is not allowed"),
        ("n if n else n", "is not allowed"),
        ("1+" * 600 + "1", "it is too long"),
    ],
)
def test_what_is_no_expression(add_program, text, reason):
    with pytest.raises(UsageError) as caught:
        evaluate(text, add_program, given().values)
    assert reason in caught.value.message
    assert caught.value.message.startswith("--flops ")
    assert caught.value.hint.endswith("names: A, n, B, C")


def test_library_calls_can_not_be_repeated(add_program):
    called = steps.Call("np.sort", (steps.Operand("tensor", "A"),), (), ())
    with pytest.raises(UsageError, match=r"a program that calls a library: np\.sort"):
        bench.check(replace(add_program, steps=(called,)))
    bench.check(add_program)
    bench.check(None)


# -- the command line


@pytest.fixture
def fly_run(tmp_path, assemble, add_program, monkeypatch, capfdbinary):
    """A call of the command line's function: status, standard output, standard error."""
    (tmp_path / "add.hsaco").write_bytes(assemble("add", manifest=add_program))
    monkeypatch.chdir(tmp_path)

    def run(*words: str, **options) -> tuple[int, str, str]:
        status, told = 0, ""
        try:
            command.call(command.Call(("add.hsaco", *words), **options))
        except FlyError as error:
            status, told = error.exit_code, error.render("fly-run")
        found = capfdbinary.readouterr()
        return status, found.out.decode(), found.err.decode() + told

    return run


ARGUMENTS = ("A=arange(1000)", "B=full(1000,f32,1)", "C=c.npy")


@pytest.fixture
def gpu(monkeypatch):
    made = FakeGpu(architectures=("gfx942",))
    made.kernels["add"] = slowly
    library = made.library(HIP)
    monkeypatch.setattr(gpu_device, "_drivers", {})
    monkeypatch.setattr(drivers, "find", lambda names: library if names == Hip.LIBRARIES else None)
    return made


def test_a_table_on_a_gpu(fly_run, gpu, tmp_path):
    status, out, err = fly_run(*ARGUMENTS, bench=True, repeat=3, warm_up=1)
    assert (status, out) == (0, "")
    assert err.splitlines()[4:] == [
        "kernel  grid  block  median  least  10 %    90 %    most",
        "add     16    64     5 ms    4 ms   4.2 ms  5.8 ms  6 ms",
        "12,000 bytes: 2.4 MB/s, 0.0 % of 2.662 TB/s",
        "3 repetitions after 1 on hip:0 (Fake 0)",
    ]
    assert (np.load(tmp_path / "c.npy") == np.arange(1, 1001)).all()
    assert len(gpu.launches) == 5


def test_json_goes_to_standard_output(fly_run, gpu):
    status, out, err = fly_run(*ARGUMENTS, bench=True, json=True, quiet=True)
    assert (status, err) == (0, "")
    document = json.loads(out)
    assert (document["repetitions"], document["warm_up"]) == (100, 10)
    assert set(document["seconds"]) == {"median", "least", "p10", "p90", "most"}


def test_a_kernel_without_its_program(fly_run, gpu):
    words = ("A=arange(1000,f32)", "B=full(1000,f32,1)", "C=zeros(1000,f32):c.npy", "i64:1000")
    launch = {"kernel": "add", "block": "64", "grid": "16"}
    status, _, err = fly_run(*words, bench=True, repeat=1, **launch)
    assert status == 0, err
    assert "12,000 bytes" in err
    assert len(gpu.launches) == 1 + 10 + 1


def test_the_emulator_counts_instructions(fly_run):
    status, _, err = fly_run(*ARGUMENTS, bench=True, device="emulator")
    assert status == 0
    lines = err.splitlines()
    assert lines[4] == "kernel  grid  block  wave instructions"
    assert lines[-1] == bench.NO_TIME
    status, out, _ = fly_run(*ARGUMENTS, bench=True, json=True, device="emulator")
    document = json.loads(out)
    assert document["launches"][0]["instructions"] > 0
    assert "seconds" not in document


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"repeat": 3}, "--repeat requires --bench"),
        ({"warm_up": 3}, "--warm-up requires --bench"),
        ({"flops": "n"}, "--flops requires --bench"),
        ({"bench": True, "repeat": 0}, "--repeat must be at least 1"),
        ({"bench": True, "warm_up": -1}, "--warm-up must be at least 0"),
        ({"bench": True, "stats": True}, "--bench measures what nothing else observes"),
        ({"bench": True, "flops": "x"}, "--flops 'x': x is not known"),
    ],
)
def test_mistakes(fly_run, options, text):
    status, out, err = fly_run(*ARGUMENTS, **options)
    assert (status, out) == (2, "")
    assert text in err
