"""Which wave runs when: barriers, waiting for other workgroups, slices, interruption."""

from __future__ import annotations

import _thread
import threading
import time

import numpy as np
import pytest
from emulator_support.clusters import run as run_waves
from emulator_support.engine import compile_opencl, launch
from fly_run.devices.options import Options
from fly_run.emulator.machine import Emulator


def test_a_lock_between_workgroups_makes_progress() -> None:
    """Workgroup 0 waits for what the last one does: run to completion would hang."""
    source = """kernel void k(global int *A, int n) {
        if (TID == 0) {
            if (GROUP == 0)
                while (__opencl_atomic_load((global atomic_int *)A, __ATOMIC_RELAXED,
                       __OPENCL_MEMORY_SCOPE_DEVICE) < n - 1);
            else
                __opencl_atomic_fetch_add((global atomic_int *)A, 1, __ATOMIC_RELAXED,
                                          __OPENCL_MEMORY_SCOPE_DEVICE);
        }
        BARRIER;
        if (TID == 0) A[1 + GROUP] = A[0]; }"""
    a = np.zeros(101, "i4")
    launch(
        compile_opencl(source, "gfx942", "-O3"),
        [a, np.int32(100)],
        100,
        256,
        max_instructions=50_000_000,
    )
    assert (a[0], a[1]) == (99, 99)
    np.testing.assert_array_equal(a[2:], np.arange(1, 100))


def test_a_lock_in_a_loop_with_barriers_makes_progress() -> None:
    """As Triton's stream-K kernels wait: every wave reaches a barrier within its quantum."""
    source = """kernel void k(global int *A, int n) {
        local int s;
        if (GROUP == 0)
            while (1) {
                if (TID == 0) s = __opencl_atomic_load((global atomic_int *)A, __ATOMIC_RELAXED,
                                                       __OPENCL_MEMORY_SCOPE_DEVICE);
                BARRIER;
                int seen = s;
                BARRIER;
                if (seen == n - 1) break;
            }
        else if (TID == 0)
            __opencl_atomic_fetch_add((global atomic_int *)A, 1, __ATOMIC_RELAXED,
                                      __OPENCL_MEMORY_SCOPE_DEVICE);
        if (TID == 0) A[1 + GROUP] = A[0]; }"""
    a = np.zeros(9, "i4")
    code = compile_opencl(source, "gfx942", "-O3")
    launch(code, [a, np.int32(8)], 8, 256, max_instructions=20_000_000)
    assert (a[0], a[1]) == (7, 7)


def test_a_lock_within_a_workgroup_makes_progress() -> None:
    source = """kernel void k(global int *A) {
        local volatile int s;
        if (TID == 255) s = 0;
        BARRIER;
        if (TID < 64) while (s == 0);
        if (TID == 255) s = 7;
        BARRIER;
        A[TID] = s; }"""
    a = np.zeros(256, "i4")
    code = compile_opencl(source, "gfx942", "-O3")
    launch(code, [a], 1, 256, max_instructions=10_000_000)
    assert (a == 7).all()


def test_barriers_count_only_waves_that_live() -> None:
    source = """kernel void k(global int *A) {
        local int s[256];
        if (TID >= 128) return;
        s[TID] = TID;
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
        __builtin_amdgcn_s_barrier();
        A[TID] = s[127 - TID]; }"""
    a = np.full(256, -1, "i4")
    launch(compile_opencl(source, "gfx942", "-O3"), [a], 1, 256)
    np.testing.assert_array_equal(a[:128], np.arange(127, -1, -1))
    assert (a[128:] == -1).all()


def test_partial_waves_and_workgroups() -> None:
    source = "kernel void k(global int *A) { A[INDEX] += 1; }"
    for block in (1, 7, 63, 65, 100, 256):
        a = np.zeros(3 * block + 1, "i4")
        launch(compile_opencl(source, "gfx942", "-O3"), [a], 3, block)
        assert (a[:-1] == 1).all(), block
        assert a[-1] == 0


def test_registers_and_lds_start_poisoned() -> None:
    source = (
        "kernel void k(global int *A) { local int s[64]; A[TID] = ((volatile local int *)s)[TID]; }"
    )
    a = np.zeros(64, "i4")
    launch(compile_opencl(source, "gfx942", "-O3"), [a])
    assert (a == 0x7FF7BAD0).all()


LONG = """kernel void k(global int *A, int n) {
    int v = A[INDEX];
    for (int i = 0; i < n; i++) v = v * 1664525 + 1013904223;
    A[INDEX] = v; }"""


def test_progress_and_counting() -> None:
    seen: list[tuple[int, int]] = []
    device = Emulator("gfx942", Options(progress=lambda done, total: seen.append((done, total))))
    code = compile_opencl(LONG, "gfx942", "-O0")
    a = np.zeros(64 * 20, "i4")
    launch(code, [a, np.int32(20_000)], 20, 64, device=device)
    assert seen[-1] == (20, 20)
    assert len(seen) > 1
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert device.instructions > 20 * 20_000 * 3
    v = 0
    for _ in range(20_000):
        v = (v * 1664525 + 1013904223) & 0xFFFFFFFF
    assert (a == np.uint32(v).view("i4")).all()


def test_instructions_are_counted_exactly() -> None:
    """A loop of known length: what more turns cost is a multiple of the turns."""
    source = """kernel void k(global int *A, int n) {
        #pragma clang loop unroll(disable)
        for (int i = 0; i < n; i++) __asm__ volatile("s_nop 0"); A[0] = n; }"""
    code = compile_opencl(source, "gfx942", "-O3")
    counts = []
    for n in (10, 11, 111):
        device = launch(code, [np.zeros(1, "i4"), np.int32(n)], 1, 64)
        counts.append(device.instructions)
    one = counts[1] - counts[0]
    assert counts[2] - counts[1] == 100 * one
    assert 3 <= one <= 6


def test_interruption() -> None:
    code = compile_opencl(
        "kernel void k(global volatile int *A) { while (A[0] == 0); }", "gfx942", "-O3"
    )
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        launch(code, [np.zeros(1, "i4")])
    assert time.perf_counter() - start < 20


def test_other_threads_run_meanwhile() -> None:
    """The call into native code lets Python's other threads work."""
    code = compile_opencl(
        "kernel void k(global volatile int *A) { while (A[0] == 0); }", "gfx942", "-O3"
    )
    a = np.zeros(1, "i4")

    def let_go() -> None:
        a[0] = 1

    timer = threading.Timer(0.2, let_go)
    timer.start()
    launch(code, [a], max_instructions=2_000_000_000)


def test_results_do_not_depend_on_what_ran_before() -> None:
    code = compile_opencl(LONG, "gfx942", "-O3")
    device = Emulator("gfx942")
    first, second = np.arange(512, dtype="i4"), np.arange(512, dtype="i4")
    launch(code, [first, np.int32(5)], 2, 256, device=device)
    launch(code, [second, np.int32(5)], 2, 256, device=device)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    "instruction", ["s_sleep 1", "s_sleep_var s9", "s_monitor_sleep 0x1", "s_monitor_sleep 0x8000"]
)
def test_a_wave_that_sleeps_lets_others_run(instruction: str) -> None:
    """Wave 0 polls what the last one stores, with far fewer instructions than a turn may have."""
    body = f"""  s_mov_b32 s9, 1
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 stores
again:
  {instruction}
  global_load_b32 v2, v10, s[4:5]
  s_wait_loadcnt 0x0
  v_readfirstlane_b32 s8, v2
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc1 again
  v_mov_b32 v3, 9
  global_store_b32 v10, v3, s[4:5] offset:4
  s_branch done
stores:
  v_mov_b32 v3, s6
  global_store_b32 v10, v3, s[4:5]
done:"""
    words = run_waves(body, 1, 1, waves=2, limit=1000)
    assert words[:2].tolist() == [1, 9]


@pytest.mark.parametrize("signal", ["s_barrier_signal -1", "s_barrier_signal_isfirst -1"])
def test_waves_that_signal_late_are_waited_for(signal: str) -> None:
    """A wave's turn ends when it sleeps; one that waits must not be released then. Twice, as both
    kinds of signals count as one."""
    body = f"""  s_cmp_eq_u32 s6, 0
  s_cbranch_scc1 early
  s_sleep 1
  s_sleep 1
  s_sleep 1
  {signal}
  s_barrier_wait -1
  v_mov_b32 v3, 8
  global_store_b32 v10, v3, s[4:5] offset:4
  s_wait_storecnt 0x0
  {signal}
  s_barrier_wait -1
  s_branch done
early:
  s_barrier_signal -1
  s_barrier_wait -1
  s_barrier_signal -1
  s_barrier_wait -1
  global_load_b32 v13, v10, s[4:5] offset:4
  s_wait_loadcnt 0x0
  global_store_b32 v10, v13, s[4:5]
done:"""
    assert run_waves(body, 1, 1, waves=2)[:2].tolist() == [8, 8]
