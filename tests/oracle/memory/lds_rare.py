"""LDS operations that need more than an address of each lane (CDNA4 ISA manual, "LDS
Instructions").

DS_APPEND and DS_CONSUME: the manual has "M0.base + instr_offset" for GDS, and "instr_offset" alone
for LDS; LLVM puts the address in M0 for both (AMDGPUISelDAGToDAG, SelectDSAppendConsume), as RDNA's
manuals document it, and this follows them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from oracle.memory.access import Space
from oracle.program.text import Instruction
from oracle.state.waves import LANES, M0, Waves

u32, u64 = np.uint32, np.uint64
LDS = Space("lds")


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    name = ins.mnemonic
    if name in ("ds_append", "ds_consume"):
        return lambda w: _count(w, ins)
    if name in ("ds_read_addtid_b32", "ds_write_addtid_b32"):
        return lambda w: _by_lane(w, ins)
    if match := re.fullmatch(r"ds_wrxchg2(st64)?_rtn_b(32|64)", name):
        size = int(match[2]) // 8
        return lambda w: _exchange_two(w, ins, size, size * (64 if match[1] else 1))
    return {"ds_condxchg32_rtn_b64": _exchange_marked, "ds_wrap_rtn_b32": _wrap}.get(
        name, lambda *_: None
    )(ins)


def _offset(ins: Instruction, name: str = "offset") -> int:
    return int(ins.modifiers.get(name, 0))


def _base(w: Waves) -> np.ndarray:
    """Returns the content of M0: [n, 1]."""
    return w.s32(M0).astype(u64)[:, None]


def _count(w: Waves, ins: Instruction) -> None:
    """Adds or subtracts the number of active lanes to or from one dword; all get the old value."""
    active = w.active_or_ones()
    some = active.any(axis=1, keepdims=True)
    address = _base(w) + u64(_offset(ins))
    old = LDS.load(w, address, some, 4)[0]
    lanes = active.sum(axis=1, keepdims=True).astype(u32)
    LDS.store(w, address, some, 4, [old + lanes if ins.mnemonic == "ds_append" else old - lanes])
    w.put_v32(w.first(ins.operands[0]), old, w.active())


def _by_lane(w: Waves, ins: Instruction) -> None:
    base = (_base(w) & u64(0xFFFF)) + u64(_offset(ins))
    address = base + np.arange(LANES, dtype=u64) * u64(4)
    register = w.first(ins.operands[0])
    if "write" in ins.mnemonic:
        LDS.store(w, address, w.active(), 4, [w.v32(register)])
    else:
        w.put_v32(register, LDS.load(w, address, w.active(), 4)[0], w.active())


def _exchange_two(w: Waves, ins: Instruction, size: int, scale: int) -> None:
    target, vector, *data = ins.operands
    places = [
        w.read(vector, 32).astype(u64) + u64(scale * _offset(ins, f"offset{k}")) for k in (0, 1)
    ]
    found = [value for place in places for value in LDS.load(w, place, w.active(), size)]
    for place, operand in zip(places, data, strict=True):
        values = [w.v32(w.first(operand) + k).copy() for k in range(size // 4)]
        LDS.store(w, place, w.active(), size, values)
    for k, value in enumerate(found):
        w.put_v32(w.first(target) + k, value, w.active())


def _exchange_marked(ins: Instruction) -> Callable[[Waves], None]:
    """Of two dwords, writes those whose new value has its highest bit set, without that bit."""
    target, vector, data = ins.operands

    def step(w: Waves) -> None:
        address = w.read(vector, 32).astype(u64) + u64(_offset(ins)) & u64(0xFFF8)
        values = [w.v32(w.first(data) + k).copy() for k in (0, 1)]
        found = LDS.load(w, address, w.active(), 8)
        for k, value in enumerate(values):
            lanes = w.active_or_ones() & (value >> u32(31) != 0)
            LDS.store(w, address + u64(4 * k), lanes, 4, [value & u32(0x7FFFFFFF)])
        for k, value in enumerate(found):
            w.put_v32(w.first(target) + k, value, w.active())

    return step


def _wrap(ins: Instruction) -> Callable[[Waves], None]:
    """old >= first ? old - first : old + second; each lane has its own address."""
    target, vector, first, second = ins.operands

    def step(w: Waves) -> None:
        address = w.read(vector, 32).astype(u64) + u64(_offset(ins))
        old = LDS.load(w, address, w.active(), 4)[0]
        a, b = w.read(first, 32), w.read(second, 32)
        LDS.store(w, address, w.active(), 4, [np.where(old >= a, old - a, old + b)])
        w.put_v32(w.first(target), old, w.active())

    return step
