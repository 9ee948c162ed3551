"""The MODE register: scalar instructions that read and write it, and VGPR indexing, which it
enables.

CDNA4 ISA manual, "Hardware Internal Registers" and "VGPR Indexing". A wave's MODE has FP_ROUND in
bits 3:0 (f32, then f64 and f16), FP_DENORM in 7:4, DX10_CLAMP in 8, IEEE in 9, FP16_OVFL in 23 and
GPR_IDX_EN in 27; other registers are not modelled. An instruction's behaviour under a MODE is fixed
when it is decoded (decoding.py): `states` returns, for each wave, the state it depends on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from oracle.program.text import Instruction, Operand
from oracle.state.waves import M0, Waves

u32, u64 = np.uint32, np.uint64
MODE = 1  # the register's number
INDEXING = 1 << 27
INDEX, WHICH = 32, 40  # position of M0's bits 7:0 and 15:12 in a state
NAMES = {"SRC0": 1, "SRC1": 2, "SRC2": 4, "DST": 8}


def states(w: Waves) -> np.ndarray:
    """Returns uint64[n]: MODE, and the bits of M0 that matter while VGPRs are indexed."""
    mode, m0 = w.get_mode().astype(u64), w.s32(M0).astype(u64)
    index = (m0 & u64(0xFF)) << u64(INDEX) | (m0 >> u64(12) & u64(15)) << u64(WHICH)
    return mode | np.where(mode & u64(INDEXING) != 0, index, u64(0))


def indexed(ins: Instruction, state: int) -> Instruction:
    """Returns the instruction with its vector registers indexed. Only V_MOV_B32 is supported."""
    if not state & INDEXING or not ins.mnemonic.startswith("v_"):
        return ins
    if ins.mnemonic != "v_mov_b32":
        raise NotImplementedError(f"{ins.text}: under VGPR indexing")
    index, which = state >> INDEX & 0xFF, state >> WHICH & 15
    target, source = ins.operands
    return replace(
        ins, operands=(_moved(target, index, which & 8), _moved(source, index, which & 1))
    )


def _moved(operand: Operand, index: int, enabled: int) -> Operand:
    chosen = enabled and operand.kind == "v"
    return replace(operand, index=operand.index + index) if chosen else operand


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    function = STEPS.get(ins.mnemonic)
    return (lambda w: function(w, ins)) if function else None


def _field(ins: Instruction) -> tuple[int, int]:
    """Returns offset and size in MODE: SIMM16 is size - 1, offset, register."""
    number = ins.words[0] & 0xFFFF
    if number & 63 != MODE:
        raise NotImplementedError(f"{ins.text}: a register other than MODE")
    return number >> 6 & 31, (number >> 11 & 31) + 1


def _get(w: Waves, ins: Instruction) -> None:
    offset, size = _field(ins)
    w.put_s32(ins.operands[0].index, w.get_mode() >> u32(offset) & u32((1 << size) - 1))


def _set(w: Waves, ins: Instruction) -> None:
    offset, size = _field(ins)
    mask = u32(((1 << size) - 1) << offset & 0xFFFFFFFF)
    value = w.read_scalar(ins.operands[1], 32) << u32(offset)
    w.put_mode(w.get_mode() & ~mask | value & mask)


def _which(ins: Instruction) -> int:
    """Returns `gpr_idx(SRC0,DST)` as bits."""
    text = ins.text[ins.text.index("gpr_idx(") :]
    return sum(NAMES[name] for name in re.findall(r"SRC\d|DST", text))


def _put_m0(w: Waves, low: int, bits: int, value: np.ndarray | int) -> None:
    mask = u32(((1 << bits) - 1) << low)
    moved = np.asarray(value, u32) << u32(low)
    w.put_s32(M0, w.s32(M0) & ~mask | moved & mask)


def _index_on(w: Waves, ins: Instruction) -> None:
    _put_m0(w, 0, 8, w.read_scalar(ins.operands[0], 32))
    _put_m0(w, 12, 4, _which(ins))
    w.put_mode(w.get_mode() | u32(INDEXING))


STEPS: dict[str, Callable[[Waves, Instruction], None]] = {
    "s_getreg_b32": _get,
    "s_setreg_b32": _set,
    "s_setreg_imm32_b32": _set,
    "s_set_gpr_idx_on": _index_on,
    "s_set_gpr_idx_off": lambda w, ins: w.put_mode(w.get_mode() & ~u32(INDEXING)),
    "s_set_gpr_idx_idx": lambda w, ins: _put_m0(w, 0, 8, w.read_scalar(ins.operands[0], 32)),
    "s_set_gpr_idx_mode": lambda w, ins: _put_m0(w, 12, 4, _which(ins)),
}
