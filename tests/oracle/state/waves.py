"""The registers of many waves in lockstep: arrays with one row per wave.

A wave of 32 lanes also has rows of 64, whose upper half is never active; its lane masks are one
scalar register.

`rows` is the group of waves that currently execute together: None for all of them, so that
registers are used in place, or an array of row numbers. Instructions access all state through the
methods here, which apply `rows` and EXEC.
"""

from __future__ import annotations

import numpy as np

from oracle.program.text import NULL, Operand

LANES = 64
VCC, M0, EXEC = 106, 124, 126
SHARED_APERTURE = 0x0001_0000_0000_0000
PRIVATE_APERTURE = 0x0002_0000_0000_0000
# gfx1250's src_flat_scratch_base: addresses of private memory have the lane's number in bits 52 to
# 57 (LLVM: lowering of addrspacecast). The bits above are arbitrary here, and the same for all
# waves.
NAMED_PRIVATE, OWNER = 1 << 58, 52
POISON = 0x7FA5C3E1  # initial content of registers and LDS: a signalling NaN

DTYPES = {
    f"{kind}{width}": np.dtype(f"{letter}{width // 8}")
    for kind, letter in (("b", "u"), ("u", "u"), ("i", "i"), ("f", "f"))
    for width in (8, 16, 32, 64)
    if (kind, width) != ("f", 8)
}
UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
# 1/(2*pi) as the manual's inline constant is printed.
INVERSE_TWO_PI = {0.15915494: {16: 0x3118, 32: 0x3E22F983, 64: 0x3FC45F306DC9C882}}


class Waves:
    def __init__(
        self, chunk, count: int, vgprs: int, first_agpr: int, poison: bool, lanes: int = LANES
    ):
        self.chunk = chunk  # the machine's Chunk: memory, LDS, scratch
        self.lanes = lanes  # per wave: 32 or 64
        self.count = count
        self.vgpr = np.empty((vgprs, count, LANES), np.uint32)
        if poison:
            self.vgpr.fill(POISON)
        self.sgpr = np.full((NULL + 2, count), POISON, np.uint32)
        self.sgpr[NULL:] = 0
        # VOPD: writes to vector registers, delayed until both halves have read theirs.
        self.held: list[tuple[int, np.ndarray, np.ndarray | None]] | None = None
        self.first_agpr = first_agpr
        self.scc = np.zeros(count, bool)
        self.mode = np.zeros(count, np.uint32)
        self.set_mode = False  # whether the code has set MODE
        self.rows: np.ndarray | None = None
        self._active: np.ndarray | None = None
        self._fresh = False

    # The group

    def select(self, rows: np.ndarray | None) -> None:
        self.rows = rows
        self._fresh = False

    @property
    def n(self) -> int:
        return self.count if self.rows is None else len(self.rows)

    def row_numbers(self) -> np.ndarray:
        return np.arange(self.count) if self.rows is None else self.rows

    def active(self) -> np.ndarray | None:
        """Returns EXEC as bool[n, 64]; None if all lanes of all waves are active."""
        if not self._fresh:
            mask = self.mask(EXEC)
            self._active = None if (mask == ~np.uint64(0)).all() else unpack_mask(mask)
            self._fresh = True
        return self._active

    def active_or_ones(self) -> np.ndarray:
        active = self.active()
        return np.ones((self.n, LANES), bool) if active is None else active

    # Scalar registers

    def s32(self, index: int) -> np.ndarray:
        return self.sgpr[index] if self.rows is None else self.sgpr[index, self.rows]

    def s64(self, index: int) -> np.ndarray:
        return self.s32(index) | self.s32(index + 1).astype(np.uint64) << np.uint64(32)

    def put_s32(self, index: int, value: np.ndarray) -> None:
        if index >= NULL:
            return
        if self.rows is None:
            self.sgpr[index] = value
        else:
            self.sgpr[index, self.rows] = value
        if index >= EXEC:
            self._fresh = False

    def put_s64(self, index: int, value: np.ndarray) -> None:
        value = np.asarray(value, np.uint64)
        self.put_s32(index, (value & np.uint64(0xFFFFFFFF)).astype(np.uint32))
        self.put_s32(index + 1, (value >> np.uint64(32)).astype(np.uint32))

    def mask(self, index: int) -> np.ndarray:
        """Reads a lane mask from a scalar register, or from a pair if waves have 64 lanes."""
        return self.s64(index) if self.lanes == 64 else self.s32(index).astype(np.uint64)

    def put_mask(self, index: int, lanes: np.ndarray) -> None:
        """`lanes`: bool[n, 64]."""
        if self.lanes == 64:
            self.put_s64(index, pack_mask(lanes))
        else:
            self.put_s32(index, pack_mask(lanes).astype(np.uint32))

    def get_scc(self) -> np.ndarray:
        return self.scc if self.rows is None else self.scc[self.rows]

    def put_scc(self, value: np.ndarray) -> None:
        if self.rows is None:
            self.scc[...] = value
        else:
            self.scc[self.rows] = value

    def get_mode(self) -> np.ndarray:
        return self.mode if self.rows is None else self.mode[self.rows]

    def put_mode(self, value: np.ndarray) -> None:
        self.set_mode = True
        if self.rows is None:
            self.mode[...] = value
        else:
            self.mode[self.rows] = value

    # Vector registers

    def v32(self, index: int) -> np.ndarray:
        return self.vgpr[index] if self.rows is None else self.vgpr[index, self.rows]

    def put_v32(self, index: int, value: np.ndarray, lanes: np.ndarray | None) -> None:
        """`value`: uint32[n, 64] or broadcastable; `lanes`: which to write, None for all."""
        if self.held is not None:
            self.held.append((index, np.array(value), lanes))
            return
        register = self.vgpr[index]
        if self.rows is None:
            if lanes is None:
                register[...] = value
            else:
                np.copyto(register, value, where=lanes)
        elif lanes is None:
            register[self.rows] = value
        else:
            old = register[self.rows]
            np.copyto(old, value, where=lanes)
            register[self.rows] = old

    def first(self, operand: Operand) -> int:
        """Returns the row of `vgpr` of a vector operand: AGPRs follow the VGPRs in one file."""
        return operand.index + (self.first_agpr if operand.kind == "a" else 0)

    # Operands

    def read(self, operand: Operand, width: int) -> np.ndarray:
        """Returns an operand's bits, unsigned of `width`: [n, 64], [n, 1] or [1, 1]."""
        kind = operand.kind
        if kind in "va":
            index = self.first(operand)
            if width == 64:
                high = self.v32(index + 1).astype(np.uint64)
                return self.v32(index) | high << np.uint64(32)
            low = self.v32(index)
            if operand.half and width == 16:
                low = low >> np.uint32(16)
            return low if width == 32 else low.astype(UNSIGNED[width])
        if kind == "s":
            if width == 64:
                return self.s64(operand.index)[:, None]
            low = self.s32(operand.index)[:, None]
            return low if width == 32 else low.astype(UNSIGNED[width])
        if kind == "name":
            return self._read_name(operand.name, width)
        return constant(operand, width)

    def _read_name(self, name: str, width: int) -> np.ndarray:
        if name in ("src_shared_base", "src_private_base"):
            base = SHARED_APERTURE if name == "src_shared_base" else PRIVATE_APERTURE
            return np.array([[base & (1 << width) - 1]], UNSIGNED[width])
        if name in ("src_flat_scratch_base_lo", "src_flat_scratch_base_hi"):
            base = NAMED_PRIVATE >> (32 if name.endswith("hi") else 0)
            return np.array([[base & (1 << width) - 1]], UNSIGNED[width])
        if name in ("src_scc", "scc"):
            value = self.get_scc()
        elif name in ("src_vccz", "src_execz"):
            value = self.mask(VCC if name == "src_vccz" else EXEC) == 0
        else:
            raise NotImplementedError(f"operand {name}")
        return value.astype(UNSIGNED[width])[:, None]

    def read_as(self, operand: Operand, kind: str) -> np.ndarray:
        """Returns an operand as "f32", "i64", …, with `-` and `|…|` applied."""
        width = int(kind[1:])
        if kind == "f64" and operand.literal:
            # The manual: a 32-bit literal is the upper half of a double. gfx1250 has whole ones.
            value = int(operand.value)
            high = np.array([[value if value >> 32 else value << 32]], np.uint64)
            return modified(operand, high, 64).view(np.float64)
        if operand.kind == "float" and kind in ("i16", "u16"):
            # LLVM, isInlinableLiteralI16: such an operand reads the low half of a 32-bit float.
            return self.read(operand, 32).astype(np.uint16).view(DTYPES[kind])
        raw = modified(operand, self.read(operand, width), width)
        return raw.view(DTYPES[kind])

    def read_scalar(self, operand: Operand, width: int) -> np.ndarray:
        """Returns an operand of a scalar instruction: [n] or [1]."""
        return self.read(operand, width)[:, 0]

    def read_mask(self, operand: Operand) -> np.ndarray:
        """Returns a lane mask operand as bool[n, 64] or [1, 64]."""
        return unpack_mask(self.read_scalar(operand, self.lanes).astype(np.uint64))


def modified(operand: Operand, raw: np.ndarray, width: int) -> np.ndarray:
    sign = UNSIGNED[width](1 << (width - 1))
    if operand.absolute:
        raw = raw & ~sign
    if operand.negate:
        raw = raw ^ sign
    return raw


def constant(operand: Operand, width: int) -> np.ndarray:
    """Returns an inline constant or literal. A float has the operand's width."""
    if operand.kind == "int":
        value = int(operand.value) & (1 << width) - 1
        return np.array([[value]], UNSIGNED[width])
    known = INVERSE_TWO_PI.get(round(operand.value, 8))
    if known:
        return np.array([[known[width]]], UNSIGNED[width])
    return np.array([[operand.value]], f"f{width // 8}").view(UNSIGNED[width])


def unpack_mask(mask: np.ndarray) -> np.ndarray:
    """Converts uint64[n] to bool[n, 64], bit 0 first."""
    raw = np.ascontiguousarray(mask, np.uint64).view(np.uint8).reshape(-1, 8)
    return np.unpackbits(raw, axis=1, bitorder="little").view(bool)


def pack_mask(lanes: np.ndarray) -> np.ndarray:
    """Converts bool[n, 64] to uint64[n]."""
    return np.packbits(lanes, axis=1, bitorder="little").view(np.uint64)[:, 0]
