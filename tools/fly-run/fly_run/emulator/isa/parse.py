"""Parses the disassembler's text into an Instruction. Text outside the grammar is an error.

    instruction := mnemonic [operand {"," operand}] {" " modifier}
                 | "s_waitcnt" counter {" " counter}
                 | "s_delay_alu" hint {" | " hint}
                 | ("s_waitcnt_depctr" | "s_wait_alu") hint {" " hint}
                 | instruction " :: " instruction                            (VOPD)
    operand     := [ "-" ] value | [ "-" ] "|" value "|" | ("neg"|"abs"|"sext") "(" value ")"
                 | call
    value       := register | integer | float | "lit(" integer ")" | name
    register    := bank index [".l" | ".h"] | bank "[" first ":" last "]" | special
    bank        := "v" | "s" | "a" | "ttmp"
    hint        := word "(" word ")" | integer
    call        := "hwreg" | "sendmsg" | "gpr_idx" | counter, with "(" text ")"
    modifier    := flag | name ":" (integer | word | "[" item {"," item} "]" | swizzle)

Operands and modifiers are parsed once per distinct text: a kernel has many instructions and few
distinct operands.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace

from fly_common.errors import InputError
from fly_common.quoting import quoted

from fly_run.emulator.isa.instruction import (
    ADD_PC,
    SPECIAL_SCALARS,
    Immediate,
    Instruction,
    Name,
    Operand,
    Register,
)

Modifier = int | bool | str | tuple[int, ...]

TTMP_0 = 108  # the encoded number of the first trap handler register
_PAIRS = frozenset(("vcc", "exec", "flat_scratch", "xnack_mask"))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Operands that are plain names. `null` and src_lds_direct occur in encodings that no compiler for
# these targets emits; the encoder decides about them.
NAMES = _words(
    "off null src_scc src_vccz src_execz src_shared_base src_shared_limit src_private_base"
    " src_private_limit src_pops_exiting_wave_id src_lds_direct src_flat_scratch_base_lo"
    " src_flat_scratch_base_hi"
)
# Inline float constants; the last two are 1/(2π), single and double.
FLOATS = frozenset(("0.5", "1.0", "2.0", "4.0", "0.15915494", "0.15915494309189532"))
# Flags: modifiers without a value.
FLAGS = _words(
    "clamp glc slc dlc nv scc sc0 sc1 nt lds gds offen idxen addr64 tfe lwe da unorm r128 a16 d16"
    " high row_mirror row_half_mirror fi scale_offset matrix_a_reuse matrix_b_reuse"
)
# Modifiers with an integer.
INTEGERS = _words(
    "offset offset0 offset1 mul div cbsz abid blgp dmask bank_mask row_mask bound_ctrl bitop3"
    " row_shl row_shr row_ror row_bcast row_newbcast row_share row_xmask wave_shl wave_rol wave_shr"
    " wave_ror fi byte_sel wait_exp wait_vdst wait_va_vdst wait_vm_vsrc index_key scale_sel"
)
# Modifiers with a list of integers.
LISTS = _words("quad_perm dpp8 op_sel op_sel_hi neg_lo neg_hi neg")
# Modifiers with a word, and the valid words.
_SELECTS = _words("BYTE_0 BYTE_1 BYTE_2 BYTE_3 WORD_0 WORD_1 DWORD")
_UNUSED = _words("UNUSED_PAD UNUSED_SEXT UNUSED_PRESERVE")
WORDS = {
    "dst_sel": _SELECTS,
    "src0_sel": _SELECTS,
    "src1_sel": _SELECTS,
    "dst_unused": _UNUSED,
}
# Modifiers with a word from an open set: cache policy and scope (gfx12), the shape of an image.
PATTERNS = {
    "th": re.compile(r"TH_[A-Z_]+|0x[0-9a-f]+"),
    "scope": re.compile(r"SCOPE_[A-Z]+"),
    "dim": re.compile(r"SQ_RSRC_IMG_[0-9A-Z_]+"),
    **{
        f"matrix_{which}_{what}": re.compile(rf"MATRIX_{what.upper()}_[0-9A-Z_]+")
        for which in "ab"
        for what in ("fmt", "scale", "scale_fmt")
    },
}
# Instructions that only affect timing: their operands are kept as text.
_HINTED = re.compile(r"(s_delay_alu|s_waitcnt_depctr|s_wait_alu) (.*)")
_HINT = re.compile(r"\w+\(\w+\)|0x[0-9a-f]+|\d+")
# Instructions whose last operand is a 16-bit distance in dwords, from the next instruction.
BRANCHES = re.compile(
    r"s_branch|s_call_(?:b|i)64|s_cbranch_(?:scc[01]|vccn?z|execn?z|cdbg\w+|i_fork)"
    r"|s_subvector_loop_(?:begin|end)"
)
# Encodings with an optional 32-bit literal: 32-bit encodings that are eight bytes long.
_SCALAR_MEMORY = re.compile(
    r"s_(?:buffer_|scratch_)?(?:load|store|atomic|prefetch)|s_dcache|s_memtime|s_memrealtime|s_atc"
)
_MAY_HOLD_LITERAL = re.compile(r"s_|v_\w+_e32$|v_(?:mad|fma)[am]k_")
# gfx11 and later: 64-bit encodings with a literal, which makes them twelve bytes long.
_LONG = re.compile(r"v_")

_MNEMONIC = re.compile(r"[a-z][a-z0-9_]*")
_REGISTER = re.compile(r"(v|s|a|ttmp)(?:(\d+)(?:\.([lh]))?|\[(\d+):(\d+)\])")
_INTEGER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)")
_LITERAL = re.compile(r"lit(64)?\((-?(?:0x[0-9a-f]+|\d+))\)")
_CALL = re.compile(
    r"(hwreg|sendmsg|gpr_idx|vmcnt|expcnt|lgkmcnt)\(([A-Za-z0-9_]+(?:, ?[A-Za-z0-9_]+)*)?\)"
)
_MODIFIER = re.compile(r"([a-z_][a-z0-9_]*)(?::(.+))?")
_FORMAT = re.compile(r"\[BUF_[A-Z0-9_]+(?:,BUF_[A-Z0-9_]+)?\]|\d+")
_SWIZZLE = re.compile(r'swizzle\((BITMASK_PERM,"([01ip]{5})"|([A-Z_]+)((?:,\d+)+))\)')
# Pieces of operands and modifiers: separators inside brackets or quotes do not split.
_PIECES = re.compile(r'(?:[^\s,(\["|]|\([^)]*\)|\[[^\]]*\]|"[^"]*"|\|[^|]*\|)+')


def parse(text: str, pc: int, size: int) -> Instruction:
    """Parses the text that LLVM prints for an instruction of `size` bytes at address `pc`.
    InputError names the pc and the part that does not parse."""
    if hinted := _HINTED.fullmatch(text):
        hints = re.split(r" \| | ", hinted[2])
        if not all(_HINT.fullmatch(hint) for hint in hints):
            raise _refuse(text, pc, hinted[2], "a hint")
        return Instruction(pc, size, hinted[1], tuple(map(Name, hints)), {}, None, text)
    first, both, second = text.partition(" :: ")
    if both:
        other = parse(second, pc, size)
        return replace(parse(first, pc, size), text=text, second=other)
    found = _MNEMONIC.match(text)
    if found is None:
        raise _refuse(text, pc, text, "a mnemonic")
    mnemonic, at = found[0], found.end()
    operands: list[Operand] = []
    modifiers: dict[str, Modifier] = {}
    separator = " "
    while at < len(text):
        if not text.startswith(separator, at):
            raise _refuse(text, pc, text[at:], f"{quoted(separator)}")
        at += len(separator)
        piece = _PIECES.match(text, at)
        if piece is None:
            raise _refuse(text, pc, text[at:], "an operand or a modifier")
        at = piece.end()
        operand = None if modifiers else _operand(piece[0])
        # A modifier follows a space; so do s_waitcnt's counters, which are operands.
        if operand is not None and (separator == ", " or not operands or _is_counter(operand)):
            operands.append(operand)
        else:
            entry = _modifier(piece[0])
            if entry is None or entry[0] in modifiers or separator == ", ":
                raise _refuse(text, pc, piece[0], "an operand or a modifier")
            modifiers[entry[0]] = entry[1]
        separator = ", " if text.startswith(", ", at) else " "
    short = size == 8 and _MAY_HOLD_LITERAL.match(mnemonic)
    long = size == 12 and _LONG.match(mnemonic)
    if (short or long) and not _SCALAR_MEMORY.match(mnemonic):
        operands = [_as_literal(operand) for operand in operands]
    target = None
    if BRANCHES.fullmatch(mnemonic):
        if not operands or not isinstance(operands[-1], Immediate):
            raise _refuse(text, pc, text, "a distance")
        target = pc + 4 + 4 * _signed_16(operands[-1].value)
    elif mnemonic == ADD_PC and len(operands) == 1 and isinstance(operands[0], Immediate):
        # The distance in bytes, from the next instruction.
        target = (pc + size + operands[0].value) & (1 << 64) - 1
    return Instruction(pc, size, mnemonic, tuple(operands), modifiers, target, text)


def _refuse(text: str, pc: int, rest: str, wanted: str) -> InputError:
    return InputError(
        f"pc 0x{pc:x}: can't parse {quoted(text)} at {quoted(rest)}: expected {wanted}",
        hint="fly-run reads the text of LLVM 22's disassembler; another LLVM may print it"
        " differently",
    )


def _is_counter(operand: Operand) -> bool:
    return isinstance(operand, Name) and operand.text.startswith(("vmcnt(", "expcnt(", "lgkmcnt("))


def _signed_16(value: int) -> int:
    return (value & 0x7FFF) - (value & 0x8000)


# -- operands ------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=65536)
def _operand(text: str) -> Operand | None:
    """Parses an operand; None if the text is not one."""
    negate = absolute = sign_extend = False
    if text.startswith("sext(") and text.endswith(")"):
        text, sign_extend = text[5:-1], True
    elif text.startswith("neg(") and text.endswith(")"):
        text, negate = text[4:-1], True
    elif text.startswith("abs(") and text.endswith(")"):
        text, absolute = text[4:-1], True
    else:
        # A minus before a number belongs to the number.
        if text.startswith("-") and not text[1:2].isdigit():
            text, negate = text[1:], True
        if len(text) > 2 and text[0] == text[-1] == "|":
            text, absolute = text[1:-1], True
    value = _value(text)
    if value is None or not (negate or absolute or sign_extend):
        return value
    return replace(value, negate=negate, absolute=absolute, sign_extend=sign_extend)


def _value(text: str) -> Operand | None:
    if match := _REGISTER.fullmatch(text):
        bank, single, half, first, last = match.groups()
        index = int(single or first)
        count = int(last) - index + 1 if last else 1
        if bank == "ttmp":
            bank, index = "s", index + TTMP_0
        return Register(bank, index, count, half=half or "") if count > 0 else None
    if text in SPECIAL_SCALARS:
        return Register("s", SPECIAL_SCALARS[text], 2 if text in _PAIRS else 1)
    if _INTEGER.fullmatch(text):
        return Immediate(int(text, 0))
    if text.removeprefix("-") in FLOATS:
        return Immediate(0, real=float(text))
    if match := _LITERAL.fullmatch(text):
        return Immediate(int(match[2], 0), literal=True, wide=bool(match[1]))
    if text in NAMES or _CALL.fullmatch(text):
        return Name(text)
    return None


def _as_literal(operand: Operand) -> Operand:
    """Marks a number that is no inline constant as a literal: LLVM prints an inline integer in
    decimal, and a literal with such a value as `lit(…)`."""
    if isinstance(operand, Immediate) and operand.real is None and not -16 <= operand.value <= 64:
        return replace(operand, literal=True)
    return operand


# -- modifiers -----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=65536)
def _modifier(text: str) -> tuple[str, Modifier] | None:
    """Parses a modifier's name and value; None if the text is not a modifier."""
    match = _MODIFIER.fullmatch(text)
    if match is None:
        return None
    name, value = match.groups()
    if value is None:
        return (name, True) if name in FLAGS else None
    if name in INTEGERS and _INTEGER.fullmatch(value):
        return name, int(value, 0)
    if name in LISTS and re.fullmatch(r"\[\d+(?:,\d+)*\]", value):
        return name, tuple(int(item) for item in value[1:-1].split(","))
    if name in WORDS and value in WORDS[name]:
        return name, value
    if name in PATTERNS and PATTERNS[name].fullmatch(value):
        return name, value
    if name == "format" and _FORMAT.fullmatch(value):
        return name, value
    if name == "offset" and (swizzle := _SWIZZLE.fullmatch(value)):
        number = _swizzle(swizzle)
        return (name, number) if number is not None else None
    return None


def _swizzle(match: re.Match[str]) -> int | None:
    """Returns the 16-bit pattern of ds_swizzle_b32 ("DS_SWIZZLE_B32" in the CDNA3 ISA manual): the
    lane's number is and'ed with bits 4-0, or'ed with 9-5, xor'ed with 14-10."""
    if bits := match[2]:
        masks = {"0": 0, "1": 1 << 5, "p": 1, "i": 1 | 1 << 10}
        return sum(masks[bit] << 4 - index for index, bit in enumerate(bits))
    numbers = [int(number) for number in match[4][1:].split(",")]
    kind = match[3], len(numbers)
    if kind == ("QUAD_PERM", 4):
        return 0x8000 | sum((lane & 3) << 2 * index for index, lane in enumerate(numbers))
    if kind == ("BROADCAST", 2):
        size, lane = numbers
        return (0x1F & -size) | lane << 5
    if kind == ("SWAP", 1):
        return 0x1F | numbers[0] << 10
    if kind == ("REVERSE", 1):
        return 0x1F | numbers[0] - 1 << 10
    if kind == ("FFT", 1):
        return 0xE000 | numbers[0]
    if kind == ("ROTATE", 2):
        direction, amount = numbers
        return 0xC000 | direction << 10 | amount << 5
    return None
