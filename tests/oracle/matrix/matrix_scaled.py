"""gfx950's V_MFMA_F32_*_F8F6F4 and V_MFMA_SCALE_F32_*_F8F6F4: A and B have their own formats, and a
scale for each 32 elements along k.

CDNA4 ISA manual, chapter 7. CBSZ and BLGP select the formats of A and B. A lane has 32 elements of
a row of A (a column of B). With 6 and 4 bits they are consecutive k; with 8 bits they are two runs
of sixteen, half of the instruction's k apart ("8-bit and Smaller Matrix Operations and Layouts":
the tables depend on the operand's own format, and FlyDSL's kernels with fp8 A and fp4 B load it
so). Scales are powers of two with a bias of 127; 0xFF is a NaN. Lane l has that of row l % M and of
the k from 32 * (l / M) on, in the byte selected by {OP_SEL_HI, OP_SEL}; LLVM allows no constant
scale. Sums are exact and rounded once, as in matrix.py: probes must not round.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracle.arithmetic.minifloat import OCP
from oracle.memory.transposed import bit_rows
from oracle.program.text import Instruction, Operand
from oracle.state.waves import LANES, Waves

u32, f32, f64 = np.uint32, np.float32, np.float64
LANE = np.arange(LANES)
FORMATS = ("fp8", "bf8", "fp6", "bf6", "fp4")
HELD = 32  # elements per lane, and per scale
_NAME = re.compile(r"v_mfma_(scale_)?f32_(16x16x128|32x32x64)_f8f6f4")


@dataclass(frozen=True)
class Side:
    """A, or B with columns in place of rows."""

    operand: Operand
    form: str
    rows: int
    depth: int
    scale: Operand | None
    byte: int

    def positions(self) -> np.ndarray:
        """Returns the k of each of a lane's elements: [element, lane]."""
        group, element = LANE // self.rows, np.arange(HELD)[:, None]
        if FORMATS.index(self.form) < 2:
            half = HELD // 2
            return group * half + element % half + element // half * (self.depth // 2)
        return group * HELD + element

    def read(self, w: Waves) -> np.ndarray:
        """Returns the scaled elements: float64[wave, row, k]."""
        small, first = OCP[self.form], w.first(self.operand)
        count = HELD * small.bits // 32
        bits = bit_rows(np.stack([w.v32(first + k) for k in range(count)]))
        weights = 1 << np.arange(small.bits)
        codes = (bits.reshape(w.n, LANES, HELD, small.bits) * weights).sum(axis=-1)
        values = small.decode(codes)
        result = np.zeros((w.n, self.rows, self.depth))
        places = self.positions()
        for element in range(HELD):
            result[:, LANE % self.rows, places[element]] = values[:, :, element]
        return result * np.repeat(self.scales(w), HELD, axis=2)

    def scales(self, w: Waves) -> np.ndarray:
        """Returns float64[wave, row, block of 32 k]."""
        blocks = self.depth // HELD
        if self.scale is None:
            return np.ones((w.n, self.rows, blocks))
        raw = np.broadcast_to(w.read(self.scale, 32), (w.n, LANES))
        exponents = (raw >> u32(8 * self.byte) & u32(255)).astype(np.int32)
        powers = np.where(exponents == 255, np.nan, np.ldexp(1.0, exponents - 127))
        result = np.zeros((w.n, self.rows, blocks))
        result[:, LANE % self.rows, LANE // self.rows] = powers
        return result


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    match = _NAME.fullmatch(ins.mnemonic)
    if not match:
        return None
    rows, _, depth = (int(part) for part in match[2].split("x"))
    target, a, b, addend, *scales = ins.operands
    low, high = (ins.modifiers.get(name, (0, 0)) for name in ("op_sel", "op_sel_hi"))
    sides = []
    for number, (operand, field) in enumerate(((a, "cbsz"), (b, "blgp"))):
        form = FORMATS[int(ins.modifiers.get(field, 0))]
        scale = scales[number] if scales else None
        sides.append(Side(operand, form, rows, depth, scale, low[number] | high[number] << 1))

    def step(w: Waves) -> None:
        left, right = (side.read(w) for side in sides)
        product = np.einsum("wik,wjk->wij", left, right)
        for r in range(rows * rows // LANES):
            row = r // 4 * 8 + LANE // 32 * 4 if rows == 32 else LANE // 16 * 4
            old = _old(w, addend, r)
            value = (product[:, row + r % 4, LANE % rows] + old).astype(f32)
            w.put_v32(w.first(target) + r, value.view(u32), None)

    return step


def _old(w: Waves, operand: Operand, r: int) -> np.ndarray:
    if operand.kind in "va":
        return w.v32(w.first(operand) + r).view(f32).astype(f64)
    return w.read(operand, 32).view(f32).astype(f64)
