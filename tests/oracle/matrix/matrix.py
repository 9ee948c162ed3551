"""V_MFMA and V_SMFMAC: the register and lane of each element. matrix_sums.py models float sums.

The layouts are those that AMD's matrix instruction calculator prints. EXEC is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracle.arithmetic.matrix_sums import sums
from oracle.arithmetic.minifloat import formats
from oracle.program.text import Instruction, Operand
from oracle.state.waves import Waves

u16, u32, u64, i64 = np.uint16, np.uint32, np.uint64, np.int64
LANE = np.arange(64)
_NAME = re.compile(
    r"v_(?P<sparse>s?)mfmac?_(?P<out>f32|i32|f64)_(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)_?(?:\d+b_)?"
    r"(?P<a>xf32|f64|f32|f16|bf16|i8|fp8|bf8)(?:_1k)?(?:_(?P<b>fp8|bf8))?$"
)
BITS = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8}


@dataclass(frozen=True)
class Shape:
    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    out: str


def build(ins: Instruction, target: str) -> Callable[[Waves], None] | None:
    match = _NAME.match(ins.mnemonic)
    if not match:
        return None
    m, n, k = (int(match[name]) for name in "mnk")
    held = ins.operands[1].count * 32 // BITS[match["a"]]
    if match["sparse"]:
        held *= 2  # two of every four
    shape = Shape(m, n, k, 64 * held // (m * k), match["a"], match["b"] or match["a"], match["out"])
    return (_sparse if match["sparse"] else _dense)(ins, shape, target)


def elements(w: Waves, operand: Operand, kind: str, target: str) -> np.ndarray:
    """Returns float64 or int64 [element, wave, lane] from a vector operand's registers."""
    first, bits = w.first(operand), BITS[kind]
    registers = [w.v32(first + k) for k in range(operand.count)]
    if bits == 64:
        pairs = zip(registers[::2], registers[1::2], strict=True)
        return np.stack([(a | b.astype(u64) << u64(32)).view(np.float64) for a, b in pairs])
    parts = [r >> u32(s) & u32((1 << bits) - 1) for r in registers for s in range(0, 32, bits)]
    raw = np.stack(parts)
    if kind == "f32":
        return raw.view(np.float32).astype(np.float64)
    if kind == "xf32":  # ten fraction bits
        return (raw & ~u32(0x1FFF)).view(np.float32).astype(np.float64)
    if kind == "f16":
        return raw.astype(u16).view(np.float16).astype(np.float64)
    if kind == "bf16":
        return (raw << u32(16)).view(np.float32).astype(np.float64)
    if kind == "i8":
        return (raw.astype(i64) ^ 0x80) - 0x80
    return formats(target)[kind].decode(raw)


def factor(values: np.ndarray, rows: int, shape: Shape) -> np.ndarray:
    """Returns [wave, block, row, k] of A, or of B with columns in place of rows. A lane holds
    consecutive k of one row; lanes iterate over the rows, then the blocks, then k."""
    held, waves, _ = values.shape
    result = np.zeros((waves, shape.blocks, rows, shape.k), values.dtype)
    group = LANE // rows
    if shape.a == "f64":
        block, start = group % shape.blocks, group // shape.blocks * held
    else:
        per_block = shape.k // held
        block, start = group // per_block, group % per_block * held
    for j in range(held):
        result[:, block, LANE % rows, start + j] = values[j]
    return result


def places(shape: Shape, count: int):
    """Returns, for each element of C and D, the lanes' blocks, rows and columns."""
    for r in range(count):
        if shape.out == "f64":
            if shape.m == 4:
                yield LANE // 4 % 4, LANE // 16, LANE % 4
            else:
                yield 0 * LANE, LANE // 16 + 4 * r, LANE % 16
        elif shape.m == 32:
            yield 0 * LANE + r // 16, 8 * (r % 16 // 4) + 4 * (LANE // 32) + r % 4, LANE % 32
        elif shape.m == 16:
            yield 0 * LANE + r // 4, 4 * (LANE // 16) + r % 4, LANE % 16
        else:
            yield LANE // 4, 0 * LANE + r, LANE % 4


def _addend(w: Waves, operand: Operand, shape: Shape, count: int, target: str) -> np.ndarray:
    if operand.kind in "va":
        kind = shape.out if shape.out != "i32" else "f32"
        if shape.out == "i32":
            first = w.first(operand)
            return np.stack([w.v32(first + k).view(np.int32).astype(i64) for k in range(count)])
        return elements(w, operand, kind, target)
    width = 64 if shape.out == "f64" else 32
    dtype = {"f64": np.float64, "f32": np.float32, "i32": np.int32}[shape.out]
    value = w.read(operand, width).view(dtype).astype(i64 if shape.out == "i32" else np.float64)
    return np.broadcast_to(value, (count, w.n, 64))


def _store(w: Waves, operand: Operand, shape: Shape, values: list[np.ndarray]) -> None:
    first = w.first(operand)
    for r, value in enumerate(values):
        if shape.out == "f64":
            raw = np.ascontiguousarray(value).view(u64)
            w.put_v32(first + 2 * r, raw.astype(u32), None)
            w.put_v32(first + 2 * r + 1, (raw >> u64(32)).astype(u32), None)
        elif shape.out == "i32":
            w.put_v32(first + r, (value & 0xFFFFFFFF).astype(u32), None)
        else:
            w.put_v32(first + r, value.astype(np.float32).view(u32), None)


def _finish(w: Waves, ins: Instruction, shape: Shape, target: str, a, b, old: np.ndarray) -> None:
    found: list[np.ndarray] = []
    if shape.out == "i32":
        product = np.einsum("wbik,wbjk->wbij", a, b)
        for r, (block, row, column) in enumerate(places(shape, len(old))):
            found.append(old[r] + product[:, block, row, column])
    else:
        kinds = (shape.a, shape.b)
        for r, (block, row, column) in enumerate(places(shape, len(old))):
            left, right = a[:, block, row], b[:, block, column]
            found.append(sums(left, right, old[r], kinds, target, ins.mnemonic))
    _store(w, ins.operands[0], shape, found)


def _dense(ins: Instruction, shape: Shape, target: str) -> Callable[[Waves], None]:
    target_, a_operand, b_operand, c_operand = ins.operands
    count = target_.count // (2 if shape.out == "f64" else 1)
    size, chosen = int(ins.modifiers.get("cbsz", 0)), int(ins.modifiers.get("abid", 0))
    group = int(ins.modifiers.get("blgp", 0))
    signs = ins.modifiers.get("neg", [0, 0, 0])

    def step(w: Waves) -> None:
        a = elements(w, a_operand, shape.a, target) * (-1 if signs[0] else 1)
        b = elements(w, b_operand, shape.b, target)[:, :, _group_lanes(group)]
        b = b * (-1 if signs[1] else 1)
        left, right = factor(a, shape.m, shape), factor(b, shape.n, shape)
        blocks = np.arange(shape.blocks)
        left = left[:, (blocks >> size << size) + (chosen if size else 0) if size else blocks]
        old = _addend(w, c_operand, shape, count, target) * (-1 if signs[2] else 1)
        _finish(w, ins, shape, target, left, right, old)

    return step


def _group_lanes(group: int) -> np.ndarray:
    """BLGP: returns the lane of B that each lane reads."""
    if group == 1:
        return LANE % 32
    if group == 2:
        return 32 + LANE % 32
    if group == 3:
        return (LANE + 16) % 64
    return 16 * (group - 4) + LANE % 16 if group >= 4 else LANE


def _sparse(ins: Instruction, shape: Shape, target: str) -> Callable[[Waves], None]:
    """A has two of every four k; the third operand selects which: two bits each. A lane needs 8, 16
    or all 32 of its bits: ABID selects them if CBSZ is 0."""
    target_, a_operand, b_operand, index_operand = ins.operands
    needed = 2 * a_operand.count * 32 // BITS[shape.a]
    first = needed * int(ins.modifiers.get("abid", 0)) if needed < 32 else 0
    if ins.modifiers.get("cbsz"):
        first = 0

    def step(w: Waves) -> None:
        packed = elements(w, a_operand, shape.a, target)
        index = w.v32(w.first(index_operand)) >> u32(first)
        held = 2 * len(packed)
        dense = np.zeros((held, *packed.shape[1:]), packed.dtype)
        wave, lane = np.indices(packed.shape[1:])
        for j, value in enumerate(packed):
            place = (index >> u32(2 * j) & u32(3)).astype(i64)
            dense[4 * (j // 2) + place, wave, lane] += value
        left = factor(dense, shape.m, shape)
        right = factor(elements(w, b_operand, shape.b, target), shape.n, shape)
        old = _addend(w, target_, shape, target_.count, target)
        _finish(w, ins, shape, target, left, right, old)

    return step
