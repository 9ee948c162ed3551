"""Conversions between f32, f16, bf16 and the small floats, plain (gfx942, gfx950) and scaled by a
power of two (gfx950's V_CVT_SCALEF32 family).

Sources of each interpretation ("CDNA4": AMD's CDNA4 ISA manual, pseudocode of the instruction):

    op_sel         LLVM's lowering of the intrinsics' index. For results, fp8 and bf8 pairs have
                   OPSEL[3] for the half; stochastic single bytes and fp4 pairs OPSEL[3:2], bit 2
                   the low one; f16 and bf16 OPSEL[3]. For sources, pairs of fp8 have OPSEL[0] for
                   the half, single bytes and pairs of fp4 OPSEL[1:0]
    2XPK16         CDNA4: S0 and S1 alternate, S0 first
    a number each  CDNA4, for the PK forms with SR, and section 7.3: the next element has the next
                   number of V_PRNG_B32, (x << 1) ^ (x >> 31 ? 197 : 0)
    stochastic     HIP's amd_hip_ocp_fp.h: as many upper bits of the number as the mantissa loses
                   are added below it, and the carry goes into the exponent. CDNA4's formula alone
                   would let the mantissa wrap
    overflow, NaN  CDNA4, table of conversions: fp8 and bf8 by MODE.FP16_OVFL, here with the mode 0;
                   fp6 and fp4 have neither infinity nor NaN, and saturate
    scale          CDNA4: only the exponent field of an f32. 255 is NaN there (HIP:
                   OCP_SCALE_EXP_NAN), which probes avoid
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from oracle.arithmetic.minifloat import Format, formats
from oracle.program.text import Instruction, Operand
from oracle.state.waves import Waves
from oracle.vector import floating
from oracle.vector.vector import reader

u16, u32, u64, i64 = np.uint16, np.uint32, np.uint64, np.int64
f32, f64 = np.float32, np.float64
Step = Callable[[Waves], None]


def build(ins: Instruction, target: str) -> Step | None:
    name = ins.mnemonic
    known = formats(target)
    if match := re.fullmatch(r"v_cvt_f32_(fp8|bf8)", name):
        return _widen(ins, known[match[1]])
    if match := re.fullmatch(r"v_cvt_pk_f32_(fp8|bf8)", name):
        return _widen_pair(ins, known[match[1]])
    if match := re.fullmatch(r"v_cvt_pk_(fp8|bf8)_f32", name):
        return _narrow_pair(ins, known[match[1]])
    if match := re.fullmatch(r"v_cvt_sr_(fp8|bf8)_f32", name):
        return _narrow_stochastic(ins, known[match[1]], 20 if match[1] == "fp8" else 21, 2)
    if name.startswith("v_cvt_scalef32_"):
        return _scaled(ins, name.removeprefix("v_cvt_scalef32_"), known)
    return None


def select(ins: Instruction, position: int) -> int:
    chosen = ins.modifiers.get("op_sel", ())
    return chosen[position] if position < len(chosen) else 0


def insert(w: Waves, operand: Operand, value: np.ndarray, index: int, bits: int) -> None:
    """Inserts a field into a register; the other bits are preserved."""
    register = w.first(operand)
    field = u32(((1 << bits) - 1) << bits * index & 0xFFFFFFFF)
    kept = w.v32(register) & ~field
    w.put_v32(register, kept | value.astype(u32) << u32(bits * index), w.active())


def put_f64_as(w: Waves, operand: Operand, values: list[np.ndarray]) -> None:
    for k, value in enumerate(values):
        w.put_v32(w.first(operand) + k, value.astype(f32).view(u32), w.active())


def _widen(ins: Instruction, small: Format) -> Step:
    source = reader(ins, 0, ins.operands[1], "b8")
    return lambda w: put_f64_as(w, ins.operands[0], [small.decode(source(w))])


def _widen_pair(ins: Instruction, small: Format) -> Step:
    source = reader(ins, 0, ins.operands[1], "b16")

    def step(w: Waves) -> None:
        raw = source(w)
        put_f64_as(w, ins.operands[0], [small.decode(raw & u16(255)), small.decode(raw >> u16(8))])

    return step


def _narrow_pair(ins: Instruction, small: Format) -> Step:
    a, b = (reader(ins, k, ins.operands[k + 1], "f32") for k in (0, 1))

    def step(w: Waves) -> None:
        low, high = (small.encode(x(w).astype(f64)) for x in (a, b))
        insert(w, ins.operands[0], low | high << 8, select(ins, 2), 16)

    return step


def _narrow_stochastic(ins: Instruction, small: Format, kept: int, first: int) -> Step:
    """`first`: the position in op_sel of the byte's low bit."""
    source, seed = (reader(ins, k, ins.operands[k + 1], t) for k, t in enumerate(("f32", "u32")))

    def step(w: Waves) -> None:
        code = small.encode_stochastic(source(w).astype(f64), seed(w), kept)
        index = select(ins, first) | select(ins, first + 1) << 1
        insert(w, ins.operands[0], code, index, 8)

    return step


# The scaled family


def power(scale: np.ndarray) -> np.ndarray:
    """Returns 2^n of a scale operand, float64: only its exponent field counts, and 255 is a NaN
    (OCP Microscaling Formats, E8M0)."""
    exponent = (scale >> u32(23) & u32(255)).astype(i64)
    return np.where(exponent == 255, np.nan, np.ldexp(1.0, (exponent - 127).astype(np.int32)))


def scaled(value: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Scales a value; a NaN from the scale has no sign."""
    return np.where(np.isnan(by), np.nan, value * by)


WIDTHS = {"f32": 32, "f16": 16, "bf16": 16}


def unpacked(kind: str, raw: np.ndarray) -> np.ndarray:
    """Returns the float64 of an f32, or of a 16-bit float in the low half."""
    if kind == "f32":
        return raw.view(f32).astype(f64)
    if kind == "f16":
        return raw.astype(u16).view(np.float16).astype(f64)
    return (raw << u32(16)).view(f32).astype(f64)


def packed_bits(kind: str, value: np.ndarray) -> np.ndarray:
    if kind == "f32":
        return value.astype(f32).view(u32)
    if kind == "f16":
        return value.astype(np.float16).view(u16).astype(u32)
    return floating.to_brain(value.astype(f32)).astype(u32)  # the values have few bits: exact


def _scaled(ins: Instruction, name: str, known: dict[str, Format]) -> Step | None:
    wide = "(f32|f16|bf16)"
    if match := re.fullmatch(rf"(?:pk_)?{wide}_(fp8|bf8|fp4)", name):
        return _scaled_widen(ins, match[1], known[match[2]], name.startswith("pk_"))
    if match := re.fullmatch(rf"(sr_)?pk_(fp8|bf8|fp4)_{wide}", name):
        return _scaled_pair(ins, known[match[2]], match[3], bool(match[1]))
    if match := re.fullmatch(rf"sr_(fp8|bf8)_{wide}", name):
        return _scaled_stochastic(ins, known[match[1]], match[2])
    if match := re.fullmatch(rf"pk32_{wide}_(fp6|bf6)", name):
        return _scaled_widen_32(ins, match[1], known[match[2]])
    if match := re.fullmatch(rf"(sr_)?(?:pk32|2xpk16)_(fp6|bf6)_{wide}", name):
        return _scaled_narrow_32(ins, known[match[2]], match[3], bool(match[1]), "2x" in name)
    return None


def _scaled_widen(ins: Instruction, kind: str, small: Format, pair: bool) -> Step:
    """op_sel selects the source's byte (two bits), or its half for a pair of fp8 (one bit)."""
    target, source, scale = ins.operands

    def step(w: Waves) -> None:
        raw, by = w.read(source, 32), power(w.read(scale, 32))
        index = select(ins, 0)
        if not (pair and small.bits == 8):
            index |= select(ins, 1) << 1
        count = 2 if pair else 1
        shift = small.bits * count * index
        codes = [
            raw >> u32(shift + small.bits * k) & u32((1 << small.bits) - 1) for k in range(count)
        ]
        values = [packed_bits(kind, scaled(small.decode(code), by)) for code in codes]
        if kind == "f32":
            for k, value in enumerate(values):
                w.put_v32(w.first(target) + k, np.broadcast_to(value, (w.n, 64)), w.active())
        elif pair:
            w.put_v32(w.first(target), values[0] | values[1] << u32(16), w.active())
        else:
            insert(w, target, values[0], select(ins, 2), 16)

    return step


def floats_in(w: Waves, kind: str, operand: Operand, count: int) -> list[np.ndarray]:
    """Returns `count` floats of consecutive registers, packed if they have 16 bits."""
    first = w.first(operand)
    if kind == "f32":
        return [unpacked(kind, w.v32(first + k)) for k in range(count)]
    return [
        unpacked(kind, w.v32(first + k // 2) >> u32(16 * (k % 2)) & u32(0xFFFF))
        for k in range(count)
    ]


def encoded(small: Format, kind: str, values, by, seed) -> list[np.ndarray]:
    # The NaN from a NaN scale has the value's sign, and so does a NaN value.
    values = [np.copysign(value / by, value) for value in values]
    if seed is None:
        return [small.encode(value) for value in values]
    kept = {"f32": 23, "f16": 10, "bf16": 7}[kind] - small.mantissa
    codes = []
    for value in values:
        codes.append(small.encode_stochastic(value, seed, kept))
        # Each further element has the next random number, as V_PRNG_B32 makes it.
        seed = (seed << u32(1)) ^ np.where(seed >> u32(31), u32(197), u32(0))
    return codes


def _scaled_pair(ins: Instruction, small: Format, kind: str, stochastic: bool) -> Step:
    """Inserts two codes into a half (fp8) or a byte (fp4) of the destination. op_sel: fp8 the last
    bit, fp4 the last two."""
    target, *sources, scale = ins.operands
    seed_operand = sources.pop() if stochastic else None

    def step(w: Waves) -> None:
        if len(sources) == 2:
            values = [unpacked(kind, w.read(o, 32)) for o in sources]
        else:
            values = floats_in(w, kind, sources[0], 2)
        seed = w.read(seed_operand, 32) if seed_operand else None
        low, high = encoded(small, kind, values, power(w.read(scale, 32)), seed)
        # OPSEL 3 is the last: instructions of two sources print three bits.
        chosen = ins.modifiers.get("op_sel", (0,))
        index = int(chosen[-1])
        if small.bits == 4:
            index = select(ins, 2) | index << 1
        insert(w, target, low | high << small.bits, index, 2 * small.bits)

    return step


def _scaled_stochastic(ins: Instruction, small: Format, kind: str) -> Step:
    target, source, seed, scale = ins.operands

    def step(w: Waves) -> None:
        value = unpacked(kind, w.read(source, 32) & u32(0xFFFFFFFF if kind == "f32" else 0xFFFF))
        (code,) = encoded(small, kind, [value], power(w.read(scale, 32)), w.read(seed, 32))
        insert(w, target, code, select(ins, 2) | select(ins, 3) << 1, 8)

    return step


def bits_at(w: Waves, first: int, at: int, bits: int) -> np.ndarray:
    low = w.v32(first + at // 32).astype(u64)
    if at % 32 + bits > 32:
        low |= w.v32(first + at // 32 + 1).astype(u64) << u64(32)
    return low >> u64(at % 32) & u64((1 << bits) - 1)


def _scaled_widen_32(ins: Instruction, kind: str, small: Format) -> Step:
    target, source, scale = ins.operands

    def step(w: Waves) -> None:
        by, first, out = power(w.read(scale, 32)), w.first(source), w.first(target)
        values = [
            packed_bits(kind, scaled(small.decode(bits_at(w, first, 6 * k, 6)), by))
            for k in range(32)
        ]
        if kind != "f32":
            values = [values[k] | values[k + 1] << u32(16) for k in range(0, 32, 2)]
        for k, value in enumerate(values):
            w.put_v32(out + k, value, w.active())

    return step


def _scaled_narrow_32(
    ins: Instruction, small: Format, kind: str, stochastic: bool, halves: bool
) -> Step:
    """Writes 32 codes of six bits to six registers. The 2XPK16 form has 32 floats in two
    operands."""
    target, *sources, scale = ins.operands
    seed_operand = sources.pop() if stochastic else None

    def step(w: Waves) -> None:
        if halves:
            # "S0 and S1 inputs are interleaved in the packed result."
            both = [floats_in(w, kind, source, 16) for source in sources]
            values = [value for pair in zip(*both, strict=True) for value in pair]
        else:
            values = floats_in(w, kind, sources[0], 32)
        seed = w.read(seed_operand, 32) if seed_operand else None
        codes = encoded(small, kind, values, power(w.read(scale, 32)), seed)
        whole = [np.zeros((w.n, 64), u32) for _ in range(6)]
        for k, code in enumerate(codes):
            at = 6 * k
            whole[at // 32] |= (code << at % 32 & 0xFFFFFFFF).astype(u32)
            if at % 32 > 26:
                whole[at // 32 + 1] |= (code >> 32 - at % 32).astype(u32)
        for k, value in enumerate(whole):
            w.put_v32(w.first(target) + k, value, w.active())

    return step
