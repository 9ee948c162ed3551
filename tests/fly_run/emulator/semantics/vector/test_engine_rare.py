"""Instructions that compilers rarely make, against formulas of the ISA manuals in plain Python."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from emulator_support.rows import LANES, run
from fly_common.errors import Fault

LANE = np.arange(LANES, dtype=np.uint32)
WORDS = np.random.default_rng(7).integers(0, 1 << 32, (4, LANES), dtype=np.uint32)


def floats(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-4, 4, LANES).astype(np.float32)


def test_cube_coordinates() -> None:
    x, y, z = floats(1), floats(2), floats(3)
    body = "\n".join(
        f"v_cube{name}_f32 v{40 + n}, v1, v2, v3" for n, name in enumerate(("id", "sc", "tc", "ma"))
    )
    found = run("gfx942", body, x, y, z, outputs=4).view(np.float32)
    for lane in range(LANES):
        a, b, c = float(x[lane]), float(y[lane]), float(z[lane])
        if abs(c) >= abs(a) and abs(c) >= abs(b):
            wanted = (5 if c < 0 else 4, -a if c < 0 else a, -b, 2 * c)
        elif abs(b) >= abs(a):
            wanted = (3 if b < 0 else 2, a, -c if b < 0 else c, 2 * b)
        else:
            wanted = (1 if a < 0 else 0, c if a < 0 else -c, -b, 2 * a)
        assert tuple(map(float, found[:, lane])) == wanted


def sad(window: int, reference: int, masked: bool) -> int:
    pairs = zip(window.to_bytes(4, "little"), reference.to_bytes(4, "little"), strict=True)
    return sum(abs(a - b) for a, b in pairs if b or not masked)


def test_four_sums_of_differences() -> None:
    reference = WORDS[2] & 0xFF00FFFF
    body = """
      v_mov_b32 v8, v1
      v_mov_b32 v9, v2
      v_mov_b32 v10, v4
      v_mov_b32 v11, v1
      v_mov_b32 v12, v2
      v_mov_b32 v13, v3
      v_qsad_pk_u16_u8 v[40:41], v[8:9], v3, v[10:11]
      v_mqsad_pk_u16_u8 v[42:43], v[8:9], v3, v[10:11]
      v_mqsad_u32_u8 v[44:47], v[8:9], v3, v[10:13]
    """
    found = run("gfx942", body, WORDS[0], WORDS[1], reference, WORDS[3], outputs=8)
    for lane in range(LANES):
        low, high, other = (int(word[lane]) for word in (WORDS[0], WORDS[1], WORDS[3]))
        against = int(reference[lane])
        windows = [(low | high << 32) >> 8 * n & 0xFFFFFFFF for n in range(4)]
        for first, masked in ((0, False), (2, True)):
            addend = other | low << 32
            wanted = 0
            for n, window in enumerate(windows):
                part = (addend >> 16 * n) + sad(window, against, masked)
                wanted |= (part & 0xFFFF) << 16 * n
            assert int(found[first, lane]) | int(found[first + 1, lane]) << 32 == wanted
        for n, addend in enumerate((other, low, high, against)):
            wanted = (addend + sad(windows[n], against, True)) & 0xFFFFFFFF
            assert int(found[4 + n, lane]) == wanted


def test_a_byte_is_put_into_its_place() -> None:
    values = np.abs(floats(4)) * 100
    body = "v_cvt_pkaccum_u8_f32 v40, v1, v0"
    (found,) = run("gfx942", body, values.astype(np.float32))
    for lane in range(LANES):
        shift = 8 * (lane & 3)
        wanted = 0x11111111 & ~(0xFF << shift) | min(255, int(values[lane])) << shift
        assert int(found[lane]) == wanted


def test_f16_forms_of_gfx8_clear_the_high_half() -> None:
    halves = np.random.default_rng(5).uniform(0.5, 2, (3, LANES)).astype(np.float16)
    rows = [row.view(np.uint16).astype(np.uint32) | 0x7BCD0000 for row in halves]
    body = """
      v_mad_legacy_f16 v40, v1, v2, v3
      v_fma_legacy_f16 v41, v1, v2, v3
      v_div_fixup_legacy_f16 v42, v1, v2, v3
      v_pk_fmac_f16 v43, v1, v2
    """
    found = run("gfx90a", body, *rows, outputs=4)
    a, b, c = halves
    f16 = np.float16
    fused = (a.astype(float) * b.astype(float) + c.astype(float)).astype(f16)
    assert (found[0] == (a * b + c).astype(f16).view(np.uint16)).all()
    assert (found[1] == fused.view(np.uint16)).all()
    assert (found[2] == a.view(np.uint16)).all()
    old = np.full(LANES, 0x1111, np.uint16).view(f16).astype(float)
    low = (a.astype(float) * b.astype(float) + old).astype(f16)
    assert (found[3] & 0xFFFF == low.view(np.uint16)).all()


def test_a_part_of_two_over_pi() -> None:
    # 2/π to more digits than a double has.
    digits = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE
    bits = 4 * 50
    body = """
      v_mov_b32 v8, 0
      v_mov_b32 v9, v1
      v_trig_preop_f64 v[40:41], v[8:9], 0
      v_trig_preop_f64 v[42:43], v[8:9], 1
    """
    exponents = np.where(LANE % 2, 1000, 1090).astype(np.uint32)
    found = run("gfx942", body, exponents << 20, outputs=4)
    for lane in range(2):
        for segment in range(2):
            shift = 53 * segment + max(0, int(exponents[lane]) - 1077)
            whole = digits >> bits - 53 - shift & (1 << 53) - 1
            words = struct.pack("<II", *(int(found[2 * segment + n, lane]) for n in (0, 1)))
            assert struct.unpack("<d", words)[0] == whole * 2.0 ** (-53 - shift)


def test_shifts_that_saturate_to_bytes_and_the_next_random_number() -> None:
    body = """
      v_ashr_pk_i8_i32 v40, v1, v2, 20
      v_ashr_pk_u8_i32 v41, v1, v2, 20 op_sel:[0,0,0,1]
      v_prng_b32 v42, v1
    """
    found = run("gfx950", body, WORDS[0], WORDS[1], outputs=3)
    for lane in range(LANES):
        a, b = (int(row[lane].astype(np.int32)) >> 20 for row in WORDS[:2])
        signed = [max(-128, min(127, value)) & 255 for value in (a, b)]
        unsigned = [max(0, min(255, value)) for value in (a, b)]
        assert int(found[0, lane]) == 0x11110000 | signed[1] << 8 | signed[0]
        assert int(found[1, lane]) == unsigned[1] << 24 | unsigned[0] << 16 | 0x1111
        word = int(WORDS[0, lane])
        assert int(found[2, lane]) == (word << 1 & 0xFFFFFFFF) ^ (197 if word >> 31 else 0)


def test_stochastic_rounding_to_16_bits() -> None:
    values = floats(6)
    body = "v_cvt_sr_f16_f32 v40, v1, v2\nv_cvt_sr_bf16_f32 v41, v1, v2 op_sel:[0,0,1]"
    found = run("gfx950", body, values, WORDS[0], outputs=2)
    for lane in range(LANES):
        bits, noise = int(values[lane].view(np.uint32)), int(WORDS[0, lane])
        # All values are normal in both formats: the carry goes where it should.
        rounded = bits + (noise >> 19) >> 13 << 13
        half = np.uint32(rounded).view(np.float32).astype(np.float16).view(np.uint16)
        assert int(found[0, lane]) == 0x11110000 | int(half)
        assert int(found[1, lane]) == (bits + (noise >> 16)) >> 16 << 16 | 0x1111


def test_lds_counters_and_exchanges() -> None:
    body = """
      v_lshlrev_b32 v5, 2, v0
      v_mov_b32 v6, 100
      ds_write_b32 v5, v6
      s_mov_b32 m0, 8
      s_mov_b32 exec_hi, 0
      ds_append v40 offset:4
      s_mov_b32 exec_hi, -1
      ds_consume v41 offset:4
      s_waitcnt lgkmcnt(0)
      v_mov_b32 v7, 0
      ds_read_b32 v42, v7 offset:12
      s_mov_b32 m0, 0x400
      ds_write_addtid_b32 v0 offset:16
      ds_read_addtid_b32 v43 offset:20
      v_lshlrev_b32 v8, 3, v0
      v_mov_b32 v9, 1
      v_mov_b32 v10, 2
      ds_wrxchg2_rtn_b32 v[44:45], v8, v9, v10 offset0:129 offset1:130
      s_waitcnt lgkmcnt(0)
      ds_read2_b32 v[46:47], v8 offset0:129 offset1:130
      v_mov_b32 v12, 0x80000007
      v_mov_b32 v13, 9
      ds_write_b64 v8, v[12:13] offset:2048
      v_mov_b32 v13, 0x80000005
      ds_condxchg32_rtn_b64 v[48:49], v8, v[12:13] offset:2048
      v_mov_b32 v14, 6
      v_mov_b32 v15, 3
      ds_wrap_rtn_b32 v50, v8, v14, v15 offset:2048
      ds_read_b64 v[52:53], v8 offset:2048
      s_waitcnt lgkmcnt(0)
    """
    found = run("gfx942", body, LANE, outputs=14, lds=4096)
    assert (found[0, :32] == 100).all()
    assert (found[0, 32:] == 0x11111111).all()
    assert (found[1] == 132).all()
    assert (found[2] == 68).all()
    assert (found[3, :63] == LANE[:63] + 1).all()
    assert (found[6] == 1).all()
    assert (found[7] == 2).all()
    assert (found[8] == 0x80000007).all()
    assert (found[9] == 9).all()
    assert (found[10] == 7).all()
    assert (found[12] == 1).all()
    assert (found[13] == 5).all()


def test_a_counter_outside_the_lds_is_a_fault() -> None:
    with pytest.raises(Fault, match="LDS fault"):
        run("gfx942", "s_mov_b32 m0, 64\nds_append v40", LANE, lds=64)


def test_relative_registers() -> None:
    body = """
      s_movk_i32 s10, 11
      s_movk_i32 s11, 22
      s_mov_b32 s12, 33
      s_mov_b32 m0, 2
      s_movrels_b32 s14, s10
      s_movreld_b32 s15, s10
      s_movrels_b64 s[18:19], s[8:9]
      s_movreld_b64 s[20:21], s[10:11]
    """
    body += "".join(f"v_mov_b32 v{40 + n}, s{s}\n" for n, s in enumerate((14, 17, 18, 19, 22, 23)))
    body += """
      v_mov_b32 v8, 5
      v_mov_b32 v9, 6
      s_set_gpr_idx_on s10, gpr_idx(DST)
      s_set_gpr_idx_idx 1
      s_set_gpr_idx_mode gpr_idx(SRC0)
      v_mov_b32 v46, v8
      s_set_gpr_idx_off
    """
    found = run("gfx942", body, LANE, outputs=7)
    assert list(found[:, 0]) == [33, 11, 11, 22, 11, 22, 6]
    with pytest.raises(Fault, match="relative register number"):
        run("gfx942", "s_movk_i32 m0, 100\ns_movrels_b32 s8, s9", LANE)


@pytest.mark.parametrize(
    ("text", "last"), [("s_mov{}_b32 s8, s8", 101), ("s_mov{}_b64 s[8:9], s[8:9]", 100)]
)
@pytest.mark.parametrize("way", ["rels", "reld"])
def test_the_last_relative_register(text: str, last: int, way: str) -> None:
    """Of s0 to s101, behind which VCC is."""
    body = f"s_movk_i32 m0, {last - 8}\n{text.format(way)}\nv_mov_b32 v40, 1"
    assert (run("gfx942", body, LANE) == 1).all()
    with pytest.raises(Fault, match="relative register number"):
        run("gfx942", body.replace(f"{last - 8}", f"{last - 7}"), LANE)


def test_an_interrupt_is_for_the_host() -> None:
    assert (run("gfx942", "v_mov_b32 v40, 3\ns_sendmsg sendmsg(MSG_INTERRUPT)", LANE) == 3).all()


# DS_SWIZZLE_B32 in the CDNA3 ISA manual: what lanes that hold 1 to 32 get, by the offset's mask.
FFT_ORDERS = {
    0x00: "1 11 9 19 5 15 d 1d 3 13 b 1b 7 17 f 1f 2 12 a 1a 6 16 e 1e 4 14 c 1c 8 18 10 20",
    0x10: "1 9 5 d 3 b 7 f 2 a 6 e 4 c 8 10 11 19 15 1d 13 1b 17 1f 12 1a 16 1e 14 1c 18 20",
    0x1F: " ".join(f"{lane:x}" for lane in range(1, 33)),
}


@pytest.mark.parametrize("mask", FFT_ORDERS)
def test_the_order_of_an_fft(mask: int) -> None:
    body = f"ds_swizzle_b32 v40, v1 offset:swizzle(FFT,{mask})\n s_waitcnt lgkmcnt(0)"
    found = run("gfx942", body, LANE + 1)[0]
    half = [int(word, 16) for word in FFT_ORDERS[mask].split()]
    assert found.tolist() == half + [lane + 32 for lane in half]


@pytest.mark.parametrize("target", ["gfx90a", "gfx950"])
def test_half_denormals_follow_the_mode(target: str) -> None:
    """Bit 6 of MODE keeps f16 denormals as sources, bit 7 as results."""
    body = """
      s_setreg_imm32_b32 hwreg(HW_REG_MODE, 6, 2), {kept}
      v_mov_b32 v40, v2
      v_add_f16 v40, v1, v1
      v_pk_add_f16 v41, v1, v1
      v_mul_f16_sdwa v42, v1, v2 dst_sel:WORD_1 src0_sel:WORD_1 src1_sel:WORD_0
      v_mov_b32 v43, v1
      v_pk_fmac_f16 v43, v1, v2
      v_cmp_lg_f16 vcc, 0, v1
      v_cndmask_b32 v44, 0, 1, vcc
      v_cvt_f32_f16 v45, v1
    """
    least, half = 0x0400, np.full(LANES, 0x3800, np.uint32)  # the least normal number, and 0.5
    tiny = np.full(LANES, 0x8001_03FF, np.uint32)  # two denormals, of which the first is negative
    double = 0x8002_07FE
    wanted = {
        # Twice a denormal; of both halves; half of the higher; with half of itself; not 0.
        3: (double & 0xFFFF, double, 0x8000_1111, 0x5FE, 1),
        2: (0, 0x8000_0000, 0x8000_1111, 0, 0),
        1: (double & 0xFFFF, 0x8000_07FE, 0x8000_1111, 0x5FE, 1),
        0: (0, 0x8000_0000, 0x8000_1111, 0, 0),
    }
    for kept, values in wanted.items():
        found = run(target, body.format(kept=kept), tiny, half, outputs=6)[:, 0].tolist()
        found[3] &= 0xFFFF
        assert found[:5] == [*values], kept
        assert found[5] == np.float32(0x3FF * 2.0**-24).view(np.uint32)
    small = np.full(LANES, least, np.uint32)
    for kept, value in ((2, 0x200), (1, 0), (3, 0x200)):
        body = f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 6, 2), {kept}\nv_mul_f16 v40, v1, v2"
        assert set(run(target, body, small, half)[0]) == {value}
