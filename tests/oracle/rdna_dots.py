"""Integer dot products whose sources say their own signedness: V_DOT4_I32_IU8, V_DOT8_I32_IU4."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracle.text import Instruction
from oracle.waves import Waves

BITS = {"v_dot4_i32_iu8": 8, "v_dot8_i32_iu4": 4}


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    """neg_lo's bit of a source says that its elements are signed; the addend always is."""
    if ins.mnemonic not in BITS:
        return None
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
