"""What a kernel that does something forbidden is told: golden text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from emulator_support.engine import compile_opencl, launch
from fly_common.errors import Fault, FlyError, InputError, MissingError, UsageError


def refused(kind: type[FlyError], source: str, arguments: list[Any], **options: Any) -> str:
    """The rendered error, with guest addresses and instruction texts made the same everywhere."""
    target = options.pop("target", "gfx942")
    code = compile_opencl(source, target, "-O3")
    with pytest.raises(kind) as caught:
        launch(code, arguments, **options)
    text = caught.value.render("fly-run")
    text = re.sub(r"0x7f[0-9a-f]{10}", "ADDRESS", text)
    return re.sub(r"pc 0x[0-9a-f]+ '(\w+)[^']*'", r"pc PC '\1 …'", text)


STORE = "kernel void k(global int *A, int n) { if (INDEX < n) A[INDEX] = INDEX; }"
WHERE = "kernel k pc PC '{} …' workgroup ({}, 0, 0) wave {}"


def test_past_the_end() -> None:
    a = np.zeros(100, "i4")
    text = refused(Fault, STORE, [a, np.int32(200)], grid=2, block=64)
    where = WHERE.format("global_store_dword", 1, 0)
    assert text.splitlines() == [
        "fly-run: error: memory fault: 4 bytes at ADDRESS, lane 36 and 27 more: at the end of"
        " `A` (400 bytes);"
        f" {where}",
        "  check the index against the buffer's size before the access",
    ]
    # The lanes before the faulting one have not stored either: an instruction is all or nothing.
    np.testing.assert_array_equal(a[:64], np.arange(64))
    assert not a[64:].any()


def test_distance_to_the_nearest_buffer() -> None:
    source = "kernel void k(global int *A, int n) { A[n] = 1; }"
    a = np.zeros(1024, "i4")
    past = refused(Fault, source, [a, np.int32(1027)])
    assert "12 bytes past the end of `A` (4096 bytes)" in past
    before = refused(Fault, source, [a, np.int32(-3)])
    assert "12 bytes before the start of `A` (4096 bytes)" in before


def test_a_wide_access_over_the_end() -> None:
    source = """kernel void k(global float4 *A, global float4 *B) {
        B[0] = *(global float4 *)((global float *)A + 2); }"""
    text = refused(Fault, source, [np.zeros(5, "f4"), np.zeros(4, "f4")])
    assert "the last 4 of its bytes are past the end of `A` (20 bytes)" in text


def test_read_only() -> None:
    a = np.zeros(64, "i4")
    text = refused(Fault, STORE, [a, np.int32(64)], read_only=("A",))
    assert "write to read-only memory: 4 bytes at ADDRESS, lane 0 and 63 more: `A` may" in text
    atomic = """kernel void k(global int *A, int n) {
        __opencl_atomic_fetch_add((global atomic_int *)A, n, __ATOMIC_RELAXED,
            __OPENCL_MEMORY_SCOPE_DEVICE); }"""
    text = refused(Fault, atomic, [a, np.int32(64)], read_only=("A",))
    assert "write to read-only memory" in text
    assert not a.any()


def test_arguments_and_code_are_read_only() -> None:
    source = """kernel void k(global int *A) {
        *(global int *)(ulong)__builtin_amdgcn_kernarg_segment_ptr() = 1; }"""
    text = refused(Fault, source, [np.zeros(1, "i4")])
    assert "`the kernel's arguments` may only be read" in text
    source = """kernel void k(global ulong *A) {
        ulong pc; __asm__ volatile("s_getpc_b64 %0" : "=s"(pc)); *(global int *)pc = 0; }"""
    text = refused(Fault, source, [np.zeros(1, "u8")])
    assert "`code of the code object (segment" in text
    assert "may only be read" in text


def test_scalar_load_of_nothing() -> None:
    source = "kernel void k(global int *A, ulong p) { A[0] = *(constant int *)p; }"
    text = refused(Fault, source, [np.zeros(1, "i4"), np.uint64(0x1000)])
    assert "memory fault: 4 bytes at 0x1000: no buffer is near it" in text
    assert "s_load_dword" in text


def test_misaligned_atomic() -> None:
    source = """kernel void k(global char *A) {
        __opencl_atomic_fetch_add((global atomic_int *)(A + 2), 1, __ATOMIC_RELAXED,
            __OPENCL_MEMORY_SCOPE_DEVICE); }"""
    text = refused(Fault, source, [np.zeros(64, "i1")])
    assert "misaligned access: 4 bytes at ADDRESS, lane 0" in text


def test_outside_lds() -> None:
    source = """kernel void k(global int *A, int n) {
        local int s[64]; s[TID] = TID; BARRIER; A[TID] = s[TID + n]; }"""
    text = refused(Fault, source, [np.zeros(64, "i4"), np.int32(8)])
    assert (
        "LDS fault: 4 bytes at 0x100, lane 56 and 7 more: the workgroup has 256 bytes of LDS"
        in text
    )


@pytest.mark.parametrize("name", ["ds_append", "ds_consume"])
def test_counters_at_the_edge_of_lds(name: str) -> None:
    """At byte 64 and 68. Without a lane nothing is accessed."""
    source = f"""kernel void k(global int *A, int start, int lanes) {{
        uint old = 0;
        start = __builtin_amdgcn_readfirstlane(start);
        lanes = __builtin_amdgcn_readfirstlane(lanes);
        __asm__ volatile("s_mov_b32 exec_lo, %2\\n s_mov_b32 exec_hi, 0\\n s_mov_b32 m0, %1\\n"
            "{name} %0 offset:4\\n s_waitcnt lgkmcnt(0)\\n s_mov_b64 exec, -1"
            : "+v"(old) : "s"(start), "s"(lanes));
        A[TID] = old; }}"""

    def told(start: int, lanes: int = -1) -> str:
        arguments = [np.ones(64, "i4"), np.int32(start), np.int32(lanes)]
        return refused(Fault, source, arguments, lds=71)

    works = compile_opencl(source, "gfx942", "-O3")
    for start, lanes in ((60, -1), (60, 1), (64, 0), (61, 0)):
        out = np.ones(64, "i4")
        launch(works, [out, np.int32(start), np.int32(lanes)], lds=68)
        assert lanes or not out.any()
    assert "LDS fault: 4 bytes at 0x44, lane 0" in told(64)
    assert "misaligned access: 4 bytes at 0x41, lane 0" in told(61)
    assert "misaligned access: 4 bytes at 0x42, lane 0" in told(62)
    assert "LDS fault: 4 bytes at 0x80000004, lane 0" in told(-1 << 31, 1)


def test_pairs_of_reads_at_the_edges_of_lds() -> None:
    """Lanes 4 to 59 read at 4 · lane + start, plus 8 and plus 20; LDS has 240 bytes."""
    source = """kernel void k(global int *A, int start) {
        uint2 got = 0;
        uint place = 4 * TID + start;
        __asm__ volatile("s_mov_b64 exec, %2\\n ds_read2_b32 %0, %1 offset0:2 offset1:5\\n"
            "s_waitcnt lgkmcnt(0)\\n s_mov_b64 exec, -1"
            : "+v"(got) : "v"(place), "s"(0x0ffffffffffffff0ul));
        A[TID] = got.x + got.y; }"""

    def told(start: int) -> str:
        return refused(Fault, source, [np.zeros(64, "i4"), np.int32(start)], lds=240)

    # The second read's last lane ends at 4 · 59 + start + 20 + 4, the first one's first lane begins
    # at 4 · 4 + start + 8.
    good = compile_opencl(source, "gfx942", "-O3")
    for start in (-24, -20):
        launch(good, [np.zeros(64, "i4"), np.int32(start)], lds=240)
    assert "LDS fault: 4 bytes at 0xf0, lane 59" in told(-16)
    assert "LDS fault: 4 bytes at 0xfffffffc, lane 4" in told(-28)
    reversed_ = source.replace("offset0:2 offset1:5", "offset0:5 offset1:2")
    source = reversed_
    assert "LDS fault: 4 bytes at 0xf0, lane 59" in told(-16)
    assert "LDS fault: 4 bytes at 0xfffffffc, lane 4" in told(-28)


def test_outside_private_memory() -> None:
    source = """kernel void k(global int *A, int n) {
        volatile int s[64]; for (int i = 0; i < 64; i++) s[i] = i; A[TID] = s[n]; }"""
    text = refused(Fault, source, [np.zeros(64, "i4"), np.int32(100000)])
    assert re.search(
        r"private memory fault: 4 bytes at 0x\w+, lane 0 and 63 more: each work item has \d+", text
    )


def test_endless_loop() -> None:
    source = "kernel void k(global volatile int *A) { while (A[0] == 0); }"
    text = refused(Fault, source, [np.zeros(1, "i4")], max_instructions=100_000)
    assert re.match(
        r"fly-run: error: timeout: 10\d{4} wave-instructions executed, the limit is 100000;"
        r" kernel k pc PC '\w+ …' workgroup \(0, 0, 0\) wave 0\n"
        r"  raise --max-instructions if the kernel is only long; its waves were here:\n"
        r"  workgroup  wave  state  pc      instruction\n"
        r"  \(0, 0, 0\)  0     runs   0x",
        text,
    )


def test_waves_that_wait_for_one_that_never_comes() -> None:
    source = """kernel void k(global volatile int *A) {
        if (TID < 64) while (A[0] == 0);
        __builtin_amdgcn_s_barrier(); }"""
    text = refused(Fault, source, [np.zeros(1, "i4")], block=256, max_instructions=500_000)
    assert "(0, 0, 0)  1-3   at barrier" in text


def test_trap() -> None:
    source = "kernel void k(global int *A) { if (A[0] == 0) __builtin_trap(); A[1] = 1; }"
    text = refused(Fault, source, [np.zeros(2, "i4")])
    assert "fly-run: error: trap; kernel k pc PC 's_trap …'" in text


def test_unsupported_instructions_are_refused_before_anything_runs() -> None:
    source = """
    kernel void k(global float *A) {
        A[TID] = 1;
        __builtin_amdgcn_ds_gws_barrier(1, 0);
        __builtin_amdgcn_ds_gws_barrier(2, 0);
        A[TID] = 2; }"""
    a = np.zeros(64, "f4")
    text = refused(InputError, source, [a])
    first, second = text.splitlines()
    assert first == (
        "fly-run: error: kernel k uses 1 instruction that the emulator does not support;"
        " nothing was run"
    )
    assert re.match(r"  ds_gws_barrier \(.*\): 2 times, first at pc 0x\w+: ds_gws", second)
    assert not a.any()


def test_shapes_and_targets() -> None:
    a = np.zeros(64, "i4")
    text = refused(InputError, STORE, [a, np.int32(1)], block=512)
    assert "compiled for at most 256 work items per workgroup, but the block has 512" in text
    text = refused(UsageError, STORE, [a, np.int32(1)], block=2048)
    assert "can't be launched" in text
    text = refused(InputError, STORE, [a, np.int32(1)], lds=70000)
    assert "k requests 70000 bytes of LDS, but gfx942 has 65536 per workgroup" in text
    from fly_run.emulator.machine import Emulator

    code = compile_opencl(STORE, "gfx90a", "-O3")
    with pytest.raises(InputError, match="is for gfx90a, but the emulator was created for gfx942"):
        launch(code, [a, np.int32(1)], device=Emulator("gfx942"))
    with pytest.raises(MissingError, match="does not run gfx906"):
        Emulator("gfx906")


def test_a_fault_leaves_the_device_usable() -> None:
    from fly_run.emulator.machine import Emulator

    device = Emulator("gfx942")
    code = compile_opencl(STORE, "gfx942", "-O3")
    with pytest.raises(Fault):
        launch(code, [np.zeros(10, "i4"), np.int32(64)], device=device)
    a = np.zeros(64, "i4")
    launch(code, [a, np.int32(64)], device=device)
    np.testing.assert_array_equal(a, np.arange(64))
