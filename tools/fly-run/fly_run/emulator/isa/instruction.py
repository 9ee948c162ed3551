"""A decoded instruction: the disassembler's text as data.

`disassemble` makes these from machine code; `encode` turns them into micro-ops. Nothing here knows
an instruction's semantics.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# Scalar registers by name → number, as in operand encodings (Vega/CDNA ISA manuals, "SGPR operand
# encodings"). `vcc` is the pair 106-107, `exec` 126-127. gfx11 moved m0 to 125; the text names it,
# so here it has the same number on all targets.
SPECIAL_SCALARS = {
    "flat_scratch_lo": 102,
    "flat_scratch_hi": 103,
    "flat_scratch": 102,
    "xnack_mask_lo": 104,
    "xnack_mask_hi": 105,
    "xnack_mask": 104,
    "vcc_lo": 106,
    "vcc_hi": 107,
    "vcc": 106,
    "m0": 124,
    "exec_lo": 126,
    "exec_hi": 127,
    "exec": 126,
}


@dataclass(frozen=True, slots=True)
class Register:
    """`count` registers starting at `index`. `bank` is "s" (scalar; specials by their encoded
    number, ttmp at 108-123), "v" (vector) or "a" (accumulation)."""

    bank: str
    index: int
    count: int = 1
    negate: bool = False  # -x or neg(x)
    absolute: bool = False  # |x|
    sign_extend: bool = False  # sext(x), SDWA
    half: str = ""  # gfx11 and later: "l" or "h", the half of a 16-bit operand


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant as printed. An integer is a bit pattern (`value`); an inline float constant keeps
    `real`, because `1.0` is 0x3f800000, 0x3c00 or a double depending on the instruction's type."""

    value: int
    real: float | None = None
    negate: bool = False
    absolute: bool = False
    literal: bool = (
        False  # a 32-bit literal dword follows the instruction: an f64 one is the high half
    )
    sign_extend: bool = False  # sext(x), SDWA
    wide: bool = False  # gfx1250: a literal of 64 bits


@dataclass(frozen=True, slots=True)
class Name:
    """Any other operand, by its name: `off`, `src_scc`, `src_vccz`, `src_execz`,
    `src_shared_base`, `src_private_base`, `hwreg(HW_REG_MODE, 4, 4)`, `vmcnt(0)`, …"""

    text: str
    negate: bool = False
    absolute: bool = False
    sign_extend: bool = False


Operand = Register | Immediate | Name


@dataclass(frozen=True, slots=True)
class Instruction:
    """`pc` is the address in the code object's own numbering (ELF virtual address); `size` is in
    bytes. `mnemonic` keeps its encoding suffix (`v_add_f32_e32`, `_e64`, `_dpp`, `_sdwa`).
    `modifiers` holds what follows the operands: `offset` → 16, `glc` → True, `quad_perm` →
    (1, 0, 3, 2), `dst_sel` → "WORD_1", `op_sel` → (0, 1). A branch's immediate is resolved:
    `target` is its destination address. `second` is the other half of a VOPD instruction
    (`v_dual_mov_b32 … :: v_dual_add_f32 …`)."""

    pc: int
    size: int
    mnemonic: str
    operands: tuple[Operand, ...]
    modifiers: dict[str, int | bool | str | tuple[int, ...]] = field(default_factory=dict)
    target: int | None = None
    text: str = ""
    second: Instruction | None = None


# Instructions that read or replace the program counter; gfx1250 has other names.
GET_PC = ("s_getpc_b64", "s_get_pc_i64")
SET_PC = ("s_setpc_b64", "s_set_pc_i64")
SWAP_PC = ("s_swappc_b64", "s_swap_pc_i64")
ADD_PC = "s_add_pc_i64"

# Encoding suffixes of mnemonics, and the encoding's name if it matters.
SUFFIXES = {"_e64_dpp": "dpp", "_e32": "", "_e64": "", "_dpp": "dpp", "_sdwa": "sdwa"}


def split_mnemonic(mnemonic: str) -> tuple[str, str]:
    """Returns a mnemonic without its encoding suffix, and the encoding if it matters."""
    for suffix, encoding in SUFFIXES.items():
        if mnemonic.endswith(suffix):
            return mnemonic.removesuffix(suffix), encoding
    return mnemonic, ""
