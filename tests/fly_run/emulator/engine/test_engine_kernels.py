"""Whole kernels, compiled by clang at -O0 and -O3 for every target, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.engine import GFX9, LEVELS, compile_opencl, launch

from .engine_runs import N, Run


def test_tree_reduction_in_lds(run: Run, rng: np.random.Generator) -> None:
    source = """kernel void k(global float *A, global float *C) {
        local float s[256]; int t = TID; s[t] = A[INDEX];
        for (int o = SIZE / 2; o > 0; o /= 2) {
            BARRIER;
            if (t < o) s[t] += s[t + o];
        }
        if (t == 0) C[GROUP] = s[0]; }"""
    a, c = rng.integers(0, 100, 1 << 12).astype("f4"), np.zeros(16, "f4")
    run(source, [a, c], 16)
    np.testing.assert_array_equal(c, a.reshape(16, 256).sum(1))


def test_atomics(run: Run, rng: np.random.Generator) -> None:
    source = """
    #define SCOPE __ATOMIC_RELAXED, __OPENCL_MEMORY_SCOPE_DEVICE
    kernel void k(global int *A, global int *H, global int *R, global float *F, global ulong *L,
                  int n) {
        int i = INDEX;
        if (i >= n) return;
        R[i] = __opencl_atomic_fetch_add((global atomic_int *)&H[A[i] & 15], 1, SCOPE);
        __opencl_atomic_fetch_min((global atomic_int *)&H[16], A[i], SCOPE);
        __opencl_atomic_fetch_max((global atomic_int *)&H[17], A[i], SCOPE);
        __opencl_atomic_fetch_xor((global atomic_int *)&H[18], A[i], SCOPE);
        __opencl_atomic_fetch_add((global atomic_float *)F, 1.0f, SCOPE);
        __opencl_atomic_fetch_add((global atomic_ulong *)L, (ulong)A[i], SCOPE);
        int e = 0;
        while (!__opencl_atomic_compare_exchange_strong((global atomic_int *)&H[19], &e, e + 1,
            __ATOMIC_RELAXED, SCOPE));
        local int s;
        if (TID == 0) s = 0;
        BARRIER;
        __opencl_atomic_fetch_add((local atomic_int *)&s, A[i] & 1, __ATOMIC_RELAXED,
            __OPENCL_MEMORY_SCOPE_WORK_GROUP);
        BARRIER;
        if (TID == 0) H[20 + GROUP] = s; }"""
    n = 1024
    a = rng.integers(0, 2**31, n).astype("i4")
    h, r, f, total = np.zeros(24, "i4"), np.zeros(n, "i4"), np.zeros(1, "f4"), np.zeros(1, "u8")
    h[16] = 2**31 - 1
    run(source, [a, h, r, f, total, np.int32(n)])
    np.testing.assert_array_equal(h[:16], np.bincount(a & 15, minlength=16))
    assert (h[16], h[17], h[18]) == (a.min(), a.max(), np.bitwise_xor.reduce(a))
    assert (f[0], total[0], h[19]) == (n, a.sum(dtype="u8"), n)
    np.testing.assert_array_equal(h[20:], (a & 1).reshape(4, 256).sum(1))
    for place in range(16):
        among = r[(a & 15) == place]
        # Lanes and waves act in ascending order, so the old values count up.
        np.testing.assert_array_equal(among, np.arange(len(among)))


@pytest.mark.parametrize("run", [(t, o) for t in GFX9 for o in LEVELS], indirect=True)
def test_moves_between_lanes(run: Run, rng: np.random.Generator) -> None:
    source = """kernel void k(global int *A, global int *C) {
        int t = TID, v = A[t];
        ulong m = __builtin_amdgcn_ballot_w64(v > 0);
        C[t] = __builtin_amdgcn_ds_bpermute((t ^ 5) << 2, v);
        C[64 + t] = __builtin_amdgcn_update_dpp(7, v, 0x111, 0xf, 0xf, false);
        C[128 + t] = __builtin_amdgcn_update_dpp(7, v, 0xB1, 0xf, 0xf, true);
        C[192 + t] = __builtin_amdgcn_readlane(v, 13);
        C[256 + t] = __builtin_amdgcn_ds_swizzle(v, 0x041F);
        C[320 + t] = __builtin_amdgcn_readfirstlane(v);
        C[384 + t] = __builtin_amdgcn_mbcnt_hi(m >> 32, __builtin_amdgcn_mbcnt_lo((uint)m, 0));
        C[448 + t] = __builtin_amdgcn_update_dpp(9, v, 0x142, 0xa, 0xf, false);
        C[512 + t] = __builtin_amdgcn_ds_permute(((t * 3) & 63) << 2, v);
        C[576 + t] = __builtin_amdgcn_update_dpp(9, v, 0x140, 0xf, 0x5, false);
        C[640 + t] = __builtin_amdgcn_update_dpp(9, v, 0x101, 0xf, 0xf, true);
        C[704 + t] = __builtin_amdgcn_update_dpp(9, v, 0x123, 0xf, 0xf, true);
        C[768 + t] = __builtin_amdgcn_update_dpp(9, v, 0x143, 0xc, 0xf, false); }"""
    a, c, t = rng.integers(-100, 100, 64).astype("i4"), np.zeros((13, 64), "i4"), np.arange(64)
    run(source, [a, c], 1, 64)
    sent = np.zeros(64, "i4")
    sent[(t * 3) & 63] = a
    wanted = [
        a[t ^ 5],
        np.where(t % 16 >= 1, a[t - 1], 7),
        a[t ^ 1],
        np.full(64, a[13]),
        a[t ^ 1],
        np.full(64, a[0]),
        np.cumsum(a > 0) - (a > 0),
        np.where(t // 16 % 2 == 1, a[t // 16 * 16 - 1], 9),
        sent,
        np.where(t % 16 // 4 % 2 == 0, a[t // 16 * 16 + 15 - t % 16], 9),
        np.where(t % 16 < 15, a[(t + 1) % 64], 0),
        a[t // 16 * 16 + (t % 16 - 3) % 16],
        np.where(t >= 32, a[31], 9),
    ]
    for row, expected in enumerate(wanted):
        np.testing.assert_array_equal(c[row], expected, err_msg=f"row {row}")


def test_private_arrays(run: Run, rng: np.random.Generator) -> None:
    source = """kernel void k(global int *A, global int *C, int n) {
        int i = INDEX, b[16];
        for (int j = 0; j < 16; j++) b[j] = A[(i + j) % n];
        for (int r = 0; r < 4; r++) {
            int s = A[(i + r) % n] & 15, u = A[(i * 7 + r) % n] & 15, x = b[s];
            b[s] = b[u] + r;
            b[u] = x;
        }
        int h = 0;
        for (int j = 0; j < 16; j++) h = h * 31 + b[j];
        if (i < n) C[i] = h; }"""
    a, c = rng.integers(-1000, 1000, N).astype("i4"), np.zeros(N, "i4")
    run(source, [a, c, np.int32(N)])
    i = np.arange(N)
    b = a[(i[:, None] + np.arange(16)) % N].astype("i8")
    for r in range(4):
        s, u = a[(i + r) % N] & 15, a[(i * 7 + r) % N] & 15
        x = b[i, s]
        b[i, s] = b[i, u] + r
        b[i, u] = x
    h = np.zeros(N, "i8")
    for j in range(16):
        h = h * 31 + b[:, j]
    np.testing.assert_array_equal(c, h.astype("i4"))


def test_calls_switches_and_small_types(run: Run, rng: np.random.Generator) -> None:
    source = """
    __attribute__((noinline)) static int g(int x) { return x * 3 + 1; }
    kernel void k(global int *A, global uchar *U, global short *S, global int *C, int n) {
        int i = INDEX;
        if (i >= n) return;
        int v = A[i];
        switch (v & 7) {
        case 0: v = g(v); break;
        case 1: v += U[i]; break;
        case 2: v -= S[i]; break;
        case 3: v = g(g(v)); break;
        case 4: v = v << 3; break;
        case 5: v = __builtin_popcount(v); break;
        case 6: v = __builtin_clz(v | 1); break;
        default: v = ~v;
        }
        C[i] = v; U[i] = (uchar)v; S[i] = (short)(v >> 3); }"""
    a = rng.integers(-1000, 1000, N).astype("i4")
    u, s = rng.integers(0, 255, N).astype("u1"), rng.integers(-3000, 3000, N).astype("i2")
    bits = a.astype("i8") & 0xFFFFFFFF
    ones = np.array([int(x).bit_count() for x in bits])
    zeros = np.array([32 - int(x | 1).bit_length() for x in bits])
    choices = [a * 3 + 1, a + u, a - s, (a * 3 + 1) * 3 + 1, a << 3, ones, zeros, ~a]
    wanted = np.choose(a & 7, choices).astype("i4")
    c = np.zeros(N, "i4")
    run(source, [a, u, s, c, np.int32(N)])
    np.testing.assert_array_equal(c, wanted)
    np.testing.assert_array_equal(u, wanted.astype("u1"))
    np.testing.assert_array_equal(s, (wanted >> 3).astype("i2"))


def test_addresses_of_every_kind_through_one_pointer(run: Run) -> None:
    """Flat accesses to global, local and private memory, picked lane by lane."""
    source = """kernel void k(global int *A, global int *C) {
        local int s[64];
        int p[4];
        int t = TID;
        s[t] = 1000 + t;
        for (int j = 0; j < 4; j++) p[j] = 2000 + 10 * t + j;
        BARRIER;
        int *q = t % 3 == 0 ? (int *)&A[t] : t % 3 == 1 ? (int *)&s[63 - t] : (int *)&p[t & 3];
        *q += 1;
        BARRIER;
        C[t] = *q + s[t]; }"""
    a, c, t = np.arange(64, dtype="i4"), np.zeros(64, "i4"), np.arange(64)
    run(source, [a, c], 1, 64)
    local = 1000 + t
    touched = 63 - t[t % 3 == 1]
    local[touched] += 1
    picked = np.choose(t % 3, [t + 1, local[63 - t], 2000 + 10 * t + (t & 3) + 1])
    np.testing.assert_array_equal(c, picked + local)
    np.testing.assert_array_equal(a, np.where(t % 3 == 0, t + 1, t))


def test_three_dimensions(run: Run) -> None:
    source = """kernel void k(global int *C, int nx, int ny) {
        int x = __builtin_amdgcn_workgroup_id_x() * 4 + __builtin_amdgcn_workitem_id_x();
        int y = __builtin_amdgcn_workgroup_id_y() * 3 + __builtin_amdgcn_workitem_id_y();
        int z = __builtin_amdgcn_workgroup_id_z() * 5 + __builtin_amdgcn_workitem_id_z();
        C[(z * ny + y) * nx + x] = x + 100 * y + 10000 * z; }"""
    c = np.full((10, 6, 12), -1, "i4")
    run(source, [c, np.int32(12), np.int32(6)], (3, 2, 2), (4, 3, 5))
    z, y, x = np.indices(c.shape)
    np.testing.assert_array_equal(c, x + 100 * y + 10000 * z)


def test_constant_tables_and_variables(run: Run) -> None:
    source = """
    constant int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    global int counter = 40;
    kernel void k(global int *C) { C[TID] = table[TID & 7] + counter; }"""
    c = np.zeros(64, "i4")
    run(source, [c], 1, 64)
    np.testing.assert_array_equal(c, np.tile([43, 41, 44, 41, 45, 49, 42, 46], 8))


def test_a_buffer_of_more_than_four_gigabytes() -> None:
    """Its pages exist only where they are touched."""
    source = """kernel void k(global uchar *A, ulong start) {
        A[start + (ulong)TID * 67108864] = TID + 1; }"""
    a = np.zeros((1 << 32) + 4096, "u1")
    launch(compile_opencl(source, "gfx942", "-O3"), [a, np.uint64(4095)])
    np.testing.assert_array_equal(a[4095 :: 1 << 26], np.append(np.arange(1, 65), 0))


def test_a_pointer_to_another_kernels_function_refuses_nothing(
    run: Run, rng: np.random.Generator
) -> None:
    """`wide` wants more vector registers than `k` has; `k` calls, but never that."""
    source = """
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
#define REGISTER(n) __asm__ volatile("v_mov_b32 v" #n ", 0" ::: "v" #n)
typedef int (*Function)(int);
static __attribute__((noinline)) int wide(int x) { REGISTER(200); return x; }
static __attribute__((noinline)) int narrow(int x) { return x * 3; }
__attribute__((used)) constant Function table[2] = {wide, wide};
kernel void k(global int *A) { A[TID] = narrow(A[TID]); }"""
    a = rng.integers(-1000, 1000, 64).astype("i4")
    wanted = a * 3
    run(source, [a], 1, 64)
    np.testing.assert_array_equal(a, wanted)
