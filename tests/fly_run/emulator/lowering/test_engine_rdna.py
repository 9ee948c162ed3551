"""What only gfx11 and gfx12 do: waves of 32, two instructions in one, halves of registers, barriers
in two parts, workgroup numbers in trap registers, DPP8, permutations of rows."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.engine import compile_opencl, launch
from fly_common.errors import Fault, InputError

RDNA = ("gfx1100", "gfx1201")
T = np.arange(64)


@pytest.fixture(params=RDNA)
def target(request) -> str:
    return request.param


def lanes(source: str, target: str, *arguments: np.ndarray, block: int = 64) -> np.ndarray:
    """The i32 that each of `block` work items of one workgroup leaves in C."""
    c = np.full(block, -1, "i4")
    launch(compile_opencl(source, target, "-O1"), [*arguments, c], 1, block)
    return c


def asm(body: str, *sources: str) -> str:
    """A kernel of inline assembly on the lane's number: %0 is the result, %1 on are sources."""
    listed = ", ".join(f'"v"({source})' for source in sources)
    clobbers = ", ".join(f'"v{number}"' for number in range(10, 16))
    return f"""kernel void k(global int *C) {{
        int t = TID, r;
        __asm volatile("{body}" : "=v"(r) : {listed} : {clobbers}, "vcc_lo", "s10", "s11");
        C[t] = r; }}"""


@pytest.mark.parametrize(
    ("pair", "left", "right"),
    [
        ("v_dual_mov_b32 v10, v11 :: v_dual_mov_b32 v11, v10", T * 3 + 7, T),
        ("v_dual_mov_b32 v10, 5 :: v_dual_add_nc_u32 v11, v10, v11", T * 0 + 5, 4 * T + 7),
        ("v_dual_mov_b32 v10, v11 :: v_dual_add_nc_u32 v11, 1, v11", T * 3 + 7, 3 * T + 8),
        ("v_dual_mov_b32 v10, v11 :: v_dual_lshlrev_b32 v13, 2, v10", T * 3 + 7, T * 3 + 7),
    ],
)
def test_both_halves_of_a_pair_read_before_either_writes(target, pair, left, right) -> None:
    body = f"v_mov_b32 v10, %1\\nv_mov_b32 v11, %2\\n{pair}\\nv_mov_b32 %0, "
    np.testing.assert_array_equal(lanes(asm(body + "v10", "t", "t * 3 + 7"), target), left)
    np.testing.assert_array_equal(lanes(asm(body + "v11", "t", "t * 3 + 7"), target), right)


def test_a_pair_selects_by_vcc(target) -> None:
    pair = "v_dual_cndmask_b32 v10, v10, v11 :: v_dual_cndmask_b32 v11, v11, v10"
    compare = "v_cmp_lt_u32 vcc_lo, 40, %1"
    body = f"v_mov_b32 v10, %1\\nv_mov_b32 v11, %2\\n{compare}\\n{pair}\\nv_sub_nc_u32 %0, v10, v11"
    wanted = np.where(T > 40, 1000, -1000)
    np.testing.assert_array_equal(lanes(asm(body, "t", "t + 1000"), target), wanted)


def test_a_mask_is_one_register(target) -> None:
    """The register behind it is left alone; lanes are those of the wave."""
    body = (
        "s_mov_b32 s11, 77\\nv_cmp_lt_u32 s10, 40, %1\\n"
        "v_mov_b32 v10, s10\\nv_mov_b32 v11, s11\\nv_add_nc_u32 %0, v10, v11"
    )
    found = lanes(asm(body, "t"), target).view("u4")
    assert set(found[:32]) == {77}
    assert set(found[32:]) == {np.uint32((0xFFFFFE00 + 77) & 0xFFFFFFFF)}


def test_a_comparison_into_exec_writes_nothing_else(target) -> None:
    body = (
        "v_mov_b32 %0, 1\\ns_mov_b32 s10, exec_lo\\ns_mov_b32 vcc_lo, 5\\n"
        "v_cmpx_gt_u32 20, %1\\nv_mov_b32 %0, 2\\ns_mov_b32 exec_lo, s10\\n"
        "v_add_nc_u32 %0, vcc_lo, %0"
    )
    source = asm(body, "t").replace('"=v"', '"=&v"')
    np.testing.assert_array_equal(lanes(source, target), np.where(T < 20, 7, 6))


def test_carry_in_one_register(target) -> None:
    source = """kernel void k(global int *C) { ulong a = 0xffffffffUL + TID, b = (ulong)TID << 31;
        C[TID] = (int)((a + b) >> 32) - (int)((a - b) >> 32); }"""
    a, b = 0xFFFFFFFF + T.astype("u8"), T.astype("u8") << np.uint64(31)
    wanted = ((a + b) >> np.uint64(32)).astype("i4") - ((a - b) >> np.uint64(32)).astype("i4")
    np.testing.assert_array_equal(lanes(source, target), wanted)


def test_dpp8_and_rows(target) -> None:
    def dpp(control: str) -> np.ndarray:
        source = asm(f"v_mov_b32 %0, 99\\nv_mov_b32_dpp %0, %1 {control}", "t")
        return lanes(source.replace('"=v"', '"=&v"'), target)

    every = "row_mask:0xf bank_mask:0xf"
    order = np.array([7, 6, 5, 4, 3, 2, 0, 1])
    np.testing.assert_array_equal(dpp("dpp8:[7,6,5,4,3,2,0,1]"), T - T % 8 + order[T % 8])
    np.testing.assert_array_equal(dpp(f"row_share:3 {every}"), T - T % 16 + 3)
    np.testing.assert_array_equal(dpp(f"row_xmask:5 {every}"), T ^ 5)
    np.testing.assert_array_equal(dpp(f"row_shr:1 {every}"), np.where(T % 16, T - 1, 99))


@pytest.mark.parametrize(("fetches", "wanted"), [("", 0), (" fi:1", 6)])
def test_dpp8_reads_an_inactive_lane_as_zero_unless_told(target, fetches, wanted) -> None:
    body = (
        "v_mov_b32 v10, 99\\ns_mov_b32 s10, exec_lo\\ns_mov_b32 exec_lo, 1\\n"
        f"v_mov_b32_dpp v10, %1 dpp8:[6,6,6,6,6,6,6,6]{fetches}\\ns_mov_b32 exec_lo, s10\\n"
        "v_mov_b32 %0, v10"
    )
    assert list(lanes(asm(body, "t"), target)[:2]) == [wanted, 99]


def test_permutations_of_rows(target) -> None:
    source = """kernel void k(global int *C) {
        int t = TID;
        C[t] = __builtin_amdgcn_permlanex16(5, t, 0x76543210, 0xfedcba98, false, false); }"""
    np.testing.assert_array_equal(lanes(source, target), T ^ 16)
    source = source.replace("permlanex16", "permlane16").replace("0x76543210", "0x00000003")
    row = T % 16
    wanted = T - row + np.where(row == 0, 3, np.where(row < 8, 0, row))
    np.testing.assert_array_equal(lanes(source, target), wanted)


def test_lanes_count_modulo_32(target) -> None:
    source = """kernel void k(global int *C) {
        int t = TID, n = __builtin_amdgcn_readfirstlane(t) + 37;
        C[t] = __builtin_amdgcn_readlane(t, n)
            + 1000 * __builtin_amdgcn_ds_bpermute((t + 33) * 4, t); }"""
    wave = T - T % 32
    wanted = wave + 5 + 1000 * (wave + (T + 33) % 32)
    np.testing.assert_array_equal(lanes(source, target), wanted)


# Only there: clang's assembler names no halves of gfx1201's registers.
@pytest.mark.parametrize("target", ["gfx1100"])
def test_halves_of_registers(target) -> None:
    body = (
        "v_mov_b32 v10, 0x12345678\\nv_mov_b32 v11, 0x00050001\\nv_mov_b32 v12, v10\\n"
        "v_add_nc_u16 v12.h, v10.l, v11.h\\nv_sub_nc_u16 v12.l, v12.l, v11.l\\nv_mov_b32 %0, v12"
    )
    assert set(lanes(asm(body, "t"), target)) == {0x567D5677}
    body = body[: body.index("v_add_nc")] + "v_swap_b16 v12.l, v11.h\\nv_mov_b32 %0, v12"
    assert set(lanes(asm(body, "t"), target)) == {0x12340005}


def test_short_results_keep_the_other_half(target) -> None:
    """Both name the whole register where the assembler names no halves."""
    name = "v12.l, v10.l, v10.l" if target == "gfx1100" else "v12, v10, v10"
    body = f"v_mov_b32 v10, 7\\nv_mov_b32 v12, 0x12345678\\nv_add_nc_u16 {name}\\nv_mov_b32 %0, v12"
    assert set(lanes(asm(body, "t"), target)) == {0x1234000E}


def test_workgroups_and_work_items_know_their_place(target) -> None:
    source = """kernel void k(global int *C) {
        int x = __builtin_amdgcn_workgroup_id_x(), y = __builtin_amdgcn_workgroup_id_y();
        int z = __builtin_amdgcn_workgroup_id_z();
        int i = __builtin_amdgcn_workitem_id_x(), j = __builtin_amdgcn_workitem_id_y();
        int k = __builtin_amdgcn_workitem_id_z();
        int group = x + 3 * (y + 4 * z), item = i + 5 * (j + 3 * k);
        C[30 * group + item] = x + 10 * y + 100 * z + 1000 * i + 10000 * j + 100000 * k; }"""
    c = np.full((5, 4, 3, 2, 3, 5), -1, "i4")
    launch(compile_opencl(source, target, "-O2"), [c], (3, 4, 5), (5, 3, 2))
    z, y, x, k, j, i = np.indices(c.shape)
    np.testing.assert_array_equal(c, x + 10 * y + 100 * z + 1000 * i + 10000 * j + 100000 * k)


# Only there: gfx1100's waves are not told.
@pytest.mark.parametrize("target", ["gfx1201"])
def test_a_wave_knows_its_place_in_the_workgroup(target) -> None:
    """Bits 25 to 29 of ttmp8, where llvm.amdgcn.wave.id reads it."""
    body = "s_bfe_u32 s10, ttmp8, 0x50019\\nv_mov_b32 %0, s10"
    source = asm(body, "t").replace(
        "void k", "__attribute__((reqd_work_group_size(1000, 1, 1))) void k"
    )
    found = lanes(source, target, block=1000)
    np.testing.assert_array_equal(found, np.arange(1000) // 32)


def test_thirty_two_waves_meet_at_a_barrier(target) -> None:
    source = """kernel __attribute__((reqd_work_group_size(1024, 1, 1))) void k(global int *C) {
        local int s[1024];
        int t = TID;
        for (int round = 0; round < 3; round++) {
            s[t] = t + round;
            BARRIER;
            C[t] = s[1023 - t];
            BARRIER;
        } }"""
    found = lanes(source, target, block=1024)
    np.testing.assert_array_equal(found, 1023 - np.arange(1024) + 2)


# Only there: gfx1100's barrier is one instruction.
@pytest.mark.parametrize("target", ["gfx1201"])
def test_a_wave_that_has_signalled_does_not_hold_the_others(target) -> None:
    """Wave 0 signals and spins until wave 1, which waits, has passed the barrier."""
    source = """kernel void k(global int *C) {
        local volatile int flag;
        int wave = __builtin_amdgcn_readfirstlane(TID) / 32;
        if (TID == 0) flag = 0;
        BARRIER;
        __builtin_amdgcn_s_barrier_signal(-1);
        if (wave == 0) while (flag != 7);
        __builtin_amdgcn_s_barrier_wait(-1);
        if (wave == 1) flag = 7;
        BARRIER;
        C[TID] = flag; }"""
    c = np.zeros(64, "i4")
    launch(compile_opencl(source, target, "-O1"), [c], 1, 64, max_instructions=1 << 22)
    assert set(c) == {7}


@pytest.mark.parametrize("target", ["gfx1201"])
def test_a_wave_waits_for_a_late_signal(target) -> None:
    """Wave 1 signals only after more than a turn of a wave's."""
    source = """kernel void k(global int *C) {
        local volatile int flag, spent;
        if (TID >= 32) { for (int i = 0; i < 20000; i++) spent = i; flag = 7; }
        BARRIER;
        C[TID] = flag; }"""
    c = np.zeros(64, "i4")
    device = launch(compile_opencl(source, target, "-O1"), [c], 1, 64)
    assert device.instructions > 1 << 16
    assert set(c) == {7}


def test_a_fault_names_a_lane_of_the_wave(target) -> None:
    source = "kernel void k(global int *C) { C[TID == 45 ? 100000 : TID] = 1; }"
    with pytest.raises(Fault) as caught:
        lanes(source, target)
    assert "lane 13" in caught.value.message
    assert "wave 1" in caught.value.message


def test_relative_registers(target) -> None:
    body = (
        "v_mov_b32 v10, 100\\nv_mov_b32 v11, 111\\nv_mov_b32 v12, 122\\ns_mov_b32 m0, 2\\n"
        "v_movrels_b32 v13, v10\\ns_mov_b32 m0, 1\\nv_movreld_b32 v10, v13\\nv_mov_b32 %0, v11"
    )
    assert set(lanes(asm(body, "t"), target)) == {122}


def test_waves_of_64_lanes(target) -> None:
    """A mask is a pair of registers; a fault names the lane among 64."""
    source = """kernel void k(global int *C) {
        ulong odd = __builtin_amdgcn_ballot_w64(TID & 1);
        int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
        C[TID] = odd == 0xaaaaaaaaaaaaaaaaUL ? lane : -2; }"""
    c = np.full(128, -1, "i4")
    launch(compile_opencl(source, target, "-O1", "-mwavefrontsize64"), [c], 1, 128)
    np.testing.assert_array_equal(c, [*range(64)] * 2)
    source = "kernel void k(global int *C) { C[TID == 45 ? 100000 : TID] = 1; }"
    with pytest.raises(Fault, match="lane 45"):
        launch(compile_opencl(source, target, "-O1", "-mwavefrontsize64"), [c], 1, 64)


def test_wmma_in_waves_of_64_lanes_is_refused() -> None:
    source = """
        typedef half half16 __attribute__((ext_vector_type(16)));
        typedef float float4 __attribute__((ext_vector_type(4)));
        kernel void k(global float4 *C, global half16 *A) {
          C[TID] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w64(A[TID], A[TID + 1], C[TID]); }"""
    code = compile_opencl(source, "gfx1100", "-O1", "-mwavefrontsize64")
    with pytest.raises(InputError) as caught:
        launch(code, [np.zeros(256, "f4"), np.zeros(2048, "f2")])
    assert "v_wmma_f32_16x16x16_f16 with waves of 64 lanes" in str(caught.value.hint)


LOADS = """
    typedef short short8 __attribute__((ext_vector_type(8)));
    typedef short short4 __attribute__((ext_vector_type(4)));
    typedef int int2v __attribute__((ext_vector_type(2)));
    kernel void k(global char *C, global char *A, int n) {{ {} }}"""


def test_transposed_loads_give_columns_of_a_matrix() -> None:
    """As WMMA wants B: a lane gets eight rows of its column, of a matrix stored by rows."""
    wide = """
        int row = 8 * (TID / 16) + TID % 8, column = TID / 8 % 2 * 8;
        ((global short8 *)C)[TID] = __builtin_amdgcn_global_load_tr_b128_v8i16(
            (global short8 *)(A + 2 * (row * n + column)));"""
    narrow = """
        int row = 8 * (TID / 16) + TID % 4 + 4 * (TID / 8 % 2), column = TID / 4 % 2 * 8;
        ((global int2v *)C)[TID] = __builtin_amdgcn_global_load_tr_b64_v2i32(
            (global int2v *)(A + row * n + column));"""
    for body, dtype in ((wide, "u2"), (narrow, "u1")):
        matrix = np.random.default_rng(1).integers(0, 256, (16, 24)).astype(dtype)
        got = np.zeros((32, 8), dtype)
        code = compile_opencl(LOADS.format(body), "gfx1201", "-O1")
        launch(code, [got.view("u1"), matrix.view("u1"), np.int32(24)], 1, 32)
        halves = matrix[:, :16].reshape(2, 8, 16)
        np.testing.assert_array_equal(got, halves.transpose(0, 2, 1).reshape(32, 8))


def test_transposed_loads_in_waves_of_64_lanes_are_refused() -> None:
    body = """((global short4 *)C)[TID] = __builtin_amdgcn_global_load_tr_b128_v4i16(
        (global short4 *)A + TID);"""
    code = compile_opencl(LOADS.format(body), "gfx1201", "-O1", "-mwavefrontsize64")
    with pytest.raises(InputError) as caught:
        launch(code, [np.zeros(512, "u1"), np.zeros(512, "u1"), np.int32(0)], 1, 64)
    assert "global_load_tr_b128 with waves of 64 lanes" in str(caught.value.hint)
