"""Relative register numbers of gfx11 and gfx12 (RDNA3 and RDNA4 ISA manuals, 7.8 and the pseudocode
of V_MOVRELS_B32 to V_SWAPREL_B32 and S_MOVRELSD_2_B32)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oracle.program.text import Instruction
from oracle.state.waves import M0, Waves
from oracle.vector import crosslane

i64, u32 = np.int64, np.uint32
VECTORS = ("v_movrels_b32", "v_movreld_b32", "v_movrelsd_b32", "v_movrelsd_2_b32")


def build(ins: Instruction) -> Callable[[Waves], None] | None:
    if ins.mnemonic in VECTORS:
        return lambda w: _move(w, ins)
    if ins.mnemonic == "v_swaprel_b32":
        return lambda w: _swap(w, ins)
    if ins.mnemonic == "s_movrelsd_2_b32":
        return lambda w: _move_scalar(w, ins)
    return None


def _two(w: Waves) -> tuple[np.ndarray, np.ndarray]:
    """The offsets of source and destination of an instruction with two: M0[9:0], M0[25:16]."""
    m0 = w.s32(M0).astype(i64)
    return m0 % 1024, m0 // 65536 % 1024


def _offsets(w: Waves, ins: Instruction) -> tuple[np.ndarray, np.ndarray]:
    if ins.mnemonic.endswith("_2_b32"):
        return _two(w)
    whole = w.s32(M0).astype(i64)
    none = np.zeros_like(whole)
    kind = ins.mnemonic.removeprefix("v_movrel").removesuffix("_b32")
    return whole if "s" in kind else none, whole if "d" in kind else none


def _rows(w: Waves, first: int, offsets: np.ndarray) -> np.ndarray:
    """The values of a register, of another number in each wave: [n, 64]."""
    return w.vgpr[first + offsets, w.row_numbers()].copy()


def _put(w: Waves, first: int, offsets: np.ndarray, value: np.ndarray, lanes: np.ndarray) -> None:
    numbers, rows = first + offsets, w.row_numbers()
    old = w.vgpr[numbers, rows]
    w.vgpr[numbers, rows] = np.where(lanes, value, old)


def _move(w: Waves, ins: Instruction) -> None:
    by_source, by_target = _offsets(w, ins)
    target, source = ins.operands
    if source.kind == "v":
        value = _rows(w, source.index, by_source)
    else:
        value = np.broadcast_to(w.read(source, 32), (w.n, 64))
    lanes = w.active_or_ones()
    if ins.encoding.endswith("dpp"):
        moved = crosslane.dpp(ins)
        value, lanes = moved.fetch(w, value), moved.written(w)
    _put(w, target.index, by_target, value, lanes)


def _swap(w: Waves, ins: Instruction) -> None:
    by_source, by_target = _two(w)
    target, source = ins.operands
    old, new = _rows(w, target.index, by_target), _rows(w, source.index, by_source)
    lanes = w.active_or_ones()
    _put(w, target.index, by_target, new, lanes)
    _put(w, source.index, by_source, old, lanes)


def _move_scalar(w: Waves, ins: Instruction) -> None:
    by_source, by_target = _two(w)
    target, source = ins.operands
    rows = w.row_numbers()
    w.sgpr[target.index + by_target, rows] = w.sgpr[source.index + by_source, rows]
