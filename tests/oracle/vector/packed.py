"""VOP3P: two results in one instruction, mixed precision and dot products.

op_sel and op_sel_hi select each source's half for the low and the high result; neg_lo and neg_hi
negate it. For f32 pairs the halves are dwords of a 64-bit operand.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from oracle.arithmetic import floats
from oracle.program.text import Instruction
from oracle.state.waves import DTYPES, Waves, modified
from oracle.vector import floating, rdna_valu, rounding, valu

PAIRED_16 = {
    "v_pk_add_f16": ("f16", "v_add_f16"),
    "v_pk_mul_f16": ("f16", "v_mul_f16"),
    "v_pk_fma_f16": ("f16", "v_fma_f16"),
    "v_pk_min_f16": ("f16", "v_min_f16"),
    "v_pk_max_f16": ("f16", "v_max_f16"),
    "v_pk_minimum3_f16": ("f16", "v_minimum3_f16"),
    "v_pk_maximum3_f16": ("f16", "v_maximum3_f16"),
    "v_pk_minimum_f16": ("f16", "v_minimum_f16"),
    "v_pk_maximum_f16": ("f16", "v_maximum_f16"),
    "v_pk_add_u16": ("u16", "v_add_u16"),
    "v_pk_sub_u16": ("u16", "v_sub_u16"),
    "v_pk_add_i16": ("i16", "v_add_i16"),
    "v_pk_sub_i16": ("i16", "v_sub_i16"),
    "v_pk_mul_lo_u16": ("u16", "v_mul_lo_u16"),
    "v_pk_mad_u16": ("u16", "v_mad_u16"),
    "v_pk_mad_i16": ("i16", "v_mad_i16"),
    "v_pk_min_u16": ("u16", "v_min_u16"),
    "v_pk_max_u16": ("u16", "v_max_u16"),
    "v_pk_min_i16": ("i16", "v_min_i16"),
    "v_pk_max_i16": ("i16", "v_max_i16"),
    "v_pk_lshlrev_b16": ("u16", "v_lshlrev_b16"),
    "v_pk_lshrrev_b16": ("u16", "v_lshrrev_b16"),
    "v_pk_ashrrev_i16": ("i16", "v_ashrrev_i16"),
}
SINGLE = valu.VALU | rdna_valu.TABLE
PAIRED_32 = {
    "v_pk_add_f32": "v_add_f32",
    "v_pk_mul_f32": "v_mul_f32",
    "v_pk_fma_f32": "v_fma_f32",
    "v_pk_mov_b32": "",
}


def build(ins: Instruction, mode: int) -> Callable[[Waves], None] | None:
    name = ins.mnemonic
    if name in PAIRED_16:
        kind, scalar = PAIRED_16[name]
        return halves(ins, mode, kind, scalar, SINGLE[scalar])
    if name in PAIRED_32:
        return _dwords(ins, mode)
    if name in ("v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16"):
        return _mix(ins)
    if name in DOTS:
        return _dot(ins)
    if match := re.fullmatch(r"v_dot2c?_f32_(b?f16)", name):
        return _dot_floats(ins, match[1])
    return None


def saturating(function: Callable, kind: str) -> Callable:
    """Integer clamp: saturates the exact result to the range of `kind`."""
    info = np.iinfo(DTYPES[kind])

    def clamped(*values: np.ndarray) -> np.ndarray:
        exact = function(*(value.astype(np.int64) for value in values))
        return np.clip(exact, info.min, info.max).astype(DTYPES[kind])

    return clamped


def clamped(value: np.ndarray, mode: int) -> np.ndarray:
    """Clamps floats to [0, 1], without -0; NaN is 0 under DX10_CLAMP."""
    result = np.where(value > 0, np.minimum(value, 1), 0).astype(value.dtype)
    return result if mode >> 8 & 1 else np.where(np.isnan(value), value, result)


def selections(ins: Instruction, count: int):
    modifiers = ins.modifiers
    return (
        modifiers.get("op_sel", [0] * count),
        modifiers.get("op_sel_hi", [1] * count),
        modifiers.get("neg_lo", [0] * count),
        modifiers.get("neg_hi", [0] * count),
    )


def halves(ins: Instruction, mode: int, kind: str, scalar: str, op: valu.Op):
    """`op`: the instruction `scalar`, applied to either half."""
    operands = ins.operands[1:]
    low_half, high_half, low_sign, high_sign = selections(ins, len(operands))
    options = {"ieee": bool(mode >> 9 & 1)} if op.ieee else {}
    # MODE's bits 7:6 preserve denormals of f16 in results and sources.
    flush_source, flush_result = (
        (lambda x: x) if kind != "f16" or mode >> 6 & bit else floats.flush for bit in (1, 2)
    )

    def half(w: Waves, position: int, high: int, negate: int) -> np.ndarray:
        operand = operands[position]
        # A 16-bit float constant is only in the lower half; integer instructions read a 32-bit one
        # (LLVM: AMDGPUBaseInfo, getInlineEncodingV216).
        narrow = operand.kind == "float" and kind == "f16"
        raw = w.read(operand, 16).astype(np.uint32) if narrow else w.read(operand, 32)
        raw = raw >> np.uint32(16 * high)
        signed = raw.astype(np.uint16) ^ np.uint16(0x8000 * negate)
        return flush_source(signed.view(DTYPES[kind]))

    def clamp(value: np.ndarray) -> np.ndarray:
        if not ins.modifiers.get("clamp") or kind != "f16":
            return value
        return clamped(value, mode)

    function = rounding.rounded(scalar, op, mode)
    if ins.modifiers.get("clamp") and kind != "f16":
        if not scalar.startswith(("v_add", "v_sub", "v_mad", "v_min", "v_max")):
            raise NotImplementedError(f"{ins.text}: integer clamp")
        function = saturating(op.function, kind)

    def step(w: Waves) -> None:
        count = range(len(operands))
        low = [half(w, k, low_half[k], low_sign[k]) for k in count]
        high = [half(w, k, high_half[k], high_sign[k]) for k in count]
        if scalar.endswith("rev_i16"):  # the shift count is unsigned
            low[0], high[0] = low[0].view(np.uint16), high[0].view(np.uint16)
        results = [
            flush_result(clamp(function(*x, **options))).view(np.uint16) for x in (low, high)
        ]
        w.put_v32(w.first(ins.operands[0]), floating.pack(*results), w.active())

    return step


def _dwords(ins: Instruction, mode: int):
    operands = ins.operands[1:]
    low_half, high_half, low_sign, high_sign = selections(ins, len(operands))
    name = PAIRED_32[ins.mnemonic]
    flush = floats.flush if name and mode >> 4 & 3 == 0 else lambda x: x

    def dword(w: Waves, position: int, high: int, negate: int) -> np.ndarray:
        operand = operands[position]
        if operand.kind in ("int", "float"):
            raw = w.read(operand, 32)
        else:
            raw = (w.read(operand, 64) >> np.uint64(32 * high)).astype(np.uint32)
        return raw ^ np.uint32(0x80000000 * negate)

    def step(w: Waves) -> None:
        count = range(len(operands))
        if name:
            function = rounding.rounded(name, valu.VALU[name], mode)
            low = [flush(dword(w, k, low_half[k], low_sign[k]).view(np.float32)) for k in count]
            high = [flush(dword(w, k, high_half[k], high_sign[k]).view(np.float32)) for k in count]
            results = [flush(function(*x)).view(np.uint32) for x in (low, high)]
        else:
            # V_PK_MOV_B32: the low result is selected from S0, the high one from S1, both by
            # op_sel.
            results = dword(w, 0, low_half[0], 0).copy(), dword(w, 1, low_half[1], 0).copy()
        index = w.first(ins.operands[0])
        w.put_v32(index, results[0], w.active())
        w.put_v32(index + 1, results[1], w.active())

    return step


def _mix(ins: Instruction):
    """V_FMA_MIX: a source is f16 if op_sel_hi is set; `-` and `|…|` apply to it."""
    operands = ins.operands[1:]
    half = ins.modifiers.get("op_sel", [0, 0, 0])
    is_half = ins.modifiers.get("op_sel_hi", [0, 0, 0])

    def source(w: Waves, k: int) -> np.ndarray:
        raw = w.read(operands[k], 32)
        if not is_half[k]:
            return modified(operands[k], raw, 32).view(np.float32)
        raw = (raw >> np.uint32(16 * half[k])).astype(np.uint16)
        return modified(operands[k], raw, 16).view(np.float16).astype(np.float32)

    def step(w: Waves) -> None:
        # The f16 forms round to f32 and then to f16: LLVM selects them for fma and fptrunc.
        result = floats.fma(*(source(w, k) for k in range(3)))
        index = w.first(ins.operands[0])
        narrow = np.float32 if ins.mnemonic == "v_fma_mix_f32" else np.float16
        result = result.astype(narrow)
        if ins.modifiers.get("clamp"):
            result = np.where(result > 0, np.minimum(result, 1), 0).astype(narrow)
        raw = result.view(f"u{result.itemsize}").astype(np.uint32)
        old = w.v32(index)
        if ins.mnemonic == "v_fma_mixlo_f16":
            raw = (old & np.uint32(0xFFFF0000)) | raw
        elif ins.mnemonic == "v_fma_mixhi_f16":
            raw = (old & np.uint32(0xFFFF)) | raw << np.uint32(16)
        w.put_v32(index, raw, w.active())

    return step


# mnemonic: (bits of an element, signed)
DOTS = {
    "v_dot2_i32_i16": (16, True),
    "v_dot2_u32_u16": (16, False),
    "v_dot4_i32_i8": (8, True),
    "v_dot4_u32_u8": (8, False),
    "v_dot8_i32_i4": (4, True),
    "v_dot8_u32_u4": (4, False),
    "v_dot2c_i32_i16": (16, True),
    "v_dot4c_i32_i8": (8, True),
    "v_dot8c_i32_i4": (4, True),
}


def _dot(ins: Instruction):
    bits, signed = DOTS[ins.mnemonic]
    if {"op_sel", "op_sel_hi"} & set(ins.modifiers):
        raise NotImplementedError(ins.text)
    operands = ins.operands[1:3]
    addend = ins.operands[3] if len(ins.operands) > 3 else ins.operands[0]

    def element(x: np.ndarray, k: int) -> np.ndarray:
        value = (x >> np.uint32(bits * k) & np.uint32((1 << bits) - 1)).astype(np.int64)
        return (value ^ (1 << bits - 1)) - (1 << bits - 1) if signed else value

    def step(w: Waves) -> None:
        a, b = (w.read(o, 32) for o in operands)
        third = w.read(addend, 32)
        total = (third.view(np.int32) if signed else third).astype(np.int64)
        for k in range(32 // bits):
            total = total + element(a, k) * element(b, k)
        if ins.modifiers.get("clamp"):
            info = np.iinfo(np.int32 if signed else np.uint32)
            total = np.clip(total, info.min, info.max)
        w.put_v32(w.first(ins.operands[0]), (total & 0xFFFFFFFF).astype(np.uint32), w.active())

    return step


def _dot_floats(ins: Instruction, kind: str):
    """V_DOT2_F32_F16 and similar: in float64, rounded once. The hardware's rounding between the
    sums is unknown, so probes use operands for which nothing is rounded."""
    operands = ins.operands[1:3]
    addend = ins.operands[3] if len(ins.operands) > 3 else ins.operands[0]
    low_half, high_half, low_sign, high_sign = selections(ins, 3)

    def half(w: Waves, k: int, high: int, negate: int) -> np.ndarray:
        raw = w.read(operands[k], 32)
        if operands[k].kind == "float":  # 16 bits, in the lower half
            raw = w.read(operands[k], 16) if kind == "f16" else raw >> np.uint32(16)
        raw = raw.astype(np.uint32) >> np.uint32(16 * high) & np.uint32(0xFFFF)
        raw = raw ^ np.uint32(0x8000 * negate)
        if kind == "f16":
            return raw.astype(np.uint16).view(np.float16).astype(np.float64)
        return (raw << np.uint32(16)).view(np.float32).astype(np.float64)

    def step(w: Waves) -> None:
        total = modified(addend, w.read(addend, 32), 32).view(np.float32).astype(np.float64)
        for halves, signs in ((low_half, low_sign), (high_half, high_sign)):
            total = total + half(w, 0, halves[0], signs[0]) * half(w, 1, halves[1], signs[1])
        result = total.astype(np.float32)
        if ins.modifiers.get("clamp"):
            result = np.where(result > 0, np.minimum(result, 1), 0).astype(np.float32)
        w.put_v32(w.first(ins.operands[0]), result.view(np.uint32), w.active())

    return step
