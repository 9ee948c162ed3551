"""Instructions that exchange data between lanes: DPP, readlane and similar, mbcnt, permutes.

The patterns follow the manual's section "Data Parallel Processing"; row_newbcast is gfx90a's;
row_share, row_xmask and dpp8 are RDNA's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracle.program.text import Instruction
from oracle.state.waves import LANES, Waves

LANE = np.arange(LANES)
ROW, IN_ROW = LANE & ~15, LANE & 15


@dataclass(frozen=True)
class Dpp:
    """`source[i]`: the lane that lane i reads; -1 if there is none. `enabled`: the lanes enabled by
    row_mask and bank_mask. `zero`: bound_ctrl, an invalid lane reads 0."""

    source: np.ndarray
    enabled: np.ndarray
    zero: bool
    inactive: bool = False  # gfx10's `fi:1`: inactive lanes are read too

    def valid(self, w: Waves) -> np.ndarray:
        reachable = self.source >= 0
        active = w.active()
        if active is None or self.inactive:
            return np.broadcast_to(reachable, (w.n, LANES))
        return reachable & active[:, self.source]

    def fetch(self, w: Waves, raw: np.ndarray) -> np.ndarray:
        raw = np.broadcast_to(raw, (w.n, LANES))
        moved = raw[:, self.source]
        return np.where(self.valid(w), moved, raw.dtype.type(0))

    def written(self, w: Waves) -> np.ndarray:
        lanes = w.active_or_ones() & self.enabled
        return lanes if self.zero else lanes & self.valid(w)


def dpp(ins: Instruction) -> Dpp:
    modifiers = ins.modifiers
    row_mask, bank_mask = modifiers.get("row_mask", 15), modifiers.get("bank_mask", 15)
    enabled = (row_mask >> (LANE // 16) & 1).astype(bool)
    enabled &= (bank_mask >> (IN_ROW // 4) & 1).astype(bool)
    # The DPP8 forms have no bound_ctrl: they read 0 from inactive lanes.
    zero = "bound_ctrl" in modifiers or "dpp8" in modifiers
    return Dpp(_source(modifiers, ins.text), enabled, zero, bool(modifiers.get("fi")))


def _source(modifiers: dict, text: str) -> np.ndarray:
    def within(value, low, high):
        return np.where((value >= low) & (value < high), value, -1)

    for name, value in modifiers.items():
        if name == "quad_perm":
            return (LANE & ~3) + np.array(value)[LANE & 3]
        if name == "row_shl":
            return within(LANE + value, ROW, ROW + 16)
        if name == "row_shr":
            return within(LANE - value, ROW, ROW + 16)
        if name == "row_ror":
            return ROW + ((IN_ROW - value) & 15)
        if name == "wave_shl":
            return within(LANE + 1, 0, LANES)
        if name == "wave_shr":
            return within(LANE - 1, 0, LANES)
        if name == "wave_rol":
            return (LANE + 1) % LANES
        if name == "wave_ror":
            return (LANE - 1) % LANES
        if name == "row_mirror":
            return ROW + 15 - IN_ROW
        if name == "row_half_mirror":
            return (LANE & ~7) + 7 - (LANE & 7)
        if name == "row_bcast" and value == 15:
            return within(ROW - 1, 0, LANES)
        if name == "row_bcast" and value == 31:
            return np.where(LANE >= 32, 31, -1)
        if name in ("row_newbcast", "row_share"):
            return ROW + value
        if name == "row_xmask":
            return ROW + (IN_ROW ^ value)
        if name == "dpp8":
            return (LANE & ~7) + np.array(value)[LANE & 7]
    raise NotImplementedError(f"{text}: DPP control")


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    function = STEPS.get(ins.mnemonic)
    return (lambda w: function(w, ins)) if function else None


def _first_lane(w: Waves) -> np.ndarray:
    """Returns the lowest active lane of each wave, 0 if none is active."""
    active = w.active()
    return np.zeros(w.n, np.int64) if active is None else active.argmax(axis=1)


def _read_first(w: Waves, ins: Instruction) -> None:
    source = np.broadcast_to(w.read(ins.operands[1], 32), (w.n, LANES))
    w.put_s32(ins.operands[0].index, source[np.arange(w.n), _first_lane(w)])


def _read_lane(w: Waves, ins: Instruction) -> None:
    lane = np.broadcast_to(w.read_scalar(ins.operands[2], 32) & np.uint32(w.lanes - 1), w.n)
    source = np.broadcast_to(w.read(ins.operands[1], 32), (w.n, LANES))
    w.put_s32(ins.operands[0].index, source[np.arange(w.n), lane])


def _write_lane(w: Waves, ins: Instruction) -> None:
    lane = w.read_scalar(ins.operands[2], 32) & np.uint32(w.lanes - 1)
    w.put_v32(w.first(ins.operands[0]), w.read(ins.operands[1], 32), lane[:, None] == LANE)


def _count_below(w: Waves, ins: Instruction) -> None:
    """V_MBCNT: counts the mask's bits of lanes before this one, plus S1."""
    low = ins.mnemonic.startswith("v_mbcnt_lo")
    below = [(1 << int(lane)) - 1 for lane in LANE]
    mine = np.array([b & 0xFFFFFFFF if low else b >> 32 for b in below], np.uint32)
    bits = np.bitwise_count(w.read(ins.operands[1], 32) & mine).astype(np.uint32)
    w.put_v32(w.first(ins.operands[0]), bits + w.read(ins.operands[2], 32), w.active())


def _selected(w: Waves, ins: Instruction) -> np.ndarray:
    """Returns the lanes that DS_PERMUTE's and DS_BPERMUTE's addresses select. On gfx11 they are in
    the same half of a wave of 64 (RDNA3 ISA manual: "MOD 32 regardless of wave size")."""
    address = w.read(ins.operands[1], 32) + np.uint32(ins.modifiers.get("offset", 0))
    halves = w.chunk.launch.code.target.startswith("gfx11")
    inside = np.uint32((32 if halves else w.lanes) - 1)
    return (address >> np.uint32(2) & inside | LANE.astype(np.uint32) & ~inside).astype(np.intp)


def _pull(w: Waves, ins: Instruction) -> None:
    """DS_BPERMUTE: each lane reads the lane that its address selects; an inactive one gives 0."""
    data = np.where(w.active_or_ones(), w.read(ins.operands[2], 32), np.uint32(0))
    result = np.take_along_axis(data, _selected(w, ins), axis=1)
    w.put_v32(w.first(ins.operands[0]), result, w.active())


def _push(w: Waves, ins: Instruction) -> None:
    """DS_PERMUTE: each active lane writes the lane that its address selects; the highest wins."""
    lane = _selected(w, ins)
    data, active = w.read(ins.operands[2], 32), w.active_or_ones()
    result = np.zeros((w.n, LANES), np.uint32)
    for row, source in zip(*np.nonzero(active), strict=True):
        result[row, lane[row, source]] = data[row, source]
    w.put_v32(w.first(ins.operands[0]), result, w.active())


def _swizzle(w: Waves, ins: Instruction) -> None:
    """DS_SWIZZLE by its offset's bits: from 0xE000 on an FFT's order, from 0xC000 on a rotation,
    bit 15 a quad permutation, otherwise AND, OR, XOR masks. The FFT's: the lane's five bits
    reversed, shifted down by the number of mask bits, below the lane's own bits in the mask (RDNA3
    ISA manual; CDNA3's lists of the orders for three masks agree)."""
    offset = ins.words[0] & 0xFFFF
    if offset >= 0xE000:
        mask = offset & 31
        reverse = np.array([int(f"{lane & 31:05b}"[::-1], 2) for lane in LANE])
        source = (LANE & 32) | reverse >> mask.bit_count() | (LANE & mask)
    elif offset >= 0xC000:
        amount, keep = offset >> 5 & 31, offset & 31
        amount = -amount if offset >> 10 & 1 else amount
        source = (LANE & 32) | (LANE & keep) | ((LANE + amount) & ~keep & 31)
    elif offset & 0x8000:
        source = (LANE & ~3) + (offset >> (2 * (LANE & 3)) & 3)
    else:
        source = (LANE & 32) | (((LANE & 31 & offset) | (offset >> 5 & 31)) ^ (offset >> 10 & 31))
    data = np.where(w.active_or_ones(), w.read(ins.operands[1], 32), np.uint32(0))
    w.put_v32(w.first(ins.operands[0]), data[:, source], w.active())


def _permlane_swap(w: Waves, ins: Instruction) -> None:
    """gfx950 V_PERMLANE{16,32}_SWAP: swaps odd blocks of the first register with even blocks of the
    second."""
    size = 32 if "32_swap" in ins.mnemonic else 16
    left, right = (w.read(o, 32).copy() for o in ins.operands)
    odd = (LANE // size % 2).astype(bool)
    new_left, new_right = left.copy(), right.copy()
    new_left[:, odd], new_right[:, ~odd] = right[:, ~odd], left[:, odd]
    w.put_v32(w.first(ins.operands[0]), new_left, w.active())
    w.put_v32(w.first(ins.operands[1]), new_right, w.active())


STEPS = {
    "v_readfirstlane_b32": _read_first,
    "v_readlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    "v_mbcnt_lo_u32_b32": _count_below,
    "v_mbcnt_hi_u32_b32": _count_below,
    "ds_bpermute_b32": _pull,
    "ds_permute_b32": _push,
    "ds_swizzle_b32": _swizzle,
    "v_permlane16_swap_b32": _permlane_swap,
    "v_permlane32_swap_b32": _permlane_swap,
}
