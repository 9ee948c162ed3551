"""The upper bits of vector register numbers, as llvm-objdump prints them in comments."""

import re
import subprocess

import numpy as np
import pytest
from emulator_support.engine import assemble, launch
from fly_common.programs import toolchain
from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.isa.parse import parse
from fly_run.emulator.isa.vgpr_msb import states, with_upper_bits

BITS = 0b11_10_01_10  # result 768, third 512, second 256, first 512
LINES = """\
v_add_f32 v0, v1, v2
v_fma_f32 v0, v1, v2, v3
v_cmp_eq_u32 vcc_lo, v1, v2
global_load_b32 v0, v[2:3], off
global_store_b32 v[2:3], v4, off
ds_load_b32 v0, v1
ds_store_b32 v0, v1
buffer_load_b32 v0, v1, s[0:3], null offen
v_wmma_f32_16x16x32_f16 v[0:7], v[8:15], v[16:23], v[24:31]
v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[10:25], v[26:41], v[0:7], v1, v2
v_wmma_scale16_f32_16x16x128_f8f6f4 v[0:7], v[10:25], v[26:41], v[0:7], v[2:3], v[4:5]
v_wmma_scale_f32_32x16x128_f4 v[0:15], v[16:31], v[32:39], v[0:15], v1, v2
"""
# A register or the first of several, and the comment with its number.
REGISTER = re.compile(r"\bv\[?(\d+)(?::\d+)?\]?(?: /\*v\[?(\d+)[^*]*\*/)?")


def tool(name: str, *words: str, text: str = "") -> str:
    command = [toolchain.find_program(name), *words]
    return subprocess.run(command, input=text, text=True, capture_output=True, check=True).stdout


def test_the_numbers_are_those_of_objdump(tmp_path) -> None:
    """Among them scales, which are always in the first 256 registers."""
    binary = tmp_path / "a.o"
    source = f"s_set_vgpr_msb {BITS}\n{LINES}"
    target = ("-triple=amdgcn-amd-amdhsa", "-mcpu=gfx1250", "-filetype=obj", "-o", str(binary))
    tool("llvm-mc", *target, text=source)
    text = tool("llvm-objdump", "-d", str(binary))
    shown = re.findall(r"^\t(v_|global_|ds_|buffer_)(.*?)// ", text, re.MULTILINE)
    assert len(shown) == len(LINES.splitlines())
    for line in map("".join, shown):
        wanted = [int(upper or number) for number, upper in REGISTER.findall(line)]
        plain = re.sub(r" /\*.*?\*/", "", line).strip()
        one = with_upper_bits(parse(plain, 0, 4), BITS)
        found = [operand.index for operand in one.operands if getattr(operand, "bank", "") == "v"]
        assert found == wanted, line


def _code(*texts: str) -> dict[int, Instruction]:
    return {4 * at: parse(text, 4 * at, 4) for at, text in enumerate(texts)}


@pytest.mark.parametrize("field", ["25, 1", "0, 4", "8, 1", "12, 8"])
def test_a_write_of_mode_sets_them_by_its_constant(field) -> None:
    """Bits 19:12, in MODE's order: result, first, second, third. LLVM puts the bits in effect
    there, rotated by two."""
    for bits in (0, BITS, 0b10_00_01_11):
        rotated = (bits << 2 | bits >> 6) & 0xFF
        setting = f"s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, {field}), {rotated << 12 | 1:#x}"
        code = _code("s_set_vgpr_msb 0x1b", "v_nop", setting, "v_nop", "s_endpgm")
        assert states(code).get(12, 0) == bits


def test_other_writes_leave_them_alone() -> None:
    for text in (
        "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 0xff002",
        "s_setreg_b32 hwreg(HW_REG_WAVE_MODE, 0, 4), s1",
    ):
        assert states(_code("s_set_vgpr_msb 0x1b", text, "v_nop", "s_endpgm"))[8] == 0x1B
    alone = _code("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 1", "v_nop", "s_endpgm")
    assert states(alone) == {}


KERNEL = """
.text
.globl k
.p2align 8
.type k,@function
k:
  s_load_b64 s[2:3], s[0:1], 0x0
  v_mov_b32 v44, 1
  s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 0x1001
  v_mov_b32 v44, v0
  s_nop 0
  s_set_vgpr_msb 0x1
  v_add_nc_u32 v1, v44, v0
  s_set_vgpr_msb 0x100
  v_add_nc_u32 v1, v1, v44
  v_lshlrev_b32 v0, 2, v0
  s_wait_kmcnt 0x0
  global_store_b32 v0, v1, s[2:3]
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_user_sgpr_count 2
  .amdhsa_next_free_vgpr 320
  .amdhsa_next_free_sgpr 8
  .amdhsa_kernarg_size 8
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 8
    .vgpr_count: 320
    .max_flat_workgroup_size: 64
    .args:
      - {.name: C, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
...
.end_amdgpu_metadata
"""


def test_a_write_of_mode_in_a_kernel() -> None:
    """As LLVM 22 begins kernels with more than 256 registers, whose first result is beyond them."""
    c = np.zeros(32, "i4")
    launch(assemble(KERNEL, "gfx1250"), [c], 1, 32, strict=True)
    np.testing.assert_array_equal(c, 2 * np.arange(32) + 1)
