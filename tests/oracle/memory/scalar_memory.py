"""SMEM: scalar loads, stores and atomics, by an address or through a buffer resource.

CDNA3 and CDNA4 ISA manuals, chapter "Scalar Memory Operations". EXEC is ignored: a wave executes
each operation once. Only the base, the stride and NUM_RECORDS of a resource matter; the stride only
affects the bound. A dword past the bound is not accessed, and loads as 0. The manual's pseudocode
has `m_size = (m_stride == 0) ? 1 : m_num_records` for the bound, apparently in records; in bytes
that is NUM_RECORDS, times the stride if there is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from oracle.memory import atomics
from oracle.program.text import Instruction, Operand
from oracle.state.waves import Waves

u32, u64 = np.uint32, np.uint64
_NAME = re.compile(r"s_(buffer_)?(load|store)_dword(?:x(\d+))?|s_(buffer_)?atomic_(\w+)")


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    match = _NAME.fullmatch(ins.mnemonic)
    if not match:
        return None
    if match[5]:
        atomic = atomics.GLOBAL.get(match[5])
        return atomic and (lambda w: _atomic(w, ins, atomic))
    function = _load if match[2] == "load" else _store
    return lambda w: function(w, ins, int(match[3] or 1))


def offset_of(w: Waves, ins: Instruction, size: int) -> np.ndarray:
    """Returns the offset of a register and of the instruction, in bytes. With gfx1250's
    scale_offset the register counts accesses of `size` bytes."""
    scale = u64(size if "scale_offset" in ins.modifiers else 1)
    total = np.full(w.n, ins.modifiers.get("offset", 0) & (1 << 64) - 1, u64)
    for operand in ins.operands[2:]:
        if operand.kind == "int":
            total = total + u64(int(operand.value) & (1 << 64) - 1)
        else:
            total = total + w.read_scalar(operand, 32).astype(u64) * scale
    return total


def _places(w: Waves, ins: Instruction, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns, for each dword, its address and whether it is in range: [waves, 1]."""
    base, offset = ins.operands[1], offset_of(w, ins, 4 * count)
    if not ins.mnemonic.startswith("s_buffer"):
        address = (w.read_scalar(base, 64) + offset) & ~u64(3)
        return [((address + u64(4 * k))[:, None], np.ones((w.n, 1), bool)) for k in range(count)]
    start, size = resource(w, base)
    places = []
    for k in range(count):
        at = (offset & ~u64(3)) + u64(4 * k)
        places.append(((start + at)[:, None], (at + u64(4) <= size)[:, None]))
    return places


def resource(w: Waves, base: Operand) -> tuple[np.ndarray, np.ndarray]:
    """Returns the address and the size in bytes of the resource in four registers: [waves]."""
    words = [w.s32(base.index + k).astype(u64) for k in range(4)]
    if w.chunk.launch.code.target == "gfx1250":
        start, records = wide_resource(words)
        return start & ~u64(3), records
    start = (words[0] | (words[1] & u64(0xFFFF)) << u64(32)) & ~u64(3)
    stride = words[1] >> u64(16) & u64(0x3FFF)
    return start, words[2] * np.maximum(stride, u64(1))


def wide_resource(words: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """gfx1250's: 57 bits of the address, 45 of NUM_RECORDS (LLVM: lowering of pointers to
    resources). Returns both."""
    start = words[0] | (words[1] & u64(0x1FFFFFF)) << u64(32)
    return start, words[1] >> u64(25) | words[2] << u64(7) | (words[3] & u64(63)) << u64(39)


def _load(w: Waves, ins: Instruction, count: int) -> None:
    # Loads everything before writing results: the base may be among the destinations.
    found = [
        np.where(inside, w.chunk.memory.load(address, inside, 4)[0], u32(0))
        for address, inside in _places(w, ins, count)
    ]
    for k, value in enumerate(found):
        w.put_s32(ins.operands[0].index + k, value[:, 0])


def _store(w: Waves, ins: Instruction, count: int) -> None:
    for k, (address, inside) in enumerate(_places(w, ins, count)):
        value = w.s32(ins.operands[0].index + k)[:, None]
        w.chunk.memory.store(address, inside, 4, [value])


def _data(w: Waves, operand: Operand, skip: int, registers: int) -> np.ndarray:
    first = operand.index + skip
    return (w.s64(first) if registers == 2 else w.s32(first)).copy()


def _atomic(w: Waves, ins: Instruction, atomic: atomics.Atomic) -> None:
    """Executes waves one after the other. GLC returns the old value into the data's registers;
    compare and swap has the new value first there, then the comparand."""
    registers = int(atomic.kind[1:]) // 32
    data = ins.operands[0]
    sources = [_data(w, data, registers * k, registers) for k in range(atomic.sources)]
    places = _places(w, ins, registers)
    address, inside = places[0][0], places[-1][1]
    old = np.zeros((w.n, 1), u64 if registers == 2 else u32)
    for region, offsets, here in w.chunk.memory.split(address, inside, 4 * registers, True):
        rows = here[:, 0]
        found = atomics.apply(
            atomic, region.data, offsets[here], [source[rows] for source in sources], True
        )
        assert found is not None
        old[here] = found.view(old.dtype)
    if "glc" in ins.modifiers:
        (w.put_s64 if registers == 2 else w.put_s32)(data.index, old[:, 0])
