"""Memory instructions: addresses, and data movement between registers and memory.

Covers FLAT, GLOBAL and SCRATCH; SMEM is in scalar_memory.py, MUBUF in buffers.py, DS in lds.py, and
loads straight to LDS are in lds_direct.py. `build(instruction)` returns a function of Waves, whose
`chunk` (machine.Chunk) holds the memory, LDS and scratch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracle.memory import atomics
from oracle.program.text import Instruction, Operand
from oracle.state.memory import gather, scatter
from oracle.state.waves import NAMED_PRIVATE, OWNER, PRIVATE_APERTURE, SHARED_APERTURE, Waves

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
# size in bytes, and the shift of the stored half
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
    """A destination of accesses, "global", "lds" or "flat": loads, stores, and the parts of
    atomics."""

    kind: str

    def pieces(self, w: Waves, addresses: np.ndarray, lanes, size: int, write: bool):
        """Yields (region bytes, offsets, lanes) of an access to this space."""
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
        if w.chunk.launch.code.target == "gfx1250":
            addresses = _without_owner(w, addresses, lanes)
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
        # Scratch is interleaved by dword: the stride between a lane's dwords is 256 bytes.
        return [gather(data, offsets + 256 * k, here, 4)[0] for k in range(size // 4)]

    def store(self, w: Waves, addresses, lanes, size: int, values) -> None:
        for data, offsets, here in self.pieces(w, addresses, lanes, size, True):
            if data is not w.chunk.scratch or size <= 4:
                scatter(data, offsets, here, size, values)
                continue
            for k, value in enumerate(values):
                scatter(data, offsets + 256 * k, here, 4, [value])


def _without_owner(w: Waves, addresses: np.ndarray, lanes: np.ndarray | None) -> np.ndarray:
    """Returns gfx1250's addresses with those of the lane's private memory in PRIVATE_APERTURE."""
    addresses = np.broadcast_to(addresses, (w.n, 64))
    named = addresses >> u64(58) == u64(NAMED_PRIVATE >> 58)
    other = addresses >> u64(OWNER) & u64(63) != np.arange(64, dtype=u64)
    if (named & other & (True if lanes is None else lanes)).any():
        raise NotImplementedError("private memory of another lane")
    return np.where(named, u64(PRIVATE_APERTURE) | addresses & u64(0xFFFFFFFF), addresses)


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    name = ins.mnemonic
    family, _, rest = name.partition("_")
    if family in ("global", "flat", "scratch"):
        return _flat_family(ins, family, rest)
    return None


# FLAT, GLOBAL, SCRATCH


def flat_address(
    w: Waves, ins: Instruction, vector: Operand, base: Operand, size: int
) -> np.ndarray:
    """gfx1250: an offset to a scalar base is a signed number, and scale_offset multiplies it by the
    bytes of an access (LLVM: FLATInstructions.td, SelectionDAG's selection of addresses)."""
    offset = u64(ins.modifiers.get("offset", 0) & (1 << 64) - 1)
    if base.name == "off":
        return w.read(vector, 64) + offset
    own = w.read(vector, 32)
    if w.chunk.launch.code.target == "gfx1250":
        own = own.view(np.int32).astype(np.int64)
    return w.read(base, 64) + own.astype(u64) * _scale(ins, size) + offset


def _scale(ins: Instruction, size: int) -> np.uint64:
    return u64(size if "scale_offset" in ins.modifiers else 1)


def scratch_address(
    w: Waves, ins: Instruction, vector: Operand, base: Operand, size: int
) -> np.ndarray:
    address = np.full((w.n, 64), ins.modifiers.get("offset", 0) & 0xFFFFFFFF, u32)
    for operand, scale in ((vector, _scale(ins, size).astype(u32)), (base, u32(1))):
        if operand.name != "off":
            address = address + w.read(operand, 32) * scale
    return address.astype(u64) | u64(PRIVATE_APERTURE)


def base_of(family: str, operands: list[Operand]) -> Operand:
    """Removes the scalar base from the operands; only gfx1250's FLAT instructions may have one."""
    return operands.pop() if family != "flat" or operands[-1].kind == "s" else OFF


def _flat_family(ins: Instruction, family: str, rest: str):
    space = Space("global" if family == "global" else "flat")
    address_of = scratch_address if family == "scratch" else flat_address
    operands = list(ins.operands)
    base = base_of(family, operands)
    if rest.startswith("load_"):
        kind = LOADS.get(rest[5:])
        return kind and load_step(
            ins, space, lambda w: address_of(w, ins, operands[1], base, kind[0]), *kind
        )
    if rest.startswith("store_"):
        kind = STORES.get(rest[6:])
        return kind and store_step(
            ins,
            space,
            lambda w: address_of(w, ins, operands[0], base, kind[0]),
            operands[1],
            *kind,
        )
    if rest.startswith("atomic_") and rest[7:] in atomics.GLOBAL:
        wants_old = bool({"sc0", "glc"} & set(ins.modifiers))
        target = operands.pop(0) if wants_old else None
        vector, data = operands
        atomic = atomics.GLOBAL[rest[7:]]
        return atomic_step(
            atomic,
            space,
            lambda w: address_of(w, ins, vector, base, atomic.size),
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
    size = atomic.size
    registers = size // 4

    def values_of(w: Waves, operand: Operand, skip: int) -> np.ndarray:
        index = w.first(operand) + skip
        low = w.v32(index)
        return low if registers == 1 else low | w.v32(index + 1).astype(u64) << u64(32)

    def step(w: Waves) -> None:
        lanes = w.active()
        if atomic.sources == 2 and len(data) == 1:
            # Memory's compare and swap has one operand for both: new value, then comparand.
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
