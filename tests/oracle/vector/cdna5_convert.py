"""gfx1250's conversions of floats of 8, 6 and 4 bits: eight or sixteen numbers, pairs and bytes.

scale of codes     E8M0 bytes; which one a lane reads: MLIR's documentation of
                   `amdgpu.scaled_ext_packed816`
scale of numbers   the exponent of an f32, as on gfx950 (conversions.py); so is stochastic
                   rounding, where each number has the next of V_PRNG_B32's sequence
pairs and bytes    LLVM's definitions and its lowering of the intrinsics
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from oracle.arithmetic.minifloat import OCP, Format
from oracle.program.text import Instruction
from oracle.state.waves import LANES, Waves
from oracle.vector.conversions import (
    bits_at,
    encoded,
    floats_in,
    insert,
    packed_bits,
    power,
    scaled,
    select,
    unpacked,
)
from oracle.vector.vector import reader

u32, i64, f64 = np.uint32, np.int64, np.float64
Step = Callable[[Waves], None]


def build(ins: Instruction) -> Step | None:
    name, wide, small = ins.mnemonic, "(f32|f16|bf16)", "(fp8|bf8|fp6|bf6|fp4)"
    if match := re.fullmatch(rf"v_cvt_scale_pk(8|16)_{wide}_{small}", name):
        return _widen(ins, int(match[1]), match[2], OCP[match[3]])
    if match := re.fullmatch(rf"v_cvt_scalef32_(sr_)?pk(8|16)_{small}_{wide}", name):
        return _narrow(ins, bool(match[1]), int(match[2]), OCP[match[3]], match[4])
    if match := re.fullmatch(r"v_cvt_pk_(fp8|bf8)_f16", name):
        return _narrow_pair(ins, OCP[match[1]])
    if match := re.fullmatch(r"v_cvt_pk_f16_(fp8|bf8)", name):
        return _widen_pair(ins, OCP[match[1]])
    if match := re.fullmatch(r"v_cvt_f16_(fp8|bf8)", name):
        return _widen_byte(ins, OCP[match[1]])
    if match := re.fullmatch(r"v_cvt_sr_(fp8|bf8)_f16", name):
        return _narrow_byte(ins, OCP[match[1]])
    return None


def _scales(w: Waves, operand, select_: int, bits: int) -> np.ndarray:
    """Returns each lane's scale. Lanes 16 to 31 read the scales of the same 16 lanes as lanes 0 to
    15: the wave's first or last."""
    if bits == 8:
        blocks_of_16, byte, half = select_ & 1, select_ >> 1 & 3, select_ >> 3
        step = blocks_of_16
    else:
        assert select_ < 8
        assert not select_ & 1
        byte, half, step = 2 * (select_ >> 1 & 1), select_ >> 2, 1
    lane = np.arange(LANES)
    given = np.broadcast_to(w.read(operand, 32), (w.n, LANES))
    word = given[:, 16 * half + lane % 16]
    at = byte + step * (lane % 32 // 16)
    raw = word >> (8 * at).astype(u32) & u32(255)
    return np.where(raw == 255, np.nan, np.ldexp(1.0, raw.astype(np.int32) - 127))


def _widen(ins: Instruction, count: int, kind: str, small: Format) -> Step:
    target, source, scale = ins.operands
    chosen = int(ins.modifiers.get("scale_sel", 0))

    def step(w: Waves) -> None:
        by, first = _scales(w, scale, chosen, small.bits), w.first(target)
        if count * small.bits == 32:
            codes = [w.read(source, 32) >> u32(4 * k) & u32(15) for k in range(8)]
        else:
            start = w.first(source)
            codes = [bits_at(w, start, small.bits * k, small.bits) for k in range(count)]
        values = [packed_bits(kind, scaled(small.decode(code), by)) for code in codes]
        if kind != "f32":
            values = [values[k] | values[k + 1] << u32(16) for k in range(0, count, 2)]
        for k, value in enumerate(values):
            w.put_v32(first + k, value, w.active())

    return step


def _narrow(ins: Instruction, stochastic: bool, count: int, small: Format, kind: str) -> Step:
    target, source, *more = ins.operands
    scale = more.pop()

    def step(w: Waves) -> None:
        values = floats_in(w, kind, source, count)
        seed = w.read(more[0], 32) if stochastic else None
        codes = encoded(small, kind, values, power(w.read(scale, 32)), seed)
        whole = [np.zeros((w.n, LANES), i64) for _ in range(count * small.bits // 32)]
        for k, code in enumerate(codes):
            for b in range(small.bits):
                at = small.bits * k + b
                whole[at // 32] |= (code.astype(i64) >> b & 1) << at % 32
        for k, value in enumerate(whole):
            w.put_v32(w.first(target) + k, value.astype(u32), w.active())

    return step


def _half(ins: Instruction, count: int) -> int:
    """The half of the result: named, or the last of op_sel's bits."""
    half = ins.operands[0].half
    return half if half is not None else select(ins, count)


def _narrow_pair(ins: Instruction, small: Format) -> Step:
    def step(w: Waves) -> None:
        raw = w.read(ins.operands[1], 32)
        low, high = (small.encode(unpacked("f16", raw >> u32(s) & u32(0xFFFF))) for s in (0, 16))
        insert(w, ins.operands[0], low | high << 8, _half(ins, 1), 16)

    return step


def _widen_pair(ins: Instruction, small: Format) -> Step:
    read = reader(ins, 0, ins.operands[1], "b16")

    def step(w: Waves) -> None:
        raw = read(w).astype(u32)
        low, high = (packed_bits("f16", small.decode(c)) for c in (raw & u32(255), raw >> u32(8)))
        w.put_v32(w.first(ins.operands[0]), low | high << u32(16), w.active())

    return step


def _widen_byte(ins: Instruction, small: Format) -> Step:
    byte = int(ins.modifiers.get("byte_sel", 0))

    def step(w: Waves) -> None:
        code = w.read(ins.operands[1], 32) >> u32(8 * byte) & u32(255)
        insert(w, ins.operands[0], packed_bits("f16", small.decode(code)), _half(ins, 1), 16)

    return step


def _narrow_byte(ins: Instruction, small: Format) -> Step:
    byte = int(ins.modifiers.get("byte_sel", 0))
    read = reader(ins, 0, ins.operands[1], "f16")

    def step(w: Waves) -> None:
        value, seed = read(w).astype(f64), w.read(ins.operands[2], 32)
        (code,) = encoded(small, "f16", [value], np.float64(1), seed)
        insert(w, ins.operands[0], code, byte, 8)

    return step
