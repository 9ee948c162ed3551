"""gfx12's transposed loads from memory in waves of 32 lanes, with EXEC all ones.

The RDNA4 ISA manual does not tell which lane gets which element; programs measured it on gfx1201:

    b128   element j of lane n is element n % 8 of what lane 8 (n / 8) + j loads
    b64    lanes load 8 bytes each; byte j of lane n is, of those 256, the one numbered
           n % 8 + 32 (n / 8 % 2) + 128 (n / 16) + 8 (j % 4) + 64 (j / 4)
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from oracle.memory.access import Space, flat_address
from oracle.program.text import Instruction
from oracle.state.waves import Waves

LANES = 32
NAME = re.compile(r"global_load_tr(?:(?:16)?_b(?P<wide>128)|(?:8)?_b64)")


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    match = NAME.fullmatch(ins.mnemonic)
    if not match:
        return None
    size = 16 if match["wide"] else 8
    target, vector, base = ins.operands

    def step(w: Waves) -> None:
        words = Space("global").load(w, flat_address(w, ins, vector, base, size), w.active(), size)
        loaded = np.stack([np.broadcast_to(word, (w.n, 64)) for word in words], axis=-1)
        elements = np.ascontiguousarray(loaded[:, :LANES]).view(np.uint16 if size == 16 else "u1")
        turned = np.zeros((w.n, 64, size // 4), np.uint32)
        turned[:, :LANES] = _turned(elements.reshape(w.n, LANES, 8)).view(np.uint32)
        for k in range(size // 4):
            w.put_v32(w.first(target) + k, turned[..., k], w.active())

    return step


def _turned(elements: np.ndarray) -> np.ndarray:
    """Elements [wave, lane, number] as loaded, as the lanes get them."""
    n, j = np.arange(LANES)[:, None], np.arange(8)
    if elements.dtype == np.uint16:
        return np.ascontiguousarray(elements[:, 8 * (n // 8) + j, n % 8])
    place = n % 8 + 32 * (n // 8 % 2) + 128 * (n // 16) + 8 * (j % 4) + 64 * (j // 4)
    return np.ascontiguousarray(elements.reshape(len(elements), -1)[:, place])
