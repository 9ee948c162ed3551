"""DS instructions: loads, stores and atomics of the workgroup's local memory."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from oracle.memory import atomics
from oracle.memory.access import LOADS, Space, atomic_step, load_step, store_step
from oracle.program.text import Instruction, Operand
from oracle.state.waves import Waves

u32, u64 = np.uint32, np.uint64

DS_LOADS = {
    "u8": LOADS["ubyte"],
    "i8": LOADS["sbyte"],
    "u16": LOADS["ushort"],
    "i16": LOADS["sshort"],
    "u8_d16": LOADS["ubyte_d16"],
    "u8_d16_hi": LOADS["ubyte_d16_hi"],
    "i8_d16": LOADS["sbyte_d16"],
    "i8_d16_hi": LOADS["sbyte_d16_hi"],
    "u16_d16": LOADS["short_d16"],
    "u16_d16_hi": LOADS["short_d16_hi"],
    "b32": LOADS["dword"],
    "b64": LOADS["dwordx2"],
    "b96": LOADS["dwordx3"],
    "b128": LOADS["dwordx4"],
}
DS_STORES = {
    "b8": (1, 0),
    "b8_d16_hi": (1, 16),
    "b16": (2, 0),
    "b16_d16_hi": (2, 16),
    "b32": (4, 0),
    "b64": (8, 0),
    "b96": (12, 0),
    "b128": (16, 0),
}


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    family, _, rest = ins.mnemonic.partition("_")
    if family != "ds":
        return None
    space = Space("lds")
    operands, modifiers = list(ins.operands), ins.modifiers

    def address(w: Waves, vector: Operand, offset: int) -> np.ndarray:
        return (w.read(vector, 32) + u32(offset)).astype(u64)

    if match := re.fullmatch(r"(read|write)2(st64)?_b(32|64)", rest):
        return _ds_two(ins, space, address, match)
    offset = modifiers.get("offset", 0)
    if rest.startswith("read_") and rest[5:] in DS_LOADS:
        return load_step(ins, space, lambda w: address(w, operands[1], offset), *DS_LOADS[rest[5:]])
    if rest.startswith("write_") and rest[6:] in DS_STORES:
        kind = DS_STORES[rest[6:]]
        return store_step(ins, space, lambda w: address(w, operands[0], offset), operands[1], *kind)
    if rest == "nop":
        return lambda w: None
    name = rest.replace("_rtn", "")
    if name in atomics.DS:
        wants_old = "_rtn" in rest
        target = operands.pop(0) if wants_old else None
        vector, *data = operands
        return atomic_step(
            atomics.DS[name], space, lambda w: address(w, vector, offset), data, target
        )
    return None


def _ds_two(ins: Instruction, space: Space, address: Callable, match: re.Match):
    size = int(match[3]) // 8
    scale = size * (64 if match[2] else 1)
    offsets = [ins.modifiers.get(f"offset{k}", 0) * scale for k in (0, 1)]
    operands = ins.operands

    def read(w: Waves) -> None:
        lanes = w.active()
        both = [space.load(w, address(w, operands[1], o), lanes, size) for o in offsets]
        for k, value in enumerate([*both[0], *both[1]]):
            w.put_v32(w.first(operands[0]) + k, value, lanes)

    def write(w: Waves) -> None:
        for offset, data in zip(offsets, operands[1:], strict=True):
            values = [w.v32(w.first(data) + k) for k in range(size // 4)]
            space.store(w, address(w, operands[0], offset), w.active(), size, values)

    return read if match[1] == "read" else write
