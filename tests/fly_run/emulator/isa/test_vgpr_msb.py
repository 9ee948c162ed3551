"""The upper bits of vector register numbers, as llvm-objdump prints them in comments."""

import re
import subprocess

from fly_common import toolchain
from fly_run.emulator.isa.parse import parse
from fly_run.emulator.isa.vgpr_msb import with_upper_bits

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
