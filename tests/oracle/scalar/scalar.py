"""Scalar ALU instructions on waves. salu.py has those that are pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from oracle.program.text import Instruction
from oracle.scalar.salu import COMPARES, LOGIC, SOP1, SOP2
from oracle.state.waves import EXEC, M0, Waves

u32, u64, i32, i64 = np.uint32, np.uint64, np.int32, np.int64


def put(w: Waves, ins: Instruction, value, scc) -> None:
    target = ins.operands[0].index
    if value.dtype == u64:
        w.put_s64(target, value)
    else:
        w.put_s32(target, value)
    if scc is not None:
        w.put_scc(np.broadcast_to(scc, w.n))


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    name, operands = ins.mnemonic, ins.operands
    if name in SOP2:
        left, right, function = SOP2[name]
        return lambda w: put(
            w,
            ins,
            *function(w.read_scalar(operands[1], left), w.read_scalar(operands[2], right)),
        )
    if name in SOP1:
        width, one = SOP1[name]
        return lambda w: put(w, ins, *one(w.read_scalar(operands[1], width)))
    if name in COMPARES:
        compare = COMPARES[name]
        left = 64 if name.endswith("64") else 32
        right = 32 if name.startswith("s_bitcmp") else left
        return lambda w: w.put_scc(
            compare(w.read_scalar(operands[0], left), w.read_scalar(operands[1], right))
        )
    if match := re.fullmatch(r"s_(\w+)_saveexec_b64", name):
        return _save_exec(ins, match[1])
    if match := re.fullmatch(r"s_(andn[12]|orn[12])_wrexec_b64", name):
        return _save_exec(ins, match[1], result_to_target=True)
    function = SPECIAL.get(name) or (_compare_constant if name.startswith("s_cmpk_") else None)
    return (lambda w: function(w, ins)) if function else None


# (S0, EXEC) → the new EXEC
SAVE_EXEC: dict[str, Callable] = {
    **LOGIC,
    "andn1": lambda source, old: old & ~source,
    "orn1": lambda source, old: old | ~source,
}


def _save_exec(ins: Instruction, name: str, result_to_target: bool = False):
    """EXEC = S0 op EXEC; the old EXEC (the new one for wrexec) goes to the destination."""
    function = SAVE_EXEC[name]
    target, source = ins.operands

    def step(w: Waves) -> None:
        old = w.s64(EXEC).copy()
        new = function(w.read_scalar(source, 64), old)
        w.put_s64(EXEC, new)
        w.put_s64(target.index, new if result_to_target else old)
        w.put_scc(np.broadcast_to(new != 0, w.n))

    return step


def _add_carry(w: Waves, ins: Instruction) -> None:
    a, b = (w.read_scalar(o, 32).astype(u64) for o in ins.operands[1:])
    if ins.mnemonic == "s_addc_u32":
        total = a + b + w.get_scc()
        put(w, ins, total.astype(u32), total > 0xFFFFFFFF)
    else:
        b = b + w.get_scc()
        put(w, ins, (a - b).astype(u32), b > a)


def _select(w: Waves, ins: Instruction) -> None:
    width = 64 if ins.mnemonic.endswith("b64") else 32
    a, b = (w.read_scalar(o, width) for o in ins.operands[1:])
    put(w, ins, np.where(w.get_scc(), a, b), None)


def _move_if(w: Waves, ins: Instruction) -> None:
    width = 64 if ins.mnemonic.endswith("b64") else 32
    old, new = (w.read_scalar(o, width) for o in ins.operands)
    put(w, ins, np.where(w.get_scc(), new, old), None)


def _constant16(ins: Instruction) -> int:
    value = int(ins.operands[1].value) & 0xFFFF
    return value - 0x10000 if value & 0x8000 else value


def _move_constant(w: Waves, ins: Instruction) -> None:
    value = np.full(w.n, _constant16(ins) & 0xFFFFFFFF, u32)
    if ins.mnemonic == "s_cmovk_i32":
        value = np.where(w.get_scc(), value, w.read_scalar(ins.operands[0], 32))
    put(w, ins, value, None)


def _arithmetic_constant(w: Waves, ins: Instruction) -> None:
    old, value = w.read_scalar(ins.operands[0], 32), np.array([_constant16(ins)], i32).view(u32)
    function = SOP2["s_add_i32" if ins.mnemonic == "s_addk_i32" else "s_mul_i32"][2]
    put(w, ins, *function(old, value))


def _compare_constant(w: Waves, ins: Instruction) -> None:
    unsigned = ins.mnemonic.endswith("u32")
    value = int(ins.operands[1].value) & 0xFFFF if unsigned else _constant16(ins) & 0xFFFFFFFF
    compare = COMPARES[ins.mnemonic.replace("cmpk", "cmp")]
    w.put_scc(compare(w.read_scalar(ins.operands[0], 32), np.array([value], u32)))


def _set_bit(w: Waves, ins: Instruction) -> None:
    kind, width = (u64, 64) if ins.mnemonic.endswith("b64") else (u32, 32)
    old = w.read_scalar(ins.operands[0], width)
    bit = kind(1) << (w.read_scalar(ins.operands[1], 32) & u32(width - 1)).astype(kind)
    put(w, ins, old | bit if "bitset1" in ins.mnemonic else old & ~bit, None)


def _replicate(w: Waves, ins: Instruction) -> None:
    source = w.read_scalar(ins.operands[1], 32).astype(u64)
    result = np.zeros_like(source)
    for k in range(32):
        result |= (source >> u64(k) & u64(1)) * u64(3) << u64(2 * k)
    put(w, ins, result, None)


def _relative(w: Waves, ins: Instruction) -> None:
    """S_MOVRELS, S_MOVRELD: a register number plus M0, which may differ between waves."""
    wide = ins.mnemonic.endswith("b64")
    offset = w.s32(M0).astype(i64)
    rows = w.row_numbers()
    target, source = (np.full(w.n, o.index) for o in ins.operands)
    if "movrels" in ins.mnemonic:
        source = source + offset
    else:
        target = target + offset
    for part in range(2 if wide else 1):
        w.sgpr[target + part, rows] = w.sgpr[source + part, rows]
    w.select(w.rows)


SPECIAL: dict[str, Callable[[Waves, Instruction], None]] = {
    "s_addc_u32": _add_carry,
    "s_subb_u32": _add_carry,
    "s_cselect_b32": _select,
    "s_cselect_b64": _select,
    "s_cmov_b32": _move_if,
    "s_cmov_b64": _move_if,
    "s_movk_i32": _move_constant,
    "s_cmovk_i32": _move_constant,
    "s_addk_i32": _arithmetic_constant,
    "s_mulk_i32": _arithmetic_constant,
    "s_bitset0_b32": _set_bit,
    "s_bitset1_b32": _set_bit,
    "s_bitset0_b64": _set_bit,
    "s_bitset1_b64": _set_bit,
    "s_bitreplicate_b64_b32": _replicate,
    "s_movrels_b32": _relative,
    "s_movrels_b64": _relative,
    "s_movreld_b32": _relative,
    "s_movreld_b64": _relative,
}
