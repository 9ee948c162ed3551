"""gfx950's transposed reads of LDS: DS_READ_B64_TR_B16, _B8, _B4 and DS_READ_B96_TR_B6.

CDNA4 ISA manual, "MFMA Transpose Load from LDS": reads a matrix stored by rows in LDS by columns.
The manual gives no formula; kernels that run on the hardware do (HipKittens' loads by
ds_read_b64_tr_b8: lane p of sixteen points at row p / 2 and column 8 * (p % 2), and gets column p).
So the consecutive data of 16 lanes are rows of sixteen elements, and a lane's result is its own
column. EXEC has to be all ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from oracle.memory.access import Space
from oracle.program.text import Instruction
from oracle.state.waves import LANES, Waves

u32, u64, i64 = np.uint32, np.uint64, np.int64
GROUP = 16


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    match = re.fullmatch(r"ds_read_b(64|96)_tr_b(4|6|8|16)", ins.mnemonic)
    if not match:
        return None
    size, bits = int(match[1]), int(match[2])
    target, vector = ins.operands
    offset = u64(int(ins.modifiers.get("offset", 0)))

    def step(w: Waves) -> None:
        address = w.read(vector, 32).astype(u64) + offset
        words = Space("lds").load(w, address, w.active(), size // 8)
        columns = by_column(np.stack(words), size // bits, bits)
        for k, value in enumerate(columns):
            w.put_v32(w.first(target) + k, value, w.active())

    return step


def by_column(words: np.ndarray, count: int, bits: int) -> np.ndarray:
    """`words`: [register, wave, lane], with `count` elements of `bits` bits per lane."""
    lanes = bit_rows(words).reshape(*words.shape[1:], count, bits)
    groups = lanes.reshape(-1, LANES // GROUP, count, GROUP, bits)  # rows of sixteen elements
    turned = groups.transpose(0, 1, 3, 2, 4)
    return from_bit_rows(turned.reshape(*words.shape[1:], count * bits))


def bit_rows(words: np.ndarray) -> np.ndarray:
    """Converts [register, wave, lane] to each lane's bits, lowest first: bool[wave, lane, 32 *
    registers]."""
    shifts = np.arange(32, dtype=u32)
    separate = (words[..., None] >> shifts & u32(1)).astype(bool)
    return np.moveaxis(separate, 0, -2).reshape(*words.shape[1:], -1)


def from_bit_rows(rows: np.ndarray) -> np.ndarray:
    """The inverse of `bit_rows`."""
    words = rows.reshape(*rows.shape[:-1], -1, 32).astype(u32) << np.arange(32, dtype=u32)
    return np.moveaxis(words.sum(axis=-1, dtype=u32), -1, 0)
