"""Memory instructions: addresses, and what moves between registers and memory.

SMEM, FLAT, GLOBAL, SCRATCH and MUBUF (raw, and gfx90a's scratch); DS is in lds.py.
`build(instruction)` gives a function of Waves, whose `chunk` (machine.Chunk) holds the memory, LDS
and scratch.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracle import atomics
from oracle.memory import gather, scatter
from oracle.text import Instruction, Operand
from oracle.waves import EXEC, PRIVATE_APERTURE, SHARED_APERTURE, Waves, pack_mask

u32, u64 = np.uint32, np.uint64
OFF = Operand("name", name="off")

# Name in memory instructions: bytes, sign-extended, half written (None: whole register)
LOADS = {
    "ubyte": (1, False, None),
    "sbyte": (1, True, None),
    "ushort": (2, False, None),
    "sshort": (2, True, None),
    "ubyte_d16": (1, False, 0),
    "ubyte_d16_hi": (1, False, 1),
    "sbyte_d16": (1, True, 0),
    "sbyte_d16_hi": (1, True, 1),
    "short_d16": (2, False, 0),
    "short_d16_hi": (2, False, 1),
    "dword": (4, False, None),
    "dwordx2": (8, False, None),
    "dwordx3": (12, False, None),
    "dwordx4": (16, False, None),
}
# bytes, and the shift of the half that is stored
STORES = {
    "byte": (1, 0),
    "byte_d16_hi": (1, 16),
    "short": (2, 0),
    "short_d16_hi": (2, 16),
    "dword": (4, 0),
    "dwordx2": (8, 0),
    "dwordx3": (12, 0),
    "dwordx4": (16, 0),
}


@dataclass(frozen=True)
class Space:
    """Where an access goes, "global", "lds" or "flat": its load, its store, an atomic's pieces."""

    kind: str

    def pieces(self, w: Waves, addresses: np.ndarray, lanes, size: int, write: bool):
        """(region bytes, offsets, lanes) of an access to this space."""
        chunk = w.chunk
        if self.kind == "global":
            for region, offsets, here in chunk.memory.split(addresses, lanes, size, write):
                yield region.data, offsets, here
        elif self.kind == "lds":
            yield chunk.lds, chunk.lds_offsets(w, addresses, lanes, size), lanes
        elif self.kind == "flat":
            yield from self._flat(w, addresses, lanes, size, write)
        else:
            raise ValueError(self.kind)

    def _flat(self, w, addresses, lanes, size, write):
        aperture = addresses & ~u64(0xFFFFFFFF)
        for kind, here in (
            ("lds", aperture == u64(SHARED_APERTURE)),
            ("scratch", aperture == u64(PRIVATE_APERTURE)),
            ("global", (aperture != u64(SHARED_APERTURE)) & (aperture != u64(PRIVATE_APERTURE))),
        ):
            if not here.any():
                continue
            here = None if here.all() and lanes is None else here if lanes is None else here & lanes
            if here is not None and not here.any():
                continue
            if kind == "scratch":
                offsets = w.chunk.scratch_offsets(w, addresses.astype(u32))
                yield w.chunk.scratch, offsets, here
            else:
                inner = addresses if kind == "global" else addresses.astype(u32).astype(u64)
                yield from Space(kind).pieces(w, inner, here, size, write)

    def load(self, w: Waves, addresses, lanes, size: int) -> list[np.ndarray]:
        total = None
        for data, offsets, here in self.pieces(w, addresses, lanes, size, False):
            values = self._gather(w, data, offsets, here, size)
            if total is None:
                total = values
            else:
                for old, new in zip(total, values, strict=True):
                    np.copyto(old, new, where=here)
        if total is None:
            total = [np.zeros(addresses.shape, u32) for _ in range(max(1, size // 4))]
        return total

    def _gather(self, w: Waves, data, offsets, here, size):
        if data is not w.chunk.scratch or size <= 4:
            return gather(data, offsets, here, size)
        # Scratch is interleaved by dword: the next one of a lane is 256 bytes on.
        return [gather(data, offsets + 256 * k, here, 4)[0] for k in range(size // 4)]

    def store(self, w: Waves, addresses, lanes, size: int, values) -> None:
        for data, offsets, here in self.pieces(w, addresses, lanes, size, True):
            if data is not w.chunk.scratch or size <= 4:
                scatter(data, offsets, here, size, values)
                continue
            for k, value in enumerate(values):
                scatter(data, offsets + 256 * k, here, 4, [value])


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    name = ins.mnemonic
    family, _, rest = name.partition("_")
    if match := re.fullmatch(r"s_load_dword(?:x(\d+))?|s_buffer_load_dword(?:x(\d+))?", name):
        if name.startswith("s_buffer"):
            return None
        return lambda w: _scalar_load(w, ins, int(match[1] or 1))
    if family in ("global", "flat", "scratch"):
        return _flat_family(ins, family, rest)
    if family == "buffer":
        return _buffer(ins, rest)
    return None


def _scalar_load(w: Waves, ins: Instruction, count: int) -> None:
    target, base, *rest = ins.operands
    address = w.read_scalar(base, 64).copy()
    for operand in rest:
        address = address + w.read_scalar(operand, 32).astype(u64)
    address = address + u64(ins.modifiers.get("offset", 0) & (1 << 64) - 1)
    address = np.broadcast_to(address, w.n) & ~u64(3)
    values = (
        w.chunk.memory.load(address[:, None], None, 4 * count)
        if count <= 4
        else [
            w.chunk.memory.load((address + u64(4 * k))[:, None], None, 4)[0] for k in range(count)
        ]
    )
    for k, value in enumerate(values):
        w.put_s32(target.index + k, value[:, 0])


# FLAT, GLOBAL, SCRATCH


def flat_address(w: Waves, ins: Instruction, vector: Operand, base: Operand) -> np.ndarray:
    offset = u64(ins.modifiers.get("offset", 0) & (1 << 64) - 1)
    if base.name == "off":
        return w.read(vector, 64) + offset
    return w.read(base, 64) + w.read(vector, 32).astype(u64) + offset


def _scratch_address(w: Waves, ins: Instruction, vector: Operand, base: Operand) -> np.ndarray:
    address = np.full((w.n, 64), ins.modifiers.get("offset", 0) & 0xFFFFFFFF, u32)
    for operand in (vector, base):
        if operand.name != "off":
            address = address + w.read(operand, 32)
    return address.astype(u64) | u64(PRIVATE_APERTURE)


def _flat_family(ins: Instruction, family: str, rest: str):
    space = Space("global" if family == "global" else "flat")
    address_of = _scratch_address if family == "scratch" else flat_address
    operands = list(ins.operands)
    base = operands.pop() if family != "flat" else OFF
    if rest.startswith("load_lds"):
        return None
    if rest.startswith("load_"):
        kind = LOADS.get(rest[5:])
        return kind and load_step(
            ins, space, lambda w: address_of(w, ins, operands[1], base), *kind
        )
    if rest.startswith("store_"):
        kind = STORES.get(rest[6:])
        return kind and store_step(
            ins, space, lambda w: address_of(w, ins, operands[0], base), operands[1], *kind
        )
    if rest.startswith("atomic_") and rest[7:] in atomics.GLOBAL:
        wants_old = bool({"sc0", "glc"} & set(ins.modifiers))
        target = operands.pop(0) if wants_old else None
        vector, data = operands
        return atomic_step(
            atomics.GLOBAL[rest[7:]],
            space,
            lambda w: address_of(w, ins, vector, base),
            [data],
            target,
        )
    return None


def load_step(ins, space: Space, address_of: Callable, size: int, extend: bool, half):
    target = ins.operands[0]

    def step(w: Waves) -> None:
        lanes = w.active()
        values = space.load(w, address_of(w), lanes, size)
        if extend:
            top = u32(1 << (8 * size - 1))
            values = [(values[0] ^ top) - top]
        index = w.first(target)
        if half is not None:
            old = w.v32(index)
            low = values[0] & u32(0xFFFF)
            values = [
                (old & u32(0xFFFF)) | low << u32(16) if half else (old & u32(0xFFFF0000)) | low
            ]
        for k, value in enumerate(values):
            w.put_v32(index + k, value, lanes)

    return step


def store_step(ins, space: Space, address_of: Callable, data: Operand, size: int, shift: int):
    def step(w: Waves) -> None:
        values = [w.v32(w.first(data) + k) for k in range(max(1, size // 4))]
        if shift:
            values = [values[0] >> u32(shift)]
        space.store(w, address_of(w), w.active(), size, values)

    return step


def atomic_step(atomic, space: Space, address_of: Callable, data: list[Operand], target):
    size = int(atomic.kind[1:]) // 8
    registers = size // 4

    def values_of(w: Waves, operand: Operand, skip: int) -> np.ndarray:
        index = w.first(operand) + skip
        low = w.v32(index)
        return low if registers == 1 else low | w.v32(index + 1).astype(u64) << u64(32)

    def step(w: Waves) -> None:
        lanes = w.active()
        if atomic.sources == 2 and len(data) == 1:
            # Memory's compare and swap has both in one span: new value, then comparand.
            sources = [values_of(w, data[0], 0), values_of(w, data[0], registers)]
        else:
            sources = [values_of(w, operand, 0) for operand in data]
        old = np.zeros((w.n, 64), u64 if registers == 2 else u32)
        addresses = np.broadcast_to(address_of(w), (w.n, 64))
        for bytes_, offsets, here in space.pieces(w, addresses, lanes, size, True):
            here = np.ones((w.n, 64), bool) if here is None else here
            found = atomics.apply(
                atomic,
                bytes_,
                np.broadcast_to(offsets, (w.n, 64))[here],
                [np.broadcast_to(s, (w.n, 64))[here] for s in sources],
                target is not None,
            )
            if found is not None:
                old[here] = found.view(old.dtype)
        if target is not None:
            index = w.first(target)
            w.put_v32(index, old.astype(u32), lanes)
            if registers == 2:
                w.put_v32(index + 1, (old >> u64(32)).astype(u32), lanes)

    return step


# MUBUF


def _buffer(ins: Instruction, rest: str):
    kind, _, what = rest.partition("_")
    if kind == "atomic" and what in atomics.GLOBAL:
        return _buffer_atomic(ins, atomics.GLOBAL[what])
    table = {"load": LOADS, "store": STORES}.get(kind, {})
    if what not in table or "lds" in ins.modifiers or len(ins.operands) != 4:
        return None
    target, vector, resource, scalar = ins.operands
    size = table[what][0]

    def address_of(w: Waves) -> tuple[np.ndarray, np.ndarray | None]:
        """Addresses and which lanes are in range; gfx90a's scratch resource interleaves lanes."""
        words = [w.s32(resource.index + k).astype(u64)[:, None] for k in range(4)]
        base = words[0] | (words[1] & u64(0xFFFF)) << u64(32)
        interleaved = (words[3] >> u64(23) & u64(1)).all()
        structured = ins.modifiers.get("idxen") or (words[1] >> u64(16) & u64(0x3FFF)).any()
        if structured and not interleaved:
            raise NotImplementedError(f"{ins.text}: structured buffer")
        inner = np.full((w.n, 64), ins.modifiers.get("offset", 0), u64)
        if vector.name != "off":
            inner = inner + w.read(vector, 32)
        outer = base + w.read(scalar, 32).astype(u64)
        if interleaved:
            lane = np.arange(64, dtype=u64) * u64(4)
            return outer + (inner >> u64(2)) * u64(256) + lane + (inner & u64(3)), None
        return outer + inner, inner + u64(size) <= words[2]

    def step(w: Waves) -> None:
        lanes = w.active()
        addresses, inside = address_of(w)
        allowed = lanes
        if inside is not None:
            reached = inside if lanes is None else inside | ~lanes
            if size > 4 and not reached.all():
                raise NotImplementedError(f"{ins.text}: partly out of range")
            allowed = inside if lanes is None else inside & lanes
            allowed = np.broadcast_to(allowed, (w.n, 64))
        # An interleaved access is made dword by dword, each 256 bytes on.
        step_ = 4 if inside is not None else 256
        parts = max(1, size // 4)
        unit = min(size, 4)
        index = w.first(target)
        for k in range(parts):
            at = addresses + u64(step_ * k)
            if kind == "store":
                value = w.v32(index + k) >> u32(table[what][1])
                w.chunk.memory.store(at, allowed, unit, [value])
                continue
            value = w.chunk.memory.load(at, allowed, unit)[0]
            if allowed is not None:
                value = np.where(allowed, value, u32(0))
            _, extend, half = table[what]
            if extend:
                top = u32(1 << (8 * size - 1))
                value = (value ^ top) - top
            if half is not None:
                old = w.v32(index)
                value = (
                    (old & u32(0xFFFF)) | value << u32(16)
                    if half
                    else (old & u32(0xFFFF0000)) | (value & u32(0xFFFF))
                )
            w.put_v32(index + k, value, lanes)

    return step


def _buffer_atomic(ins: Instruction, atomic: atomics.Atomic):
    """A raw resource: lanes out of range do nothing, and return 0. The data register is also where
    the old value goes."""
    data, vector, resource, scalar = ins.operands
    size = int(atomic.kind[1:]) // 8
    wants_old = bool({"sc0", "glc"} & set(ins.modifiers))

    def step(w: Waves) -> None:
        words = [w.s32(resource.index + k).astype(u64)[:, None] for k in range(3)]
        base = words[0] | (words[1] & u64(0xFFFF)) << u64(32)
        inner = np.full((w.n, 64), ins.modifiers.get("offset", 0), u64)
        if vector.name != "off":
            inner = inner + w.read(vector, 32)
        addresses = base + w.read(scalar, 32).astype(u64) + inner
        inside = inner + u64(size) <= words[2]
        everything = w.active_or_ones().copy()
        target = data if wants_old else None
        step_ = atomic_step(atomic, Space("global"), lambda _: addresses, [data], target)
        _under(w, inside & everything, step_)
        if wants_old:
            outside = everything & ~inside
            for k in range(size // 4):
                w.put_v32(w.first(data) + k, np.zeros((1, 1), u32), outside)

    return step


def _under(w: Waves, lanes: np.ndarray, step: Callable[[Waves], None]) -> None:
    """A step under fewer lanes than EXEC's."""
    saved = w.s64(EXEC).copy()
    w.put_s64(EXEC, pack_mask(lanes))
    step(w)
    w.put_s64(EXEC, saved)
