"""Accesses of gfx11 and gfx12 whose address is the lane's number, and those of blocks of registers
(RDNA4 ISA manual, 11.1.2 and 11.5)."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from oracle.memory.access import Space, flat_address, scratch_address
from oracle.program.text import Instruction
from oracle.state.waves import M0, PRIVATE_APERTURE, Waves

u32, u64 = np.uint32, np.uint64
REGISTERS = 32


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    if match := re.fullmatch(r"global_(load|store)_addtid_b32", ins.mnemonic):
        return lambda w: _by_lane(w, ins, match[1] == "load")
    if match := re.fullmatch(r"(global|scratch)_(load|store)_block", ins.mnemonic):
        return lambda w: _block(w, ins, match[1], match[2] == "load")
    return None


def _by_lane(w: Waves, ins: Instruction, loads: bool) -> None:
    data, base = ins.operands
    address = np.full((w.n, 64), ins.modifiers.get("offset", 0) & (1 << 64) - 1, u64)
    address += u64(4) * np.arange(64, dtype=u64)
    if base.name != "off":
        address = address + w.read(base, 64)
    space, lanes = Space("global"), w.active()
    if loads:
        w.put_v32(data.index, space.load(w, address, lanes, 4)[0], lanes)
    else:
        space.store(w, address, lanes, 4, [w.v32(data.index)])


def _block(w: Waves, ins: Instruction, family: str, loads: bool) -> None:
    """Lane by lane a dword for each register whose bit of M0 is set; the place of one that is not
    set stays empty."""
    data, vector, base = ins.operands
    if not loads:
        data, vector = vector, data
    if family == "global":
        space, address = Space("global"), flat_address(w, ins, vector, base, 4)
    else:
        space, address = Space("flat"), scratch_address(w, ins, vector, base, 4)
    address = np.broadcast_to(address, (w.n, 64)).copy()
    mask = w.s32(M0)
    for number in range(REGISTERS):
        lanes = w.active_or_ones() & (mask >> u32(number) & u32(1) != 0)[:, None]
        if not lanes.any():
            continue
        place, register = address + u64(4 * number), data.index + number
        if family == "scratch":  # the sum of offsets has 32 bits
            place = (address + u64(4 * number)).astype(u32).astype(u64) | u64(PRIVATE_APERTURE)
        if loads:
            w.put_v32(register, space.load(w, place, lanes, 4)[0], lanes)
        else:
            space.store(w, place, lanes, 4, [w.v32(register)])
