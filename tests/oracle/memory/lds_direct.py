"""Loads straight to LDS: BUFFER_LOAD … lds, GLOBAL_LOAD_LDS and SCRATCH_LOAD_LDS.

CDNA4 ISA manual, "Memory Buffer Load to LDS" and the chapter on flat memory, "Addressing":

    buffer:          LDS address = M0[17:0]     + instruction's offset + 4 (or 16) * lane
    global, scratch: LDS address = M0[17:2] * 4 + instruction's offset + 4 (or 16) * lane

A lane's place has 16 bytes if three or four dwords are loaded, otherwise 4. Before gfx950 M0 has 16
bits of offset. Data narrower than a dword is extended to one: LLVM's instruction selection models
each of these loads with an LDS store of a dword (SIISelLowering, LOAD_LDS). A lane of a buffer that
is out of range loads 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from oracle.memory import access, buffers
from oracle.memory.access import LOADS, Space
from oracle.program.text import Instruction
from oracle.state.waves import LANES, M0, Waves

u32, u64 = np.uint32, np.uint64


def build(ins: Instruction, target: str) -> Callable[[Waves], None] | None:
    family, _, rest = ins.mnemonic.partition("_")
    if family == "buffer" and "lds" in ins.modifiers and rest.removeprefix("load_") in LOADS:
        buffer = buffers.Buffer(ins, *ins.operands, target)
        size, extend, _ = LOADS[rest.removeprefix("load_")]
        return _step(ins, target, size, extend, lambda w: buffers.fetch(w, buffer, size), 0)
    if match := re.fullmatch(r"(global|scratch)_load_lds_(\w+)", ins.mnemonic):
        size, extend, _ = LOADS[match[2]]
        vector, base = ins.operands
        if match[1] == "global":
            space, address_of = Space("global"), access.flat_address
        else:
            space, address_of = Space("flat"), access.scratch_address

        def fetch(w: Waves) -> list[np.ndarray]:
            return space.load(w, address_of(w, ins, vector, base, size), w.active(), size)

        return _step(ins, target, size, extend, fetch, 3)
    return None


def _step(ins: Instruction, target: str, size: int, extend: bool, fetch: Callable, ignored: int):
    """`ignored`: the number of bits of M0 below its offset."""
    place = 16 if size > 4 else 4
    bits = (0x3FFFF if target == "gfx950" else 0xFFFF) & ~ignored
    offset = u64(int(ins.modifiers.get("offset", 0)) & (1 << 64) - 1)

    def step(w: Waves) -> None:
        values = fetch(w)
        if extend:
            values = [buffers.extended(values[0], size)]
        start = (w.s32(M0) & u32(bits)).astype(u64)[:, None] + offset
        addresses = start + np.arange(LANES, dtype=u64) * u64(place)
        Space("lds").store(w, addresses, w.active(), max(4, size), values)

    return step
