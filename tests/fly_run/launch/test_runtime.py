"""One device for a process: opened once, shared by threads, bounded, not inherited by a fork."""

from __future__ import annotations

import gc
import os
import sys
import threading
from dataclasses import dataclass

import numpy as np
import pytest
from emulator_support.engine import compile_opencl
from fly_common.errors import Fault, FlyError, MissingError
from fly_run.devices.options import DEFAULTS, Options
from fly_run.emulator.watch.stats import Statistics
from fly_run.launch import runtime
from fly_run.launch.launch import bind_arguments


@pytest.fixture(autouse=True)
def _fresh():
    runtime.close_all()
    yield
    runtime.close_all()


@pytest.fixture
def restless():
    """Python's threads take over from each other as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def opened():
    return runtime.device("auto", "gfx942")


def numbers(n: int = 100) -> dict[str, np.ndarray]:
    a, b = np.random.default_rng(n).random((2, n), np.float32)
    return {"A": a, "B": b, "C": np.zeros(n, np.float32)}


def test_it_is_opened_once(opened):
    assert runtime.device("auto", "gfx942") is opened
    assert runtime.device("auto", "gfx942", Options()) is opened
    assert runtime.device("auto", "gfx942", DEFAULTS) is opened
    others = [
        runtime.device("auto", "gfx90a"),
        runtime.device("auto", "gfx942", Options(mfma="fast")),
        runtime.device("auto", "gfx942", Options(threads=1)),
    ]
    assert len({id(one) for one in [opened, *others]}) == 4
    assert runtime.device("auto", "gfx942", Options(threads=1)) is others[2]


def test_a_device_that_tells_somebody_is_his_own(opened, monkeypatch):
    for options in (
        Options(observers=(Statistics(),)),
        Options(strict=True),
        Options(progress=lambda done, total: None),
    ):
        one, other = (runtime.device("auto", "gfx942", options) for _ in range(2))
        assert len({id(one), id(other), id(opened)}) == 3
        assert not one.shared
    monkeypatch.setenv("FLY_STRICT", "1")
    strict = runtime.device("auto", "gfx942")
    assert not strict.shared
    assert strict.device.options.observers
    monkeypatch.setenv("FLY_STRICT", "0")
    assert not runtime.device("auto", "gfx942").device.options.observers
    monkeypatch.delenv("FLY_STRICT")
    assert runtime.device("auto", "gfx942") is opened


def test_what_cannot_be_opened_is_not_kept():
    for _ in range(2):
        with pytest.raises(MissingError):
            runtime.device("hip", "gfx942")
        with pytest.raises(MissingError, match="does not run gfx906"):
            runtime.device("auto", "gfx906")


def test_images_are_loaded_once_by_content(opened, add, assemble, add_program, monkeypatch):
    loads = []
    load = opened.device.load
    monkeypatch.setattr(opened.device, "load", lambda image: loads.append(image) or load(image))
    again = type(add).parse(assemble("add", manifest=add_program))
    assert again is not add
    for image in (add, again, add):
        given = numbers()
        opened.run(image.program, image, given)
        assert (given["C"] == given["A"] + given["B"]).all()
    assert loads == [add]


def test_modules_and_devices_are_bounded(opened, monkeypatch):
    monkeypatch.setattr(runtime, "MOST_MODULES", 2)
    monkeypatch.setattr(runtime, "MOST_DEVICES", 2)
    source = "kernel void k(global int *A) {{ A[0] += {}; }}"
    codes = [compile_opencl(source.format(n), "gfx942", "-O3") for n in range(1, 5)]
    total = np.zeros(1, "i4")
    for code in [*codes, codes[0], codes[3]]:
        opened.run_kernel(bind_arguments(code, None, 1, 1, [total]), code)
    assert total[0] == 1 + 2 + 3 + 4 + 1 + 4
    assert [module.image for module in opened._modules.values()] == [codes[0], codes[3]]
    assert len(opened.device._spaces) == 2
    for threads in (1, 2, 3):
        runtime.device("auto", "gfx942", Options(threads=threads))
    assert len(runtime._opened) == 2
    # Whoever holds the oldest may still use it.
    opened.run_kernel(bind_arguments(codes[0], None, 1, 1, [total]), codes[0])
    assert total[0] == 16


def test_a_fault_leaves_the_next_call_right(opened):
    source = """kernel void k(global int *A, int n) {
        A[TID * n] = TID; __builtin_amdgcn_s_barrier(); A[TID * n] += 1; }"""
    code = compile_opencl(source, "gfx942", "-O3")
    for _ in range(3):
        a = np.zeros(128, "i4")
        with pytest.raises(Fault, match="`A`"):
            opened.run_kernel(bind_arguments(code, None, 1, 128, [a, np.int32(2)]), code)
        assert len(opened.device._buffers) == 0
        opened.run_kernel(bind_arguments(code, None, 1, 128, [a, np.int32(1)]), code)
        np.testing.assert_array_equal(a, np.arange(1, 129))


def test_threads_take_turns(opened, restless, monkeypatch):
    """Right results of four threads, each with kernels and arrays of its own; no thread's kernel
    sees another's arrays."""
    seen: set[int] = set()
    launch = opened.device.launch

    def watched(*given) -> None:
        seen.add(len(opened.device._buffers))
        launch(*given)

    monkeypatch.setattr(opened.device, "launch", watched)
    source = """kernel void k(global int *A, global const int *B, int n) {{
        int v = B[INDEX]; for (int i = 0; i < n; i++) v = v * 1664525 + {}; A[INDEX] = v; }}"""
    errors: list[str] = []
    start = threading.Barrier(4)

    def work(number: int) -> None:
        code = codes[number]
        start.wait()
        for turn in range(60):
            groups, steps = turn % 5 + 1, turn * 7
            b = np.arange(groups * 64, dtype="i4") + turn
            a = np.zeros_like(b)
            want = b.astype("u4")
            for _ in range(steps):
                want = want * np.uint32(1664525) + np.uint32(number)
            try:
                opened.run_kernel(
                    bind_arguments(code, None, groups, 64, [a, b, np.int32(steps)]), code
                )
                if not (a.view("u4") == want).all():
                    errors.append(f"thread {number}, turn {turn}: wrong")
                far = bind_arguments(code, None, groups + 1, 64, [a, b, np.int32(1)])
                with pytest.raises(Fault) as fault:
                    opened.run_kernel(far, code)
                if f"({a.nbytes} bytes)" not in str(fault.value):
                    errors.append(f"thread {number}, turn {turn}: {fault.value}")
            except (FlyError, AssertionError) as error:
                errors.append(f"thread {number}, turn {turn}: {error}")

    codes = [compile_opencl(source.format(n), "gfx942", "-O3") for n in range(4)]
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert seen == {2}
    assert len(opened.device._buffers) == 0


def test_threads_open_one_device(restless):
    found, start = [], threading.Barrier(8)

    def work() -> None:
        start.wait()
        found.append(runtime.device("auto", "gfx90a"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(one) for one in found}) == 1


def test_a_fork_opens_its_own(opened, add):
    """Even while another thread of the parent has its turn, which never ends in the child."""
    given = numbers()
    opened.run(add.program, add, given)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with opened.turn, runtime._opening:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            mine = runtime.device("auto", "gfx942")
            again = numbers(50)
            mine.run(add.program, add, again)
            status = int(mine is opened or not (again["C"] == again["A"] + again["B"]).all())
        finally:
            os._exit(status)
    done.set()
    thread.join()
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert runtime.device("auto", "gfx942") is opened


def resident() -> int:
    """Bytes of memory that this process has in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_calls_leave_no_memory(opened, add):
    """Arrays go when their call is over; what is kept of shapes is bounded."""

    def call(n: int) -> None:
        given = numbers(n)
        opened.run(add.program, add, given)
        assert given["C"][-1] == given["A"][-1] + given["B"][-1]

    for n in range(1, 400):
        call(n * 64)
    gc.collect()
    before = resident()
    for n in range(400, 1200):
        call(n * 64)
    gc.collect()
    assert resident() - before < 24 << 20
    assert len(opened.device._buffers) == 0
    assert opened.device._buffers.rows == 0


def test_observers_need_no_hash():
    @dataclass
    class Counter:
        count: int = 0

    with pytest.raises(TypeError):
        hash(Counter())
    with runtime.device("auto", "gfx942", Options(observers=(Counter(),))) as mine:  # type: ignore[arg-type]
        assert not mine.shared
