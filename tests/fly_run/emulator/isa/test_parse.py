"""The grammar of the disassembler's text.

Coverage: every instruction LLVM can print for a target, found by disassembling encodings
systematically, is read without remainder, and means the same to the assembler after being read.
"""

import re
import subprocess

import pytest
from chosen_targets import having, one_of_each
from fly_common.errors import InputError
from fly_common.programs import toolchain
from fly_run.emulator import coverage
from fly_run.emulator.isa.instruction import SPECIAL_SCALARS, Immediate, Name, Register
from fly_run.emulator.isa.parse import parse
from fly_target.registry import EMULATED

# Distinct mnemonics, with suffix, that the enumeration below finds; fewer means that the
# enumeration, not the ISA, has shrunk.
KNOWN = {"CDNA1": 1850, "CDNA2": 1750, "CDNA3": 1780, "CDNA4": 1870}
# What gfx908 alone has among these, and no kernel: exports, and the interpolation of attributes.
GRAPHICS = ("exp", "v_interp_")


@pytest.fixture(scope="module", params=having(one_of_each(EMULATED), "gfx9"))
def universe(request) -> tuple[str, list[tuple[str, bytes]]]:
    """The target, and texts with their encodings: up to 8 of each mnemonic's shapes."""
    found = coverage.universe(request.param)
    assert len(found) >= KNOWN[EMULATED[request.param].family]
    kept = (forms for name, forms in found.items() if not name.startswith(GRAPHICS))
    return request.param, [form for forms in kept for form in forms[:8]]


def written(instruction) -> str:
    """An Instruction as assembly text, from its fields alone."""
    modifiers = [_modifier(name, value) for name, value in instruction.modifiers.items()]
    operands = ", ".join(map(_operand, instruction.operands))
    if instruction.mnemonic == "s_waitcnt":
        operands = operands.replace(", ", " ")
    return " ".join([instruction.mnemonic, operands, *modifiers])


def _operand(operand) -> str:
    if isinstance(operand, Name):
        text = operand.text
    elif isinstance(operand, Register):
        text = _register(operand)
    elif operand.real is not None:
        text = repr(operand.real)
    elif operand.literal:
        text = f"lit({operand.value})"
    else:
        text = str(operand.value)
    if operand.sign_extend:
        text = f"sext({text})"
    if operand.absolute:
        text = f"|{text}|"
    if operand.negate:
        text = f"-{text}" if operand.absolute else f"neg({text})"
    return text


def _register(register) -> str:
    bank, first, count = register.bank, register.index, register.count
    if bank == "s" and first >= 102:
        for name, number in SPECIAL_SCALARS.items():
            pair = name in ("vcc", "exec", "flat_scratch", "xnack_mask")
            if number == first and count == 1 + pair:
                return name
        bank, first = "ttmp", first - 108
    return f"{bank}{first}" if count == 1 else f"{bank}[{first}:{first + count - 1}]"


def _modifier(name: str, value) -> str:
    if value is True:
        return name
    if isinstance(value, tuple):
        return f"{name}:[{','.join(map(str, value))}]"
    return f"{name}:{value}"


def assembled(target: str, lines: list[str]) -> tuple[list[str], set[int]]:
    """The encodings of the lines, in order, and the numbers of the lines that are refused."""
    done = subprocess.run(
        [
            toolchain.find_program("llvm-mc"),
            "-triple=amdgcn-amd-amdhsa",
            f"-mcpu={target}",
            "-show-encoding",
        ],
        input="\n".join(lines),
        capture_output=True,
        text=True,
    )
    refused = {int(n) - 1 for n in re.findall(r"^<stdin>:(\d+):\d+: error", done.stderr, re.M)}
    return re.findall(r"encoding: \[([^\]]*)\]", done.stdout), refused


def test_every_instruction_is_read_and_means_the_same(universe):
    target, items = universe
    texts = [text for text, _ in items]
    _, refused = assembled(target, texts)
    # LLVM can't assemble all it prints: hwreg(58, 19, 16), null on gfx9, reserved data formats.
    assert len(refused) < 0.11 * len(texts)
    kept = [item for number, item in enumerate(items) if number not in refused]
    instructions = [parse(text, 0, len(code)) for text, code in kept]
    before, _ = assembled(target, [text for text, _ in kept])
    after, wrong = assembled(target, [written(instruction) for instruction in instructions])
    assert not wrong, written(instructions[min(wrong)])
    differing = [
        (text, written(instruction), one, other)
        for (text, _), instruction, one, other in zip(
            kept, instructions, before, after, strict=True
        )
        if one != other
    ]
    assert not differing


def test_what_llvm_can_not_assemble_is_read_too(universe):
    _, items = universe
    for text, code in items:
        assert parse(text, 0, len(code)).text == text


V, S = (lambda *a, **k: Register("v", *a, **k)), (lambda *a, **k: Register("s", *a, **k))


@pytest.mark.parametrize(
    ("text", "size", "operands", "modifiers"),
    [
        ("s_endpgm", 4, (), {}),
        ("s_waitcnt vmcnt(0) lgkmcnt(15)", 4, (Name("vmcnt(0)"), Name("lgkmcnt(15)")), {}),
        ("v_mov_b32_e32 v0, s3", 4, (V(0), S(3)), {}),
        ("v_mov_b32_e32 v0, -16", 4, (V(0), Immediate(-16)), {}),
        ("v_mov_b32_e32 v0, 0x3e4", 8, (V(0), Immediate(0x3E4, literal=True)), {}),
        ("v_mov_b32_e32 v0, lit(0x1)", 8, (V(0), Immediate(1, literal=True)), {}),
        ("v_mov_b32_e32 v0, -0.5", 4, (V(0), Immediate(0, real=-0.5)), {}),
        ("v_mov_b32_e32 v0, 0.15915494", 4, (V(0), Immediate(0, real=0.15915494)), {}),
        ("s_movk_i32 s0, 0x8000", 4, (S(0), Immediate(0x8000)), {}),
        ("s_load_dwordx2 s[0:1], s[4:5], 0x148", 8, (S(0, 2), S(4, 2), Immediate(0x148)), {}),
        ("s_mov_b64 vcc, exec", 4, (S(106, 2), S(126, 2)), {}),
        ("s_mov_b32 vcc_hi, ttmp9", 4, (S(107), S(117)), {}),
        ("s_mov_b32 m0, flat_scratch_lo", 4, (S(124), S(102)), {}),
        ("v_mov_b32_e32 v0, src_shared_base", 4, (V(0), Name("src_shared_base")), {}),
        (
            "v_fma_f32 v0, -v1, |v2|, -|s3| clamp mul:2",
            8,
            (V(0), V(1, negate=True), V(2, absolute=True), S(3, negate=True, absolute=True)),
            {"clamp": True, "mul": 2},
        ),
        ("v_add_f32_e64 v0, neg(5), v1", 8, (V(0), Immediate(5, negate=True), V(1)), {}),
        (
            "v_add_u32_sdwa v0, sext(v1), v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE"
            " src0_sel:BYTE_3 src1_sel:DWORD",
            8,
            (V(0), V(1, sign_extend=True), V(2)),
            {
                "dst_sel": "WORD_1",
                "dst_unused": "UNUSED_PRESERVE",
                "src0_sel": "BYTE_3",
                "src1_sel": "DWORD",
            },
        ),
        (
            "v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xe bound_ctrl:1",
            8,
            (V(0), V(1)),
            {"quad_perm": (1, 0, 3, 2), "row_mask": 15, "bank_mask": 14, "bound_ctrl": 1},
        ),
        (
            "v_mov_b32_dpp v0, v1 row_half_mirror row_mask:0xf bank_mask:0xf",
            8,
            (V(0), V(1)),
            {"row_half_mirror": True, "row_mask": 15, "bank_mask": 15},
        ),
        (
            "v_pk_fma_f16 v0, v1, v2, v3 op_sel:[0,1,0] op_sel_hi:[1,0,1] neg_lo:[1,0,0]",
            8,
            (V(0), V(1), V(2), V(3)),
            {"op_sel": (0, 1, 0), "op_sel_hi": (1, 0, 1), "neg_lo": (1, 0, 0)},
        ),
        (
            "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], a[2:3], 1.0 cbsz:1 abid:2 blgp:3",
            8,
            (Register("a", 0, 16), V(0, 2), Register("a", 2, 2), Immediate(0, real=1.0)),
            {"cbsz": 1, "abid": 2, "blgp": 3},
        ),
        (
            "global_load_dword v0, v[2:3], off offset:-16 sc0 nt",
            8,
            (V(0), V(2, 2), Name("off")),
            {"offset": -16, "sc0": True, "nt": True},
        ),
        (
            "buffer_load_dword v0, v1, s[4:7], 0 idxen offen offset:4095 glc slc lds",
            8,
            (V(0), V(1), S(4, 4), Immediate(0)),
            {"idxen": True, "offen": True, "offset": 4095, "glc": True, "slc": True, "lds": True},
        ),
        (
            "ds_read2_b64 v[0:3], v4 offset0:1 offset1:255",
            8,
            (V(0, 4), V(4)),
            {"offset0": 1, "offset1": 255},
        ),
        (
            "s_getreg_b32 s0, hwreg(HW_REG_MODE, 4, 4)",
            4,
            (S(0), Name("hwreg(HW_REG_MODE, 4, 4)")),
            {},
        ),
        ("s_sendmsg sendmsg(MSG_INTERRUPT)", 4, (Name("sendmsg(MSG_INTERRUPT)"),), {}),
        (
            "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0x3f0",
            8,
            (Name("hwreg(HW_REG_MODE, 0, 4)"), Immediate(0x3F0, literal=True)),
            {},
        ),
        ("s_set_gpr_idx_on s0, gpr_idx(SRC0)", 4, (S(0), Name("gpr_idx(SRC0)")), {}),
    ],
)
def test_operands_and_modifiers(text, size, operands, modifiers):
    instruction = parse(text, 0x40, size)
    assert instruction.operands == operands
    assert instruction.modifiers == modifiers
    assert (instruction.pc, instruction.size, instruction.text) == (0x40, size, text)
    assert instruction.mnemonic == text.split()[0]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("s_branch 0", 0x1004),
        ("s_branch 65535", 0x1000),
        ("s_cbranch_scc1 32767", 0x1004 + 4 * 32767),
        ("s_cbranch_execz 32768", 0x1004 - 4 * 32768),
        ("s_cbranch_vccnz 10", 0x102C),
        ("s_call_b64 s[0:1], 65534", 0xFFC),
        ("s_nop 4", None),
        ("s_setpc_b64 s[0:1]", None),
    ],
)
def test_branches_know_where_they_go(text, target):
    assert parse(text, 0x1000, 4).target == target


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ('swizzle(BITMASK_PERM,"01pi0")', 0b00010_01000_00110),
        ("swizzle(QUAD_PERM,3,2,1,0)", 0x801B),
        ("swizzle(BROADCAST,32,5)", 0x00A0),
        ("swizzle(BROADCAST,8,3)", 0x0078),
        ("swizzle(SWAP,16)", 0x401F),
        ("swizzle(REVERSE,8)", 0x1C1F),
    ],
)
def test_swizzle_is_the_pattern_that_llvm_encodes(words, number):
    text = f"ds_swizzle_b32 v0, v1 offset:{words}"
    assert parse(text, 0, 8).modifiers == {"offset": number}
    (encoding,), refused = assembled("gfx942", [text])
    low, high = encoding.split(",")[:2]
    assert not refused
    assert int(low, 16) | int(high, 16) << 8 == number


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("", ""),
        ("V_ADD", "V_ADD"),
        ("v_mov_b32_e32 v0, v1 ", ""),
        ("v_mov_b32_e32 v0,v1", ",v1"),
        ("v_mov_b32_e32 v0, w1", "w1"),
        ("v_mov_b32_e32 v0, v[3:2]", "v[3:2]"),
        ("v_mov_b32_e32 v0, 1.5", "1.5"),
        ("v_mov_b32_e32 v0, off(3)", "off(3)"),
        ("v_mov_b32_e32 v0, v1 mystery", "mystery"),
        ("v_mov_b32_e32 v0, v1 v2", "v2"),
        ("v_mov_b32_e32 v0, v1 clamp clamp", "clamp"),
        ("v_mov_b32_e32 v0, v1 clamp, v2", "v2"),
        ("v_mov_b32_e32 v0, v1 dst_sel:WORD_7", "dst_sel:WORD_7"),
        ("v_mov_b32_e32 v0, v1 quad_perm:[0,1,2,x]", "quad_perm:[0,1,2,x]"),
        ("v_mov_b32_e32 v0, v1 row_shl", "row_shl"),
        ("v_mov_b32_e32 v0, v1 offset:1:2", "offset:1:2"),
        ("ds_swizzle_b32 v0, v1 offset:swizzle(TWIST,3)", "offset:swizzle(TWIST,3)"),
        ("s_waitcnt vmcnt(0) storecnt(0)", "storecnt(0)"),
        ("s_branch label", "label"),
        ("s_load_dword s0, s[0:1], 0x0 // comment", "//"),
        ("v_add_f32_e32 v0, 300/*Invalid immediate*/, v1", "300/*Invalid"),
    ],
)
def test_what_is_not_in_the_grammar_is_an_error(text, rest):
    with pytest.raises(InputError) as caught:
        parse(text, 0x1A00, 4)
    assert caught.value.message.startswith(f"pc 0x1a00: can't parse {text!r} at {rest!r}")
    assert "LLVM 22" in caught.value.hint


def test_a_branch_needs_a_distance():
    with pytest.raises(InputError, match="expected a distance"):
        parse("s_branch s0", 0, 4)
