"""MUBUF: addresses and bounds of buffer resources, and the loads, stores and atomics through them.

CDNA3 and CDNA4 ISA manuals, "Buffer Addressing", "Range Checking", "Swizzled Buffer Addressing" and
"Buffer Resource". The scalar offset is part of neither the bound nor the swizzle. gfx9's resource
has no element size: it is four bytes.

| a buffer is | where | is out of range where |
|---|---|---|
| private | ADD_TID, no idxen | never; its offset wraps at 2^32 |
| raw | no ADD_TID, no swizzle, no idxen | instruction's + vector's offset >= NUM_RECORDS |
| structured | no ADD_TID, a stride, idxen | index >= NUM_RECORDS |

The manual does not specify other combinations; they are not supported. gfx11 and gfx12: raw only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracle.memory import atomics, rdna_memory
from oracle.memory.access import LOADS, STORES, Space, atomic_step
from oracle.memory.scalar_memory import wide_resource
from oracle.program.text import Instruction, Operand
from oracle.state.waves import EXEC, LANES, Waves, pack_mask

u32, u64 = np.uint32, np.uint64
ELEMENT = 4


def build(ins: Instruction, target: str) -> Callable[[Waves], None] | None:
    family, _, rest = ins.mnemonic.partition("_")
    kind, _, what = rest.partition("_")
    if family != "buffer" or "lds" in ins.modifiers or len(ins.operands) != 4:
        return None
    data, *where = ins.operands
    buffer = Buffer(ins, *where, target)
    if kind == "load" and what in LOADS:
        return _load(buffer, data, *LOADS[what])
    if kind == "store" and what in STORES:
        return _store(buffer, data, *STORES[what])
    if kind == "atomic" and (atomic := atomics.GLOBAL.get(what) or rdna_memory.GLOBAL.get(what)):
        return _atomic(buffer, data, atomic)
    return None


@dataclass(frozen=True)
class Buffer:
    """The addresses of a buffer instruction's lanes: its operands after the data."""

    ins: Instruction
    vector: Operand
    resource: Operand
    scalar: Operand
    target: str

    def _parts(self, w: Waves) -> tuple[np.ndarray, np.ndarray]:
        """Returns the vector's index and offset, zero if absent: u64[n, 64]."""
        modifiers = self.ins.modifiers
        index, offset = np.zeros((2, w.n, LANES), u64)
        first = w.first(self.vector) if self.vector.name != "off" else 0
        if modifiers.get("idxen"):
            index = index + w.v32(first)
            first += 1
        if modifiers.get("offen"):
            offset = offset + w.v32(first)
        return index, offset

    def place(self, w: Waves, more: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns addresses u64[n, 64], and which are in range, of `size` bytes at `more` bytes
        after the first. NotImplementedError for waves whose resources are of different kinds."""
        words = [w.s32(self.resource.index + k).astype(u64)[:, None] for k in range(4)]
        if self.target == "gfx1250":
            return self._wide_place(w, words, more, size)
        base = words[0] | (words[1] & u64(0xFFFF)) << u64(32)
        stride = words[1] >> u64(16) & u64(0x3FFF)
        add_tid, swizzled = (self._flag(words, word, bit) for word, bit in ((3, 23), (1, 31)))
        indexed = bool(self.ins.modifiers.get("idxen"))
        if self.target.startswith("gfx1") and (add_tid or swizzled or indexed or stride.any()):
            raise NotImplementedError(f"{self.ins.text}: only raw buffers on {self.target}")
        index, offset = self._parts(w)
        offset = offset + u64(int(self.ins.modifiers.get("offset", 0)) + more)
        if add_tid and not indexed:
            # Never out of range, so a negative vector offset is valid: modulo 2^32.
            offset = offset & u64(0xFFFFFFFF)
            inside = np.ones((w.n, LANES), bool)
        elif not add_tid and not swizzled and not indexed:
            inside = offset + u64(size) <= words[2]
        elif not add_tid and indexed and stride.all():
            inside = index < words[2]
        else:
            raise NotImplementedError(f"{self.ins.text}: a bound that is not documented")
        if add_tid:
            index = index + np.arange(LANES, dtype=u64)
            # The DATA_FORMAT field holds the stride's upper bits there.
            stride = stride | (words[3] >> u64(15) & u64(15)) << u64(14)
        if swizzled:
            together = u64(8) << (words[3] >> u64(21) & u64(3))
            high, low = index // together, index % together
            block = (high * stride + offset // u64(ELEMENT) * u64(ELEMENT)) * together
            inner = block + low * u64(ELEMENT) + offset % u64(ELEMENT)
        else:
            inner = index * stride + offset
        return base + w.read(self.scalar, 32).astype(u64) + inner, inside

    def _wide_place(self, w: Waves, words: list[np.ndarray], more: int, size: int):
        base, records = wide_resource(words)
        if self.ins.modifiers.get("idxen") or (words[3] >> u64(6)).any():
            raise NotImplementedError(f"{self.ins.text}: only raw buffers on {self.target}")
        _, offset = self._parts(w)
        offset = offset + u64(int(self.ins.modifiers.get("offset", 0)) + more)
        return base + w.read(self.scalar, 32).astype(u64) + offset, offset + u64(size) <= records

    def _flag(self, words: list[np.ndarray], word: int, bit: int) -> bool:
        flags = words[word] >> u64(bit) & u64(1)
        if flags.any() != flags.all():
            raise NotImplementedError(f"{self.ins.text}: waves with resources of two kinds")
        return bool(flags.any())


def fetch(w: Waves, buffer: Buffer, size: int) -> list[np.ndarray]:
    """Returns the dwords of a load, checked one by one; 0 if a lane is out of range or inactive."""
    active, found = w.active_or_ones(), []
    for k in range(max(1, size // 4)):
        addresses, inside = buffer.place(w, 4 * k, min(size, 4))
        value = w.chunk.memory.load(addresses, inside & active, min(size, 4))[0]
        found.append(np.where(inside & active, value, u32(0)))
    return found


def extended(value: np.ndarray, size: int) -> np.ndarray:
    top = u32(1 << (8 * size - 1))
    return (value ^ top) - top


def _load(buffer: Buffer, target: Operand, size: int, extend: bool, half: int | None):
    def step(w: Waves) -> None:
        first, lanes = w.first(target), w.active()
        for k, value in enumerate(fetch(w, buffer, size)):
            if extend:
                value = extended(value, size)
            if half is not None:
                shift, old = u32(16 * half), w.v32(first)
                value = old & ~(u32(0xFFFF) << shift) | (value & u32(0xFFFF)) << shift
            w.put_v32(first + k, value, lanes)

    return step


def _store(buffer: Buffer, data: Operand, size: int, shift: int):
    def step(w: Waves) -> None:
        active = w.active_or_ones()
        for k in range(max(1, size // 4)):
            addresses, inside = buffer.place(w, 4 * k, min(size, 4))
            value = w.v32(w.first(data) + k) >> u32(shift)
            w.chunk.memory.store(addresses, inside & active, min(size, 4), [value])

    return step


def _atomic(buffer: Buffer, data: Operand, atomic: atomics.Atomic):
    """ "All or nothing": lanes out of range do nothing, and return 0. The old value goes to the
    data register."""
    size = int(atomic.kind[1:]) // 8
    wants_old = bool({"sc0", "glc"} & set(buffer.ins.modifiers))

    def step(w: Waves) -> None:
        addresses, inside = buffer.place(w, 0, size)
        active = w.active_or_ones().copy()
        target = data if wants_old else None
        update = atomic_step(atomic, Space("global"), lambda _: addresses, [data], target)
        _under(w, inside & active, update)
        if wants_old:
            for k in range(size // 4):
                w.put_v32(w.first(data) + k, np.zeros((1, 1), u32), active & ~inside)

    return step


def _under(w: Waves, lanes: np.ndarray, step: Callable[[Waves], None]) -> None:
    """Runs a step with fewer active lanes than in EXEC."""
    saved = w.s64(EXEC).copy()
    w.put_s64(EXEC, pack_mask(lanes))
    step(w)
    w.put_s64(EXEC, saved)
