"""Which registers a step with relative register numbers really reads and writes, and which
registers of a block an instruction moves: M0 tells, when it is executed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fly_run.emulator import state
from fly_run.emulator.semantics.rdna.relative import SOURCE, TARGET
from fly_run.emulator.strict.accesses import Values
from fly_run.emulator.strict.dataflow import Effect, Place

BLOCK, RESTORE = "fly_block_register", "fly_restore_exec"


def resolved(effect: Effect, values: Values, end: int) -> Effect:
    """Returns the effect with the places that it accesses; unchanged if it has no relative numbers,
    or if there is no such register, which is a fault of its own. `end` is that of the vector
    registers in the wave state."""
    by = _indices(effect, values.word(state.M0) or 0)
    if by is None:
        return effect
    first, *others = effect.reads
    (result,) = effect.writes
    source, target = _moved(first, by[0]), _moved(result, by[1])
    if any(place.offset >= (end if place.lanes else state.EXEC) for place in (source, target)):
        return effect
    return replace(effect, reads=(source, *others), writes=(target,))


def _indices(effect: Effect, m0: int) -> tuple[int, int] | None:
    """Returns what is added to the register numbers of the source and of the result."""
    name, step = effect.operation.mnemonic, effect.step
    if name.startswith("s_movrelsd_2"):
        return m0 >> SOURCE.shift & SOURCE.mask, m0 >> TARGET.shift & TARGET.mask
    if name.startswith(("s_movrels", "s_movreld")):
        return (m0, 0) if name.startswith("s_movrels") else (0, m0)
    if name == "fly_indexed_move":
        index = m0 & 0xFF
        return index * bool(step.extra & 1), index * bool(step.extra & 8)
    if name in ("fly_relative_read", "fly_relative_write"):
        index = m0 >> step.extra & step.immediate
        return (index, 0) if name.endswith("read") else (0, index)
    return None


def _moved(place: Place, by: int) -> Place:
    unit = state.ROW if place.lanes else 4
    return replace(place, offset=place.offset + by * unit)


def skipped(effect: Effect, lanes: np.ndarray) -> bool:
    """Whether a step is the access of a register of a block that is not selected."""
    return not lanes.any() and effect.operation.mnemonic not in (BLOCK, RESTORE)


def narrowed(effect: Effect, values: Values, active: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Returns the lanes of the steps that follow: `now`, or those of a register of a block."""
    name = effect.operation.mnemonic
    if name == BLOCK:
        selected = (values.word(state.M0) or 0) >> effect.step.extra & 1
        return active if selected else np.zeros_like(active)
    return active if name == RESTORE else now
