"""WMMA of gfx11 and gfx12 in waves of 32: D = A × B + C, with matrices distributed over the lanes.

Sources: the RDNA3 and RDNA4 ISA manuals, "Wave Matrix Multiply Accumulate". Lane l holds row l % 16
of A and column l % 16 of B. On gfx11 it holds all of their K elements, and lanes 16 to 31 repeat
lanes 0 to 15; on gfx12 the upper lanes hold the upper half of K. Of C and D lane l has column l %
16; register i is row 2i + l / 16 on gfx11, and row i + 8 (l / 16) on gfx12. The manuals do not
specify the rounding of float products: f16 and bf16 are summed as in `rdna_sums`, and others are
exact in double and rounded once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracle.arithmetic import rdna_sums
from oracle.program.text import Instruction, Operand
from oracle.state.waves import Waves, constant

u32, f32, f64 = np.uint32, np.float32, np.float64
LANE = np.arange(32)
_NAME = re.compile(
    r"v_wmma_(?P<result>f32|f16|bf16|i32)_16x16x(?P<k>16|32)_(?P<a>\w+?)(_(?P<b>\w+))?"
)


@dataclass(frozen=True)
class Shape:
    """`packed`: gfx12, whose lanes share K and whose registers hold two 16-bit results. `measured`:
    elements and C are raw bits."""

    result: str
    k: int
    a: str
    b: str
    target: str

    @property
    def packed(self) -> bool:
        return self.target.startswith("gfx12")

    @property
    def measured(self) -> bool:
        return self.a in ("f16", "bf16")


def build(ins: Instruction, target: str) -> Callable[[Waves], None] | None:
    match = _NAME.fullmatch(ins.mnemonic)
    if not match:
        return None
    a = match["a"]
    shape = Shape(match["result"], int(match["k"]), a, match["b"] or a, target)
    return lambda w: _multiply(w, ins, shape)


def _multiply(w: Waves, ins: Instruction, shape: Shape) -> None:
    target, left, right, addend = ins.operands
    a = elements(w, ins, 0, left, shape.a, shape)
    b = elements(w, ins, 1, right, shape.b, shape)
    c = accumulator(w, ins, addend, shape)
    if shape.measured:
        factors = a[:, :, None], b[:, None]
        total = rdna_sums.matrix(*factors, c, shape.a, shape.target, shape.result)
    else:
        total = np.einsum("nik,njk->nij", a, b) + c
    rows, column = result_rows(shape), np.broadcast_to(LANE % 16, (8, 32))
    place(w, ins, target, total[:, rows, column], shape)


def result_rows(shape: Shape) -> np.ndarray:
    """int[8, 32]: the row of D of each element of a lane."""
    index = np.arange(8)[:, None]
    return index + 8 * (LANE // 16) if shape.packed else 2 * index + LANE // 16


def elements(w: Waves, ins: Instruction, position: int, operand: Operand, kind: str, shape: Shape):
    """Returns A or B by rows (B: columns): float64 or int64[n, 16, k], or raw bits."""
    bits = {"f16": 16, "bf16": 16, "iu8": 8, "iu4": 4, "fp8": 8, "bf8": 8}[kind]
    held = shape.k // 2 if shape.packed else shape.k
    raw = np.stack([w.read(_register(operand, i), 32)[:, :32] for i in range(held * bits // 32)], 2)
    fields = [raw >> u32(bits * j) & u32((1 << bits) - 1) for j in range(32 // bits)]
    lanes = np.stack(fields, 3).reshape(w.n, 32, held)
    values = decoded(lanes, kind, ins, position)
    if not shape.packed:
        return values[:, :16]
    return np.concatenate([values[:, :16], values[:, 16:]], axis=2)


def decoded(raw: np.ndarray, kind: str, ins: Instruction, position: int) -> np.ndarray:
    low = ins.modifiers.get("neg_lo", [0, 0, 0])[position]
    high = ins.modifiers.get("neg_hi", [0, 0, 0])[position]
    if kind in ("iu8", "iu4"):
        # neg_lo marks the source as signed.
        top = 1 << (7 if kind == "iu8" else 3)
        value = raw.astype(np.int64)
        return (value ^ top) - top if low else value
    if kind in ("fp8", "bf8"):
        return small_float(raw, 4 if kind == "fp8" else 5)
    # A register holds two elements: neg_lo applies to the lower, neg_hi to the upper.
    return raw ^ np.where(np.arange(raw.shape[2]) % 2, high << 15, low << 15).astype(u32)


def small_float(raw: np.ndarray, exponent_bits: int) -> np.ndarray:
    """Decodes OCP's E4M3 (no infinity, one NaN per sign) and E5M2, as on gfx12."""
    mantissa_bits = 7 - exponent_bits
    bias = (1 << exponent_bits - 1) - 1
    exponent = (raw >> u32(mantissa_bits) & u32((1 << exponent_bits) - 1)).astype(np.int64)
    mantissa = (raw & u32((1 << mantissa_bits) - 1)).astype(f64) / (1 << mantissa_bits)
    normal = exponent > 0
    value = np.ldexp(mantissa + normal, np.where(normal, exponent, 1) - bias)
    highest = exponent == (1 << exponent_bits) - 1
    if exponent_bits == 4:
        value = np.where(raw & u32(0x7F) == 0x7F, np.nan, value)
    else:
        value = np.where(highest, np.where(mantissa == 0, np.inf, np.nan), value)
    return np.where(raw & u32(0x80), -value, value)


def accumulator(w: Waves, ins: Instruction, operand: Operand, shape: Shape) -> np.ndarray:
    """Returns C as float64 or int64[n, 16, 16], or raw bits."""
    bits = 16 if shape.result.endswith("16") else 32
    if operand.kind in ("int", "float"):
        raw = constant(operand, 16 if shape.result == "f16" else 32).astype(u32)
        if shape.result == "bf16":  # the upper half of a float's f32
            raw = raw >> u32(16) if operand.kind == "float" else raw & u32(0xFFFF)
        raw = np.broadcast_to(raw[0, 0], (w.n, 8, 32))
        return _as_matrix(raw, ins, shape)
    halves = bits == 16
    if halves and shape.packed:
        whole = [w.read(_register(operand, i), 32)[:, :32] for i in range(4)]
        raw = np.stack([half for x in whole for half in (x & u32(0xFFFF), x >> u32(16))], 1)
    else:
        raw = np.stack([w.read(_register(operand, i), 32)[:, :32] for i in range(8)], 1)
        if halves:
            raw = raw >> u32(16 * _upper(ins)) & u32(0xFFFF)
    return _as_matrix(raw, ins, shape)


def _as_matrix(raw: np.ndarray, ins: Instruction, shape: Shape) -> np.ndarray:
    """Converts C's bits, [n, 8 elements, 32 lanes]."""
    sign = u32(1 << (15 if shape.result.endswith("16") else 31))
    if shape.result != "i32":
        # For C neg_hi is the absolute value, neg_lo the sign.
        if ins.modifiers.get("neg_hi", [0, 0, 0])[2]:
            raw = raw & ~sign
        if ins.modifiers.get("neg_lo", [0, 0, 0])[2]:
            raw = raw ^ sign
    value = raw
    if shape.result == "i32":
        value = raw.view(np.int32).astype(np.int64)
    elif not shape.measured:
        value = raw.view(f32).astype(f64)
    matrix = np.zeros((len(raw), 16, 16), value.dtype)
    matrix[:, result_rows(shape), np.broadcast_to(LANE % 16, (8, 32))] = value
    return matrix


def place(w: Waves, ins: Instruction, target: Operand, value: np.ndarray, shape: Shape) -> None:
    """`value`: [n, 8, 32], eight elements of D per lane."""
    if shape.result == "i32":
        if ins.modifiers.get("clamp"):
            value = np.clip(value, -(1 << 31), (1 << 31) - 1)
        raw = (value & 0xFFFFFFFF).astype(u32)
    elif shape.measured:
        raw = value.astype(u32)
    else:
        raw = value.astype(f32).view(u32)
    first = target.index
    if shape.result.endswith("16") and shape.packed:
        raw = raw[:, 0::2] | raw[:, 1::2] << u32(16)
    for index in range(raw.shape[1]):
        word = np.zeros((w.n, 64), u32)
        word[:, :32] = raw[:, index]
        if shape.result.endswith("16") and not shape.packed:
            shift = u32(16 * _upper(ins))
            word = w.v32(first + index) & ~(u32(0xFFFF) << shift) | word << shift
        w.put_v32(first + index, word, None)


def _upper(ins: Instruction) -> int:
    """gfx11: op_sel's third bit selects the half of the registers of C and D."""
    return [*ins.modifiers.get("op_sel", ()), 0, 0, 0][2]


def _register(operand: Operand, index: int) -> Operand:
    return Operand(operand.kind, operand.index + index)
