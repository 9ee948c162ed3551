"""Instructions of gfx11 and gfx12 that exchange data between lanes; DPP is in crosslane.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracle.program.text import Instruction
from oracle.state.waves import Waves
from oracle.vector.crosslane import IN_ROW, LANE, ROW

u32, u64 = np.uint32, np.uint64


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    function = STEPS.get(ins.mnemonic)
    return (lambda w: function(w, ins)) if function else None


def _permute_rows(w: Waves, ins: Instruction) -> None:
    """V_PERMLANE16: each lane reads the lane of its row selected by a nibble, of S1 for the lower
    eight lanes and of S2 for the upper; V_PERMLANEX16 reads the row's neighbour. op_sel's first bit
    allows reading inactive lanes, its second writes 0 if there is no lane to read."""
    low, high = (w.read_scalar(o, 32).astype(u64) for o in ins.operands[2:4])
    choices = low | high << u64(32)
    chosen = (choices[:, None] >> (u64(4) * IN_ROW.astype(u64)) & u64(15)).astype(np.intp)
    row = ROW ^ 16 if ins.mnemonic.startswith("v_permlanex16") else ROW
    _move(w, ins, row + chosen)


def _permute_rows_by_lane(w: Waves, ins: Instruction) -> None:
    """gfx12 V_PERMLANE16_VAR: the same, with the selector in the lane's own S1."""
    chosen = (w.read(ins.operands[2], 32) & u32(15)).astype(np.intp)
    row = ROW ^ 16 if ins.mnemonic.startswith("v_permlanex16") else ROW
    _move(w, ins, row + chosen)


def _move(w: Waves, ins: Instruction, source: np.ndarray) -> None:
    from_inactive, zero = [*ins.modifiers.get("op_sel", ()), 0, 0][:2]
    source = np.broadcast_to(source, (w.n, LANE.size))
    data = np.broadcast_to(w.read(ins.operands[1], 32), (w.n, LANE.size))
    found = np.take_along_axis(data, source, axis=1)
    active = w.active_or_ones()
    readable = from_inactive | np.take_along_axis(active, source, axis=1)
    value = np.where(readable, found, u32(0))
    w.put_v32(w.first(ins.operands[0]), value, active if zero else active & (readable != 0))


def _pull_any(w: Waves, ins: Instruction) -> None:
    """gfx12 DS_BPERMUTE_FI: DS_BPERMUTE that reads inactive lanes as well."""
    address = w.read(ins.operands[1], 32) + u32(ins.modifiers.get("offset", 0))
    lane = (address // u32(4) % u32(w.lanes)).astype(np.intp)
    data = np.broadcast_to(w.read(ins.operands[2], 32), (w.n, LANE.size))
    w.put_v32(w.first(ins.operands[0]), np.take_along_axis(data, lane, axis=1), w.active())


def _swap_halves(w: Waves, ins: Instruction) -> None:
    """V_PERMLANE64 does nothing in a wave of 32 lanes."""
    if w.lanes == 32:
        return
    data = np.broadcast_to(w.read(ins.operands[1], 32), (w.n, LANE.size))
    w.put_v32(w.first(ins.operands[0]), data[:, LANE ^ 32], w.active())


STEPS = {
    "v_permlane16_b32": _permute_rows,
    "v_permlanex16_b32": _permute_rows,
    "v_permlane16_var_b32": _permute_rows_by_lane,
    "v_permlanex16_var_b32": _permute_rows_by_lane,
    "v_permlane64_b32": _swap_halves,
    "ds_bpermute_fi_b32": _pull_any,
}
