"""Dot products of gfx11 and gfx12.

V_DOT4_I32_IU8 and V_DOT8_I32_IU4 specify the signedness of each source. V_DOT2_F32_F16 and
V_DOT2_F32_BF16 are a step of `rdna_sums`. Constants as factors have been measured (rocjitsu's
gfx11_dot2_test.cpp and gfx12_dot_test.cpp): an f16 one is only in the lower half of its register,
except in VOPD, where it is in both, as a bf16 one always is; a bf16 float is the upper half of its
f32.

V_DOT2_F16_F16 and V_DOT2_BF16_BF16 are VOP3: a sign applies to both halves of a factor, op_sel to
the addend and the result. The products' sum, then the addend, in f32, then one rounding to nearest
even (the order is rocjitsu's, shared/fp_mode.h); bf16 has no denormals (RDNA4 ISA manual, MODE).
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from oracle.arithmetic import floats, rdna_sums
from oracle.program.text import Instruction, Operand
from oracle.state.waves import Waves, modified
from oracle.vector import crosslane, floating

BITS = {"v_dot4_i32_iu8": 8, "v_dot8_i32_iu4": 4}
FLOATS = re.compile(r"v_(dual_)?dot2(?:c|acc)?_f32_(b?f16)")
INLINE = range(-16, 65)


def build(ins: Instruction, target: str) -> Callable[[Waves], None] | None:
    if match := FLOATS.fullmatch(ins.mnemonic):
        return _floats(ins, match[2], target, dual=bool(match[1]))
    if ins.mnemonic in ("v_dot2_f16_f16", "v_dot2_bf16_bf16"):
        return _halves(ins, ins.mnemonic.rpartition("_")[2])
    return _integers(ins) if ins.mnemonic in BITS else None


def _number(raw: np.ndarray, form: str) -> np.ndarray:
    """Converts 16 bits to f32."""
    if form == "f16":
        return raw.astype(np.uint16).view(np.float16).astype(np.float32)
    return floats.flush((raw.astype(np.uint32) << np.uint32(16)).view(np.float32))


def _halves(ins: Instruction, form: str) -> Callable[[Waves], None]:
    target, *operands = ins.operands
    select = [*ins.modifiers.get("op_sel", ()), 0, 0, 0, 0]
    move = crosslane.dpp(ins) if ins.encoding.endswith("dpp") else None

    def word(w: Waves, k: int) -> np.ndarray:
        operand = operands[k]
        if operand.kind in ("int", "float") and not operand.literal:
            real = operand.kind == "float"
            if form == "bf16" and real:
                raw = w.read(operand, 32) >> np.uint32(16)
            else:
                raw = w.read(operand, 16 if real or k == 2 or form == "bf16" else 32)
            raw = raw.astype(np.uint32) * np.uint32(0x10001 if form == "bf16" else 1)
        else:
            raw = w.read(operand, 32)
        if k == 0 and move:
            raw = move.fetch(w, np.broadcast_to(raw, (w.n, 64)))
        if operand.absolute:
            raw = raw & np.uint32(0x7FFF7FFF)
        raw = raw ^ np.uint32(0x80008000 if operand.negate else 0)
        high = operand.half if operand.half is not None else select[2] if k == 2 else 0
        return np.broadcast_to(raw >> np.uint32(16 * high), (w.n, 64))

    def step(w: Waves) -> None:
        words = [word(w, k) for k in range(3)]
        parts = [(x & np.uint32(0xFFFF), x >> np.uint32(16)) for x in words]
        (a0, a1), (b0, b1), (c, _) = [[_number(x, form) for x in pair] for pair in parts]
        total = (a0 * b0 + a1 * b1) + c
        if form == "f16":
            raw = total.astype(np.float16).view(np.uint16)
        else:
            raw = floating.to_brain(total)
            raw = np.where(raw & np.uint16(0x7F80) == 0, raw & np.uint16(0x8000), raw)
        high = target.half if target.half is not None else select[3]
        shift, old = np.uint32(16 * high), w.v32(w.first(target))
        made = old & ~(np.uint32(0xFFFF) << shift) | raw.astype(np.uint32) << shift
        w.put_v32(w.first(target), made, w.active() if move is None else move.written(w))

    return step


def _integers(ins: Instruction) -> Callable[[Waves], None]:
    """A source's bit of neg_lo makes its elements signed; the addend is always signed."""
    bits = BITS[ins.mnemonic]
    signed = ins.modifiers.get("neg_lo", [0, 0, 0])

    def elements(x: np.ndarray, k: int, is_signed: int) -> np.ndarray:
        value = (x >> np.uint32(bits * k) & np.uint32((1 << bits) - 1)).astype(np.int64)
        top = 1 << bits - 1
        return (value ^ top) - top if is_signed else value

    def step(w: Waves) -> None:
        a, b, c = (w.read(operand, 32) for operand in ins.operands[1:])
        total = np.ascontiguousarray(np.broadcast_to(c, (w.n, 64))).view(np.int32).astype(np.int64)
        for k in range(32 // bits):
            total = total + elements(a, k, signed[0]) * elements(b, k, signed[1])
        if ins.modifiers.get("clamp"):
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        raw = (total & 0xFFFFFFFF).astype(np.uint32)
        w.put_v32(w.first(ins.operands[0]), raw, w.active())

    return step


def _floats(ins: Instruction, form: str, target: str, dual: bool) -> Callable[[Waves], None]:
    addend = ins.operands[3] if len(ins.operands) > 3 else ins.operands[0]
    selects = [
        ins.modifiers.get(name, [low] * 3) for name, low in (("op_sel", 0), ("op_sel_hi", 1))
    ]
    signs = [ins.modifiers.get(name, [0] * 3) for name in ("neg_lo", "neg_hi")]
    move = crosslane.dpp(ins) if ins.encoding.endswith("dpp") else None

    def word(w: Waves, operand: Operand) -> np.ndarray:
        real = operand.kind == "float"
        if not real and (operand.kind != "int" or operand.value not in INLINE):
            return w.read(operand, 32)
        if form == "f16":
            short = w.read(operand, 16 if real or dual else 32).astype(np.uint32)
        else:
            short = w.read(operand, 32) >> np.uint32(16) if real else w.read(operand, 16)
        return short.astype(np.uint32) * np.uint32(0x10001 if dual or form == "bf16" else 1)

    def factors(w: Waves, number: int) -> np.ndarray:
        raw = word(w, ins.operands[1 + number])
        raw = np.broadcast_to(raw, (w.n, 64))
        if move is not None and number == 0:
            raw = move.fetch(w, raw)
        halves = [
            raw >> np.uint32(16 * select[number]) & np.uint32(0xFFFF)
            ^ np.uint32(sign[number] << 15)
            for select, sign in zip(selects, signs, strict=True)
        ]
        return np.stack(halves, axis=-1)

    def step(w: Waves) -> None:
        c = np.broadcast_to(modified(addend, w.read(addend, 32), 32), (w.n, 64))
        raw = rdna_sums.step(factors(w, 0), factors(w, 1), c, form, target, "f32")
        result = raw.astype(np.uint32)
        if ins.modifiers.get("clamp"):
            value = result.view(np.float32)
            result = np.where(value > 0, np.minimum(value, 1), 0).astype(np.float32).view(np.uint32)
        w.put_v32(w.first(ins.operands[0]), result, move.written(w) if move else w.active())

    return step
