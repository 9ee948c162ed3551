"""The mask of gfx12's block loads and stores (RDNA4 ISA manual, 11.5): bit n of M0 selects the nth
of 32 registers."""

from __future__ import annotations

from collections.abc import Iterator

from fly_run.emulator import state
from fly_run.emulator.semantics.base.emit import Handler
from fly_run.emulator.semantics.base.operation import Operation

REGISTERS = 32  # of a block


def operations() -> Iterator[Operation]:
    yield Operation("fly_block_begins", "custom", body=_begin)
    yield Operation("fly_block_register", "custom", body=_select)


def _begin(h: Handler) -> None:
    """Saves EXEC, which `fly_restore_exec` restores."""
    h.wave.at(state.SAVED_EXEC).store(h.exec_mask())


def _select(h: Handler) -> None:
    """Before the access of the register whose number is the extra word: clears EXEC if the mask
    does not select it. The immediate is 1 if the kernel does not allocate the register."""
    bit = h.wave.at(state.M0).load("i32").lshr(h.extra()) & 1
    saved = h.wave.at(state.SAVED_EXEC).load("i64")
    lanes = bit.compare("ne", 0).select(saved, 0)
    missing = lanes.compare("ne", 0) & h.immediate().compare("ne", 0)
    h.when(missing, lambda: h.fault("block register"))
    h.wave.at(state.EXEC).store(lanes)
