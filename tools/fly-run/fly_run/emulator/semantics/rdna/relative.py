"""Relative register numbers of gfx11 and gfx12: a field of M0 is added to the number of a vector
register (v_movrels, v_movreld, v_movrelsd, v_movrelsd_2, v_swaprel) or of a scalar one
(s_movrelsd_2).

Sources: RDNA3 and RDNA4 ISA manuals, "Relative Addressing" and the instructions' own pseudocode.
Hardware reads v0 in place of a register that does not exist, and writes nowhere; here both are
faults, unless no lane is active.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fly_run.emulator import state
from fly_run.emulator.irgen import Value
from fly_run.emulator.semantics.base.emit import LANES, ROW, Handler, load_row, store_row
from fly_run.emulator.semantics.base.operation import SINCE_GFX11, Operation


@dataclass(frozen=True)
class Field:
    """The bits of M0 that are the index: `mask` << `shift`."""

    shift: int
    mask: int


WHOLE = Field(0, 0xFFFF_FFFF)
SOURCE, TARGET = Field(0, 0x3FF), Field(16, 0x3FF)  # of instructions with two indices


def operations() -> Iterator[Operation]:
    yield Operation("fly_relative_read", "custom", body=_read)
    yield Operation("fly_relative_write", "custom", body=_write)
    yield Operation("s_movrelsd_2_b32", "custom", body=_move_scalar, traits=SINCE_GFX11)


def _row(h: Handler, number: int) -> Value:
    """Returns a pointer to the row of operand `number` plus the index: the immediate is the field's
    mask, the extra word its shift."""
    index = h.wave.at(state.M0).load("i32").lshr(h.extra()).zext("i64") & h.immediate()
    offset = h.op.at(state.OP_OPERANDS + 4 * number).load("i32").zext("i64")
    moved = offset + index * ROW
    beyond = moved.compare("uge", h.wave.at(state.VGPR_LIMIT).load("i64"))
    h.when(beyond & h.exec_mask().compare("ne", 0), lambda: h.fault("register index"))
    return h.wave.at(beyond.select(offset, moved))


def _read(h: Handler) -> None:
    """Copies a row with a relative number, operand 1, to operand 0, a temporary: all lanes, for DPP
    may read inactive ones."""
    zero = h.constant("i64", 0)
    store_row(h.operand(0), zero, load_row(_row(h, 1), zero, LANES), None)


def _write(h: Handler) -> None:
    """Copies operand 1 to the row with a relative number, operand 0, under EXEC."""
    zero = h.constant("i64", 0)
    mask = h.exec_mask().cast("i1", LANES)
    store_row(_row(h, 0), zero, load_row(h.operand(1), zero, LANES), mask)


def _move_scalar(h: Handler) -> None:
    """s_movrelsd_2: operand 0 plus one field of M0 is the result, operand 1 plus the other the
    source. The extra word is the offset of the end of the registers."""
    m0 = h.wave.at(state.M0).load("i32").zext("i64")
    places = []
    for number, field in enumerate((TARGET, SOURCE)):
        offset = h.op.at(state.OP_OPERANDS + 4 * number).load("i32").zext("i64")
        moved = offset + ((m0.lshr(field.shift) & field.mask) << 2)
        beyond = moved.compare("uge", h.extra().zext("i64"))
        h.when(beyond, lambda: h.fault("register index"))
        places.append(h.wave.at(moved))
    target, source = places
    target.store(source.load("i32"))
