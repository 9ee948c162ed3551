"""Buffer resources of all kinds, loads straight to LDS, scalar stores and atomics."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.rows import LANES, run
from fly_common.errors import Fault

LANE = np.arange(LANES, dtype=np.uint32)
DATA = np.arange(1000, 1000 + LANES, dtype=np.uint32)


def resource(records: int, stride: int = 0, word3: int = 0, high: int = 0) -> str:
    """s[4:7]: a resource of the inputs."""
    return f"""
      s_mov_b32 s4, s2
      s_and_b32 s5, s3, 0xffff
      s_or_b32 s5, s5, {stride << 16 | high << 31}
      s_mov_b32 s6, {records}
      s_mov_b32 s7, {word3}
    """


def test_a_structured_buffer_is_bounded_by_its_index() -> None:
    body = resource(records=10, stride=12)
    body += "buffer_load_dword v40, v0, s[4:7], 0 idxen offset:4"
    (found,) = run("gfx942", body, DATA)
    wanted = np.where(LANE < 10, 1000 + 3 * LANE + 1, 0)
    np.testing.assert_array_equal(found, wanted)


def test_without_an_index_the_range_counts_bytes_whatever_the_stride() -> None:
    body = resource(records=40, stride=12)
    body += "v_lshlrev_b32 v5, 2, v0\nbuffer_load_dword v40, v5, s[4:7], 0 offen"
    (found,) = run("gfx942", body, DATA)
    np.testing.assert_array_equal(found, np.where(LANE < 10, DATA, 0))


def test_index_and_offset_together_come_from_two_registers() -> None:
    body = resource(records=64, stride=4)
    body += """
      v_lshrrev_b32 v6, 1, v0
      v_and_b32 v7, 1, v0
      v_lshlrev_b32 v7, 2, v7
      s_movk_i32 s8, 8
      buffer_load_dword v40, v[6:7], s[4:7], s8 idxen offen
    """
    (found,) = run("gfx942", body, np.arange(2 * LANES, dtype=np.uint32)[:LANES])
    wanted = LANE // 2 + LANE % 2 + 2
    np.testing.assert_array_equal(found, wanted)


def test_the_lane_is_added_to_the_index_and_no_range_is_checked() -> None:
    # ADD_TID_ENABLE is bit 23.
    body = resource(records=0, stride=4, word3=1 << 23)
    body += "s_mov_b32 exec_hi, 0x3fffffff\n"
    body += "buffer_load_dword v40, off, s[4:7], 0 offset:8\n"
    body += "s_mov_b32 exec_hi, -1\ns_waitcnt vmcnt(0)"
    (found,) = run("gfx942", body, DATA)
    np.testing.assert_array_equal(found, [*DATA[2:], 0x11111111, 0x11111111])


def test_offsets_of_a_private_buffer_wrap_around() -> None:
    """Swizzled, the lane added, no index: the sum of both offsets has 32 bits."""
    body = resource(records=0, stride=8, word3=1 << 23, high=1)
    body += "v_mov_b32 v5, -4\nv_and_b32 v6, 4, v0\nv_add_u32 v5, v5, v6\n"
    body += "s_mov_b32 exec_lo, 0xff\ns_mov_b32 exec_hi, 0\n"
    body += "buffer_load_dword v40, v5, s[4:7], 0 offen offset:4\n"
    body += "s_mov_b64 exec, -1\ns_waitcnt vmcnt(0)"
    (found,) = run("gfx942", body, DATA)
    np.testing.assert_array_equal(found[:8], 1000 + 2 * (LANE[:8] & 4) + LANE[:8])


def test_a_swizzled_buffer_interleaves_indices() -> None:
    # 8 indices side by side, 8 bytes each: element e of index i is at ((i/8·8 + 4e)·8 + i%8·4).
    body = resource(records=32, stride=8, high=1)
    body += "v_lshrrev_b32 v6, 1, v0\nv_and_b32 v7, 1, v0\nv_lshlrev_b32 v7, 2, v7\n"
    body += "buffer_load_dword v40, v[6:7], s[4:7], 0 idxen offen"
    (found,) = run("gfx942", body, DATA)
    index, element = LANE // 2, LANE % 2
    place = (index // 8 * 8 + element * 4) * 8 + index % 8 * 4
    np.testing.assert_array_equal(found, 1000 + place // 4)


def test_raw_loads_and_stores_are_bounded_dword_by_dword() -> None:
    body = resource(records=4 * 6)
    body += """
      v_lshlrev_b32 v5, 3, v0
      buffer_load_dwordx4 v[40:43], v5, s[4:7], 0 offen
      s_waitcnt vmcnt(0)
      v_mov_b32 v10, 7
      v_mov_b32 v11, 8
      v_mov_b32 v12, 9
      v_mov_b32 v13, 10
      s_mov_b64 exec, 4
      buffer_store_dwordx4 v[10:13], v5, s[4:7], 0 offen
      s_mov_b64 exec, -1
      s_waitcnt vmcnt(0)
      buffer_load_dword v44, v5, s[4:7], 0 offen
      s_mov_b32 s6, 0x100
      buffer_load_dword v45, v5, s[4:7], 0 offen
    """
    found = run("gfx942", body, DATA, outputs=6)
    for lane in range(LANES):
        wanted = [1000 + 2 * lane + n if 2 * lane + n < 6 else 0 for n in range(4)]
        assert list(found[:4, lane]) == wanted
    # Lane 2 stored at dwords 4 and 5, and nothing behind.
    assert list(found[4, :3]) == [1000, 1002, 7]
    assert list(found[5, :5]) == [1000, 1002, 7, 1006, 1008]


def test_a_buffer_that_reaches_beyond_memory_is_a_fault() -> None:
    body = resource(records=1 << 20) + "v_lshlrev_b32 v5, 12, v0\n"
    with pytest.raises(Fault, match="past the end of `A`"):
        run("gfx942", body + "buffer_load_dword v40, v5, s[4:7], 0 offen", DATA)


@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_loads_to_lds_go_to_m0_and_a_place_of_each_lane(target) -> None:
    body = (
        resource(records=4 * 60)
        + """
      v_lshlrev_b32 v5, 2, v0
      v_mov_b32 v6, 0
      ds_write_b32 v5, v6 offset:16
      s_mov_b32 m0, 16
      s_mov_b32 exec_lo, -2
      buffer_load_dword v5, s[4:7], 0 offen lds
      s_mov_b32 exec_lo, -1
      s_waitcnt vmcnt(0)
      ds_read_b32 v40, v5 offset:16
      s_movk_i32 m0, 0x400
      global_load_lds_ubyte v5, s[2:3] offset:1
      s_waitcnt vmcnt(0)
      ds_read_b32 v41, v5 offset:1025
      s_waitcnt lgkmcnt(0)
    """
    )
    found = run(target, body, DATA, outputs=2, lds=2048)
    wanted = np.where((LANE > 0) & (LANE < 60), DATA, 0)
    np.testing.assert_array_equal(found[0], wanted)
    np.testing.assert_array_equal(found[1], DATA >> 8)


def test_loads_of_16_bytes_to_lds() -> None:
    body = """
      v_and_b32 v5, 3, v0
      v_lshlrev_b32 v5, 4, v5
      s_mov_b32 m0, 0
      global_load_lds_dwordx4 v5, s[2:3]
      s_waitcnt vmcnt(0)
      v_lshlrev_b32 v6, 4, v0
      ds_read_b128 v[40:43], v6
      s_waitcnt lgkmcnt(0)
    """
    found = run("gfx950", body, DATA, outputs=4, lds=1024)
    for number in range(4):
        np.testing.assert_array_equal(found[number], 1000 + LANE % 4 * 4 + number)


# A matrix in LDS, its rows 16 elements long: of `bits` each, `count` of them in a lane's result.
@pytest.mark.parametrize(
    ("name", "bits", "count"),
    [("b64_tr_b16", 16, 4), ("b64_tr_b8", 8, 8), ("b64_tr_b4", 4, 16), ("b96_tr_b6", 6, 16)],
)
def test_transposed_reads_give_each_lane_a_column(name, bits, count) -> None:
    size = bits * count // 8  # bytes a lane reads
    words = size // 4
    generator = np.random.default_rng(3)
    matrices = generator.integers(0, 1 << bits, (4, count, 16))
    packed = 0
    for at, value in enumerate(int(x) for x in matrices.ravel()):
        packed |= value << at * bits
    data = np.frombuffer(packed.to_bytes(64 * size, "little"), np.uint32)
    rows = [data[LANES * n : LANES * (n + 1)] for n in range(words)]
    store = "\n".join(
        f"v_lshlrev_b32 v5, 2, v0\nds_write_b32 v5, v{n + 1} offset:{256 * n}" for n in range(words)
    )
    body = f"""
      {store}
      s_waitcnt lgkmcnt(0)
      v_mul_u32_u24 v6, {size}, v0
      ds_read_{name} v[40:{39 + words}], v6
      s_waitcnt lgkmcnt(0)
    """
    found = run("gfx950", body, *rows, outputs=words, lds=1024)
    for lane in range(LANES):
        got = sum(int(found[n, lane]) << 32 * n for n in range(words))
        fields = [got >> bits * n & (1 << bits) - 1 for n in range(count)]
        assert fields == list(matrices[lane // 16, :, lane % 16]), lane


def test_scalar_stores_and_atomics() -> None:
    body = """
      s_movk_i32 s8, 5
      s_movk_i32 s9, 6
      s_store_dwordx2 s[8:9], s[2:3], 0x8
      s_movk_i32 s10, 100
      s_atomic_add s10, s[2:3], 0x10 glc
      s_movk_i32 s11, 1
      s_atomic_umax s11, s[2:3], 0x14
      s_mov_b32 s12, 77
      s_movk_i32 s13, 1006
      s_atomic_cmpswap s[12:13], s[2:3], 0x18 glc
      s_waitcnt lgkmcnt(0)
      v_mov_b32 v41, s10
      v_mov_b32 v42, s12
      v_lshlrev_b32 v5, 2, v0
      global_load_dword v40, v5, s[2:3]
      s_waitcnt vmcnt(0)
    """
    found = run("gfx90a", body, DATA, outputs=3)
    wanted = DATA.copy()
    wanted[[2, 3, 4, 6]] = 5, 6, 1104, 77
    np.testing.assert_array_equal(found[0], wanted)
    assert (found[1] == 1004).all()
    assert (found[2] == 1006).all()


def test_scalar_buffers_are_bounded_dword_by_dword() -> None:
    body = (
        resource(records=24)
        + """
      s_buffer_load_dwordx4 s[8:11], s[4:7], 0x10
      s_buffer_load_dword s12, s[4:7], 0x4
      s_buffer_load_dword s13, s[4:7], 0x18
      s_mov_b32 s20, 1
      s_mov_b32 s21, 2
      s_mov_b32 s22, 3
      s_mov_b32 s23, 4
      s_buffer_store_dwordx4 s[20:23], s[4:7], 0x10
      s_waitcnt lgkmcnt(0)
    """
    )
    body += "\n".join(f"v_mov_b32 v{40 + n}, s{8 + n}" for n in range(6))
    body += "\nv_lshlrev_b32 v5, 2, v0\nglobal_load_dword v46, v5, s[2:3]\ns_waitcnt vmcnt(0)"
    found = run("gfx942", body, DATA, outputs=7)
    assert list(found[:6, 0]) == [1004, 1005, 0, 0, 1001, 0]
    assert list(found[6, 3:8]) == [1003, 1, 2, 1006, 1007]


def test_a_scalar_store_to_code_is_a_fault() -> None:
    body = "s_getpc_b64 s[8:9]\ns_store_dword s8, s[8:9], 0x0"
    with pytest.raises(Fault, match="read-only"):
        run("gfx942", body, DATA)
