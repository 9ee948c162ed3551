"""The device by its protocol, and host arrays."""

from __future__ import annotations

import multiprocessing
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from fly_common.errors import Fault, FlyError, InputError, MissingError
from fly_run.devices.gpu.device import Gpu
from fly_run.devices.options import Options
from fly_run.devices.protocol import FROM_DEVICE, ON_DEVICE, TO_DEVICE
from fly_run.devices.registry import open_device
from fly_run.launch import runtime
from fly_run.launch.launch import launch
from fly_run.shell import bench
from fly_run.shell.argument_values import Given

from h200_devices import kernels

ONE = (1, 1, 1)
TARGET = "sm_80"


def device() -> Gpu:
    found = open_device("cuda", TARGET)
    assert isinstance(found, Gpu)
    return found


def expect(kind: type[FlyError], text: str, call: Callable[[], object]) -> FlyError:
    """Runs what must fail so; the error."""
    found = None
    try:
        call()
    except FlyError as error:
        found = error
    assert type(found) is kind, repr(found)
    assert text in str(found), str(found)
    return found


def numbers(n: int) -> dict[str, np.ndarray]:
    a, b = np.random.default_rng(n).random((2, n), np.float32)
    return {"A": a, "B": b, "C": np.zeros(n, np.float32)}


def facts() -> str:
    found = device()
    limits = found.limits()
    assert limits["bytes"] > 1e11
    free, total = found.driver.free_memory() if _current(found) else (0, 0)
    return (
        f"{found.name}, {found.architecture}, {limits['bytes'] / 1e12:.3f} TB/s,"
        f" {limits.get('flops', 0) / 1e12:.1f} TFLOP/s in f32, {free >> 20} of {total >> 20} MiB"
    )


def _current(found: Gpu) -> bool:
    found.driver.switch(found.context.handle)
    return True


def memory() -> None:
    found = device()
    a, b = found.alloc(1 << 20, "a"), found.alloc(1 << 20, "b")
    host = np.random.default_rng(1).integers(0, 255, 1 << 20, np.uint8)
    back = np.ones(1 << 20, np.uint8)
    found.copy(back.ctypes.data, a, 1 << 20, FROM_DEVICE)
    found.synchronize()
    assert not back.any()  # it is zeroed
    found.copy(a, host.ctypes.data, 1 << 20, TO_DEVICE)
    found.copy(b + 16, a, (1 << 20) - 16, ON_DEVICE)
    found.copy(back.ctypes.data, b, 1 << 20, FROM_DEVICE)
    found.synchronize()
    assert (back[16:] == host[:-16]).all()
    assert not back[:16].any()
    found.free(a)
    found.close()


def staging() -> str:
    opened = runtime.device("auto", TARGET)
    image = kernels.image()
    for n in (1, 255, 1000, 1_000_003):
        given = numbers(n)
        opened.run(image.program, image, given)
        assert (given["C"] == given["A"] + given["B"]).all()
    whole = np.arange(3000, dtype=np.float32)
    overlapping = {"A": whole[:1000], "B": whole[500:1500], "C": whole[2000:]}
    opened.run(image.program, image, overlapping)
    assert (whole[2000:] == np.arange(1000) + np.arange(500, 1500)).all()
    made = kernels.program(TARGET, makes=True)
    given = numbers(5000)
    del given["C"]
    results = opened.run(made, replace(image, program=made), given).results
    assert (results == given["A"] + given["B"]).all()
    return opened.device.name


def by_arguments() -> None:
    given = numbers(1000)
    launch(kernels.image(), "add", 4, 256, [*given.values(), np.int64(1000)])
    assert (given["C"] == given["A"] + given["B"]).all()


def streams() -> str:
    """Two streams work on their own; events measure."""
    found = device()
    module = found.load(kernels.image())
    function, n = module.function("add"), 1 << 24
    places = [found.alloc(4 * n) for _ in range(3)]
    packed = struct.pack("<3Qq", *places, n)
    pair = [found.stream(), found.stream()]
    marks = []
    for stream in pair:
        start = found.event(stream)
        for _ in range(10):
            found.launch(function, (n // 256, 1, 1), (256, 1, 1), packed, 0, stream)
        marks.append((start, found.event(stream)))
    for (start, end), stream in zip(marks, pair, strict=True):
        found.synchronize(end)
        found.synchronize(stream)
        assert 1e-5 < found.elapsed(start, end) < 1
    seconds = found.elapsed(*marks[0])
    found.close()
    return f"{seconds * 1e3:.3f} ms"


def no_arguments() -> None:
    found = device()
    found.launch(found.load(kernels.image()).function("none"), ONE, ONE, b"")
    found.synchronize()
    runtime.device("cuda", TARGET).run(kernels.none_program(TARGET), kernels.image(), {})


def shared_memory() -> None:
    """Up to all of it; one byte more is refused by the driver."""
    found = device()
    function, most = (
        found.load(kernels.image()).function("shared"),
        found.driver.attribute("shared", found.ordinal),
    )
    out, host = found.alloc(1024), np.zeros(256, np.uint32)
    for size in (1024, 48 << 10, 100 << 10, most):
        packed = struct.pack("<QQ", out, size)
        found.launch(function, ONE, (256, 1, 1), packed, size)
        found.copy(host.ctypes.data, out, 1024, FROM_DEVICE)
        found.synchronize()
        assert (host == np.arange(256)).all(), size
    too_much = struct.pack("<QQ", out, most + 1)
    expect(
        InputError,
        "kernel shared: cuLaunchKernel failed: CUDA_ERROR_INVALID_VALUE",
        lambda: found.launch(function, ONE, (256, 1, 1), too_much, most + 1),
    )
    found.close()


def errors() -> str:
    """Driver's errors that leave the context as it is."""
    found = device()
    image = kernels.image()
    bad = replace(image, data=(kernels.HEADER + ".visible .entry add() { nonsense; }").encode())
    error = expect(InputError, "cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX", lambda:
                   found.load(bad))  # fmt: skip
    assert "nonsense" in str(error.hint) or "arse" in str(error.hint), error.hint
    newer = replace(image, data=image.data.replace(b".version 8.0", b".version 99.0"))
    late = expect(InputError, "cuModuleLoadDataEx failed: CUDA_ERROR_", lambda: found.load(newer))
    expect(InputError, "cuModuleLoadDataEx failed", lambda: found.load(replace(image, data=b"?")))
    module = found.load(image)
    missing = replace(image.kernels["add"], name="missing")
    image.kernels["missing"] = missing  # type: ignore[index]
    expect(InputError, "kernel missing: cuModuleGetFunction failed: CUDA_ERROR_NOT_FOUND",
           lambda: module.function("missing"))  # fmt: skip
    del image.kernels["missing"]  # type: ignore[attr-defined]
    function = module.function("none")
    expect(InputError, "kernel none: cuLaunchKernel failed: CUDA_ERROR_INVALID_VALUE",
           lambda: found.launch(function, ONE, (2048, 1, 1), b""))  # fmt: skip
    full = expect(MissingError, "cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_MEMORY",
                  lambda: found.alloc(1 << 44, "A"))  # fmt: skip
    expect(MissingError, "no device runs code for sm_120a", lambda: open_device("cuda", "sm_120a"))
    expect(MissingError, "there is no cuda:99", lambda: open_device("cuda:99", TARGET))
    expect(
        InputError, "the code is for sm_120a", lambda: found.load(replace(image, target="sm_120a"))
    )
    run = runtime.device("cuda", TARGET).run
    given = numbers(100)
    run(image.program, image, given)
    assert (given["C"] == given["A"] + given["B"]).all()
    return f"{late.message.split(': ')[1]}; {full.hint}"


def threads() -> None:
    """Threads without a context, at the same time."""
    opened, image = runtime.device("cuda", TARGET), kernels.image()
    right: list[bool] = []

    def work(n: int) -> None:
        for _ in range(20):
            given = numbers(n)
            opened.run(image.program, image, given)
            right.append(bool((given["C"] == given["A"] + given["B"]).all()))

    every = [threading.Thread(target=work, args=(1000 * n + 1,)) for n in range(1, 9)]
    for one in every:
        one.start()
    for one in every:
        one.join()
    assert right == [True] * 160


def fork() -> str:
    """A forked child is told why; one that is started anew works."""
    device().synchronize()
    if (child := os.fork()) == 0:
        code = 1
        try:
            device()
        except MissingError as error:
            code = 0 if "forked" in str(error) else 2
        except BaseException:
            code = 3
        os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, status
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return f"spawned: {pool.apply(_name)}"


def _name() -> str:
    return device().name


FAULTS = """
import sys, struct
from fly_common.errors import FlyError
from h200_devices.on_host import ONE, device
from h200_devices import kernels
found = device()
module = found.load(kernels.image())
out = found.alloc(16)
if sys.argv[1] == "two":
    found.launch(module.function("none"), ONE, ONE, b"")
found.launch(module.function("wild"), ONE, ONE, struct.pack("<Q", out))
for call in (found.synchronize, lambda: found.alloc(16), lambda: found.launch(
        module.function("none"), ONE, ONE, b""), found.stream):
    try:
        call()
        print("no error")
    except FlyError as error:
        print(type(error).__name__, "|", error.message, "|", error.hint)
found.close()
print("end")
"""


def faults() -> str:
    """Out of bounds, in processes of their own: the kernel is named, then all is lost."""
    told = []
    for which in ("one", "two"):
        done = subprocess.run(
            [sys.executable, "-c", FAULTS, which], capture_output=True, text=True, timeout=120
        )
        lines = done.stdout.splitlines()
        assert lines[-1] == "end", (done.stdout, done.stderr)
        names = "kernel wild" if which == "one" else "one of the kernels none, wild"
        assert lines[0].startswith(f"Fault | {names}: cuCtxSynchronize failed: CUDA_ERROR_"), lines
        for line in lines[1:-1]:
            assert line.startswith(f"Fault | cuda:0 is unusable since a fault of {names}: "), lines
            assert "started anew" in line
        told.append(lines[0].split(" | ")[1])
    return told[0]


def fault_of_a_call() -> str:
    """A Fault with host arrays: raised by the call itself."""
    text = (
        "from h200_devices.on_host import *\n"
        "x = np.zeros(4, np.float32)\n"
        "try:\n    launch(kernels.image(), 'wild', 1, 1, [x])\n"
        "except Fault as error:\n    print(error.message)\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("kernel wild: "), (done.stdout, done.stderr)
    assert not done.stderr, done.stderr
    return done.stdout.strip()


def times() -> str:
    """--bench's measurement of an addition of 2^28 f32: an H200 copies 4.2 TB/s."""
    n, image = 1 << 26, kernels.image()
    given = numbers(n)
    found = open_device("cuda", TARGET, Options())
    recorder = bench.Recorder(found)
    module = found.load(image)
    from fly_run.launch import execution

    outcome = execution.run(image.program, image, module, recorder, given)  # type: ignore[arg-type]
    held = Given(given, dict.fromkeys(given, "f32"), frozenset("C"), {})
    report = bench.measure(recorder, outcome.ran, image.program, held, bench.Options(50, 10, "n"))
    recorder.close()
    rate = report.rate("bytes")
    assert report.bytes == 12 * n
    assert rate > 0.5 * report.limits["bytes"], rate
    for line in report.rows():
        print("    ", *line)
    for line in report.lines():
        print("    ", line)
    assert isinstance(report.document()["share"]["bytes"], float)
    assert Fault.exit_code == 1
    return f"{rate / 1e12:.3f} TB/s"


CHECKS = {
    one.__name__: one
    for one in (
        facts, memory, staging, by_arguments, streams, no_arguments, shared_memory, errors,
        threads, fork, faults, fault_of_a_call, times,
    )
}  # fmt: skip
