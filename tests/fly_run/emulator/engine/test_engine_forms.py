"""Forms of instructions and ways of starting that compiled kernels rarely show: assembled here."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_support.engine import assemble, launch
from emulator_support.rows import KERNEL
from fly_common.errors import Fault, InputError

# Stores v1 to A[work item], and ends.
STORE = """
  v_lshlrev_b32 v15, 2, v0
  s_waitcnt lgkmcnt(0)
  global_store_dword v15, v1, s[2:3]
  s_endpgm
"""
LOAD = "s_load_dwordx2 s[2:3], s[0:1], 0x0\n"


def run(
    body: str, target: str = "gfx942", vgprs: int = 16, more: str = "", start: int = 0
) -> np.ndarray:
    text = KERNEL.format(body=LOAD + body, target=target, vgprs=vgprs, more=more)
    a = np.full(64, start, "i4")
    launch(assemble(text, target), [a])
    return a


LANE = np.arange(64)


def test_relative_register_numbers() -> None:
    body = """
      v_mov_b32 v1, 0
      v_mov_b32 v4, 40
      v_mov_b32 v5, 50
      v_mov_b32 v6, 60
      s_mov_b32 s8, 2
      s_set_gpr_idx_on s8, gpr_idx(SRC0)
      v_mov_b32 v7, v4
      s_set_gpr_idx_off
      s_mov_b32 s8, 1
      s_set_gpr_idx_on s8, gpr_idx(DST)
      v_mov_b32 v4, v7
      s_set_gpr_idx_off
      v_mov_b32 v1, v5
    """
    assert (run(body + STORE) == 60).all()


def test_a_relative_register_number_beyond_the_allocation() -> None:
    body = """
      s_movk_i32 s8, 0x10
      s_set_gpr_idx_on s8, gpr_idx(SRC0)
      v_mov_b32 v1, v4
      s_set_gpr_idx_off
    """
    with pytest.raises(Fault, match="relative register number is beyond the allocated"):
        run(body + STORE)


def test_a_register_beyond_the_allocation() -> None:
    text = "v_add_f32 v1, v0, v40\n" + STORE
    with pytest.raises(InputError, match="v40 is beyond the 16 vector registers that the kernel"):
        run(text)


def test_sdwa() -> None:
    body = """
      v_mov_b32 v2, 0x40414283
      v_mov_b32 v1, 0x11223344
      v_add_u32_sdwa v1, sext(v2), v0 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0
    """
    wanted = ((0x83 - 256 + LANE) & 0xFFFF) << 16 | 0x3344
    np.testing.assert_array_equal(run(body + STORE).view("u4"), wanted)
    body = """
      v_mov_b32 v2, 0x40414283
      v_mov_b32 v1, 0x11223344
      v_add_u32_sdwa v1, v2, v0 dst_sel:BYTE_1 dst_unused:UNUSED_SEXT src0_sel:BYTE_1
    """
    value = (0x42 + LANE) & 0xFF
    wanted = np.where(value & 0x80, 0xFFFF0000, 0) | value << 8
    np.testing.assert_array_equal(run(body + STORE).view("u4"), wanted)


def test_comparison_into_exec() -> None:
    body = """
      v_mov_b32 v1, 1
      v_cmpx_gt_u32 vcc, 10, v0
      v_mov_b32 v1, 2
      s_mov_b64 exec, -1
    """
    np.testing.assert_array_equal(run(body + STORE), np.where(LANE < 10, 2, 1))


@pytest.mark.parametrize("name", ["s_max_i32", "s_max_u32", "s_min_i32", "s_min_u32"])
def test_of_equal_operands_the_second_is_picked(name: str) -> None:
    body = f"""
      s_movk_i32 s8, 7
      s_cmp_eq_u32 s8, s8
      {name} s9, s8, 7
      s_cselect_b32 s10, 100, 0
      s_add_u32 s9, s9, s10
      v_mov_b32 v1, s9
    """
    assert (run(body + STORE) == 7).all()


def test_flags_as_operands() -> None:
    body = """
      s_cmp_eq_u32 s0, s0
      s_mov_b64 vcc, 0
      v_mov_b32 v1, src_scc
      v_mov_b32 v2, src_vccz
      v_lshl_or_b32 v1, v1, 4, v2
      v_mov_b32 v2, src_execz
      v_lshl_or_b32 v1, v1, 4, v2
    """
    assert (run(body + STORE) == 0x110).all()


def test_rounding_modes_and_denormals() -> None:
    """1 + 2^-24 rounded up; a denormal flushed; f64 left alone."""
    body = """
      s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 1
      v_mov_b32 v2, 1.0
      v_mov_b32 v3, 0x33800000
      v_add_f32 v1, v2, v3
      v_mov_b32 v4, 0
      v_mov_b32 v5, 0x3ff00000
      v_mov_b32 v6, 0
      v_mov_b32 v7, 0x3c900000
      v_add_f64 v[4:5], v[4:5], v[6:7]
      v_lshl_or_b32 v1, v4, 31, v1
    """
    assert (run(body + STORE) == 0x3F800001).all()
    body = """
      s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0
      v_mov_b32 v2, 0x00400000
      v_mul_f32 v1, 1.0, v2
      s_getreg_b32 s8, hwreg(HW_REG_MODE, 4, 4)
      v_or_b32 v1, s8, v1
    """
    # The kernel starts with f32 denormals flushed, f16 and f64 ones kept.
    assert (run(body + STORE) == 12).all()


def test_where_a_wave_runs_is_fixed() -> None:
    body = """
      s_getreg_b32 s8, hwreg(HW_REG_HW_ID, 8, 4)
      s_getreg_b32 s9, hwreg(HW_REG_XCC_ID)
      s_or_b32 s8, s8, s9
      v_mov_b32 v1, s8
    """
    assert (run(body + STORE) == 0).all()
    with pytest.raises(InputError, match="does not support"):
        run("s_getreg_b32 s8, hwreg(HW_REG_LDS_ALLOC)\n" + STORE)


JUMPS = ["s_setpc_b64 s[8:9]", "s_swappc_b64 s[10:11], s[8:9]"]


@pytest.mark.parametrize("jump", JUMPS)
def test_a_jump_to_nowhere(jump: str) -> None:
    for address, why in (("0x1234560", "there is no code"), ("0x1234562", "there is no code")):
        body = f"s_mov_b32 s8, {address}\ns_mov_b32 s9, 0\n{jump}\n"
        with pytest.raises(Fault, match=f"jump to {address}: .*{why}; kernel k pc"):
            run(body + STORE)


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("beside", [1, 2, 3])
def test_a_jump_into_an_instruction(jump: str, beside: int) -> None:
    """Of code that has run."""
    body = f"""
      s_getpc_b64 s[8:9]
      s_add_u32 s8, s8, {beside}
      s_addc_u32 s9, s9, 0
      {jump}
    """
    with pytest.raises(Fault, match="jump to"):
        run(body + STORE)


def test_a_jump_to_code_that_nothing_points_to() -> None:
    body = """
      s_getpc_b64 s[8:9]
    here:
      s_mov_b32 s10, hidden-here
      s_add_u32 s8, s8, s10
      s_addc_u32 s9, s9, 0
      v_mov_b32 v1, 7
      s_setpc_b64 s[8:9]
      s_endpgm
    hidden:
      v_mov_b32 v1, 0x12345
    """
    assert (run(body + STORE) == 0x12345).all()


def test_raw_resources_have_bounds() -> None:
    body = """
      s_waitcnt lgkmcnt(0)
      s_mov_b32 s4, s2
      s_mov_b32 s5, s3
      s_mov_b32 s6, 0x80
      s_mov_b32 s7, 0
      v_lshlrev_b32 v2, 2, v0
      v_add_u32 v3, 100, v0
      buffer_store_dword v3, v2, s[4:7], 0 offen
      buffer_load_dword v4, v2, s[4:7], 0 offen offset:4
      v_mov_b32 v5, 1
      buffer_atomic_add v5, v2, s[4:7], 0 offen glc
      v_add_u32 v1, v4, v5
    """
    a = run(body.replace("glc", "sc0") + STORE, start=-5)
    after = np.where(LANE < 31, 101 + LANE, 0)
    before = np.where(LANE < 32, 100 + LANE, 0)
    np.testing.assert_array_equal(a, after + before)


def test_arguments_preloaded_into_registers() -> None:
    """The kernel starts 256 bytes in, with its argument in s[2:3] already."""
    text = KERNEL.format(
        body="s_trap 2\n.p2align 8\nv_mov_b32 v1, 5\n" + STORE,
        target="gfx942",
        vgprs=16,
        more=".amdhsa_user_sgpr_count 4\n.amdhsa_user_sgpr_kernarg_preload_length 2",
    )
    a = np.zeros(64, "i4")
    launch(assemble(text, "gfx942"), [a])
    assert (a == 5).all()


def test_running_off_the_end() -> None:
    text = KERNEL.format(body="v_mov_b32 v1, 0", target="gfx942", vgprs=16, more="")
    with pytest.raises(
        Fault, match=r"control ran past the end of the code; kernel k pc 0x\w+ 'v_mov"
    ):
        launch(assemble(text, "gfx942"), [np.zeros(64, "i4")])
