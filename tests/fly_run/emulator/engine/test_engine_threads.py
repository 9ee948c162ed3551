"""Long grids on several host threads: the same results, the same faults, none left behind."""

from __future__ import annotations

import _thread
import os
import threading
import time

import numpy as np
import pytest
from emulator_support.engine import compile_opencl, launch
from fly_common.errors import Fault, UsageError
from fly_run.devices.options import Options
from fly_run.emulator.engine import launch as launching
from fly_run.emulator.machine import Emulator

SOURCE = """kernel void k(global int *A, int n) {
    int v = A[INDEX];
    for (int i = 0; i < n + (int)(GROUP % 7) * 50; i++) v = v * 1664525 + 1013904223;
    A[INDEX] = v; }"""


@pytest.fixture
def crews(monkeypatch):
    """How many threads took part in each round; short first slices, so that rounds are many."""
    seen: list[int] = []
    run_round = launching._round

    def watched(members, *rest):
        seen.append(len(members))
        return run_round(members, *rest)

    monkeypatch.setattr(launching, "_round", watched)
    monkeypatch.setattr(launching, "EARLY_SLICE", 1 << 11)
    monkeypatch.setattr(launching, "FIRST_SLICE", 1 << 12)
    monkeypatch.setattr(launching, "SLICE", 1 << 17)
    return seen


def run(threads: int | None, n: int = 700, groups: int = 300) -> tuple[np.ndarray, Emulator]:
    a = np.arange(groups * 128, dtype="i4")
    code = compile_opencl(SOURCE, "gfx942", "-O3")
    device = launch(code, [a, np.int32(n)], groups, 128, threads=threads)
    return a, device


def assert_threads(count: int) -> None:
    """A thread that a round did not wait for ends as soon as it runs."""
    end = time.monotonic() + 30
    while _thread._count() > count and time.monotonic() < end:
        time.sleep(0.001)
    assert _thread._count() == count


@pytest.mark.parametrize("idle", [0, 1])
def test_idle_processors_help_early(idle: int, crews, monkeypatch) -> None:
    monkeypatch.setattr(launching, "FIRST_SLICE", 1 << 40)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    monkeypatch.setattr(launching, "_idle_processors", lambda: idle)
    run(None)
    assert max(crews) == 1 + idle
    run(3)  # asked for, threads help whatever runs
    assert max(crews) == 3


def test_the_last_half_of_a_grid_gets_no_thread_early(crews, monkeypatch) -> None:
    monkeypatch.setattr(launching, "FIRST_SLICE", 1 << 40)
    executed = run(1, groups=40)[1].instructions
    crews.clear()
    monkeypatch.setattr(launching, "EARLY_SLICE", executed * 3 // 5)
    run(3, groups=40)
    assert crews == [1, 1]


def test_idle_processors_are_counted(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    listed = tmp_path / "loadavg"
    monkeypatch.setattr(launching, "LOAD", listed)
    for text, idle in (("0.5 0.4 0.3 1/187 99", 3), ("9 9 9 7/187 99", 0), ("?", 0)):
        listed.write_text(text)
        assert launching._idle_processors() == idle
    listed.unlink()
    assert launching._idle_processors() == 0


def test_a_thread_that_does_not_run_is_not_waited_for(crews, monkeypatch) -> None:
    """One that never gets its turn leaves all of the grid to the others."""
    late: list = []
    monkeypatch.setattr(_thread, "start_new_thread", lambda *call: late.append(call))
    many, _ = run(2)
    assert late
    assert max(crews) == 2
    before = many.copy()
    for function, arguments in late:
        function(*arguments)
    np.testing.assert_array_equal(many, before)
    monkeypatch.undo()
    np.testing.assert_array_equal(many, run(1)[0])


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_the_same_results_and_counts(threads, crews) -> None:
    one, device = run(1)
    assert set(crews) == {1}
    many, other = run(threads)
    assert max(crews) == threads
    np.testing.assert_array_equal(one, many)
    assert other.instructions == device.instructions


def test_every_workgroup_runs_once_and_knows_its_place(crews) -> None:
    source = """kernel void k(global int *A) {
        int x = __builtin_amdgcn_workgroup_id_x(), y = __builtin_amdgcn_workgroup_id_y(),
            z = __builtin_amdgcn_workgroup_id_z();
        for (volatile int i = 0; i < 40; i++);
        if (TID == 0) { A[2 * ((z * 11 + y) * 13 + x)] += 1; A[2 * ((z * 11 + y) * 13 + x) + 1] = x | y << 8 | z << 16; } }"""  # noqa: E501
    a = np.zeros((7, 11, 13, 2), "i4")
    launch(compile_opencl(source, "gfx942", "-O3"), [a], (13, 11, 7), 64, threads=3)
    assert max(crews) == 3
    z, y, x = np.indices((7, 11, 13))
    assert (a[..., 0] == 1).all()
    np.testing.assert_array_equal(a[..., 1], x | y << 8 | z << 16)


@pytest.mark.parametrize("threads", [1, 2])
def test_workgroups_that_wait_for_all_others_end(threads, crews) -> None:
    """They must all be resident, on whatever thread, and have their turn however short slices are:
    a slice here is over when two of them have used their quantum."""
    source = """kernel void k(global int *A, int n) {
        for (volatile int i = 0; i < 100; i++);
        if (TID == 0) {
            __opencl_atomic_fetch_add((global atomic_int *)A, 1, __ATOMIC_RELAXED,
                                      __OPENCL_MEMORY_SCOPE_DEVICE);
            while (__opencl_atomic_load((global atomic_int *)A, __ATOMIC_RELAXED,
                   __OPENCL_MEMORY_SCOPE_DEVICE) < n);
            A[1 + GROUP] = 1;
        } }"""
    a = np.zeros(65, "i4")
    code = compile_opencl(source, "gfx942", "-O3")
    launch(code, [a, np.int32(64)], 64, 64, threads=threads, max_instructions=500_000_000)
    assert max(crews) == threads
    assert a[0] == 64
    assert (a[1:] == 1).all()


def test_atomics_of_several_threads_add_up(crews) -> None:
    source = """kernel void k(global int *A) {
        for (int i = 0; i < 50; i++)
            __opencl_atomic_fetch_add((global atomic_int *)A + i % 3, (int)TID + i,
                                      __ATOMIC_RELAXED, __OPENCL_MEMORY_SCOPE_DEVICE); }"""
    a = np.zeros(3, "i4")
    launch(compile_opencl(source, "gfx942", "-O3"), [a], 40, 256, threads=2)
    assert max(crews) == 2
    want = [40 * sum(t + i for t in range(256) for i in range(50) if i % 3 == k) for k in range(3)]
    assert a.tolist() == want


def test_global_atomics_keep_to_one_thread(crews) -> None:
    """So that float sums and queue positions are the same each time."""
    source = """kernel void k(global int *A) {
        int place = __opencl_atomic_fetch_add((global atomic_int *)A, 1, __ATOMIC_RELAXED,
                                              __OPENCL_MEMORY_SCOPE_DEVICE);
        A[1 + place] = (int)GROUP; for (volatile int i = 0; i < 40; i++); }"""
    a = np.zeros(1 + 300, "i4")
    launch(compile_opencl(source, "gfx942", "-O3"), [a], 300, 1)
    assert set(crews) == {1}
    np.testing.assert_array_equal(a[1:], np.arange(300))


def test_a_fault_on_any_thread_ends_all(crews) -> None:
    source = """kernel void k(global int *A, int n) {
        int v = A[INDEX];
        for (int i = 0; i < n; i++) v = v * 1664525 + 1013904223;
        A[INDEX + (GROUP == 250 ? 1 << 20 : 0)] = v; }"""
    a = np.arange(300 * 64, dtype="i4")
    code = compile_opencl(source, "gfx942", "-O3")
    before = _thread._count()
    for _ in range(5):
        with pytest.raises(Fault, match=r"workgroup \(250, 0, 0\)"):
            launch(code, [a, np.int32(300)], 300, 64, threads=2)
    assert max(crews) == 2
    assert_threads(before)
    # The next launch finds nothing of the broken one.
    launch(code, [a[: 200 * 64], np.int32(300)], 200, 64, threads=2)


def test_the_limit_counts_all_threads(crews) -> None:
    a, code = np.zeros(300 * 64, "i4"), compile_opencl(SOURCE, "gfx942", "-O3")
    with pytest.raises(
        Fault, match=r"timeout: \d+ wave-instructions executed, the limit is 900000"
    ):
        launch(code, [a, np.int32(5000)], 300, 64, threads=2, max_instructions=900_000)
    assert max(crews) == 2


def test_code_found_while_several_threads_run(crews) -> None:
    """A jump to where only an argument says, in workgroups that come late: Python decodes it."""
    source = r"""kernel void k(global int *A, int n, int distance) {
        int v = A[INDEX];
        for (int i = 0; i < n; i++) v = v * 1664525 + 1013904223;
        if (GROUP >= 150)
            __asm__ volatile("s_getpc_b64 s[20:21]\n s_add_u32 s20, s20, %1\n"
                             "s_addc_u32 s21, s21, 0\n s_setpc_b64 s[20:21]\n s_trap 2\n"
                             "v_mul_u32_u24 %0, 0x4321, %0\n"
                             : "+v"(v) : "s"(__builtin_amdgcn_readfirstlane(distance))
                             : "s20", "s21");
        A[INDEX] = v; }"""
    a = np.arange(300 * 64, dtype="i4")
    code = compile_opencl(source, "gfx942", "-O3")
    device = launch(code, [a, np.int32(100), np.int32(16)], 300, 64, threads=2)
    assert max(crews) == 2
    assert len(prepared(device).programs) > 1
    v = np.arange(300 * 64, dtype="u4")
    for _ in range(100):
        v = v * np.uint32(1664525) + np.uint32(1013904223)
    late = (v & 0xFFFFFF) * np.uint32(0x4321)
    want = np.where(np.arange(300 * 64) // 64 < 150, v, late)
    np.testing.assert_array_equal(a.view("u4"), want)


def prepared(device: Emulator):
    ((found, *_),) = device._spaces
    return found


def test_interruption_leaves_no_thread(crews) -> None:
    code = compile_opencl(
        """kernel void k(global volatile int *A) {
           while (A[0] == 0) for (volatile int i = 0; i < 9; i++); }""",
        "gfx942",
        "-O3",
    )
    before = _thread._count()
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        launch(code, [np.zeros(1, "i4")], 600, 64, threads=2)
    timer.join()
    assert max(crews) == 2
    assert_threads(before)


def test_threads_are_counted_from_one() -> None:
    with pytest.raises(UsageError, match="threads"):
        Emulator("gfx942", Options(threads=0))


def test_a_fork_has_waves_of_its_own(crews) -> None:
    """A process that forks amid a launch and its child each end it by themselves."""
    children: list[int] = []

    def fork_once(done: int, groups: int) -> None:
        if not children and done < groups:
            children.append(os.fork())
            if children[0]:
                os.waitpid(children[0], 0)

    a = np.arange(64, dtype="i4")
    code = compile_opencl(SOURCE, "gfx942", "-O3")
    device = Emulator("gfx942", Options(threads=1, progress=fork_once))
    try:
        launch(code, [a, np.int32(40000)], 1, 64, device=device)
    finally:
        if children == [0]:
            os._exit(0)
    expected = np.arange(64, dtype="i4")
    with np.errstate(over="ignore"):
        for _ in range(40000):
            expected = expected * np.int32(1664525) + np.int32(1013904223)
    assert children
    np.testing.assert_array_equal(a, expected)
