"""A table of the waves of a stopped launch, for users.

workgroup  wave  state       pc      instruction            line
(0, 0, 0)  0     runs        0x1624  s_cbranch_scc1 65533   k.cl:3
(0, 0, 0)  1-3   at barrier  0x1630  s_barrier              k.cl:4
"""

from __future__ import annotations

import ctypes
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fly_run.emulator import state
from fly_run.emulator.engine import faults
from fly_run.emulator.isa.instruction import Instruction

if TYPE_CHECKING:
    from fly_run.emulator.engine.loading import Prepared
    from fly_run.emulator.engine.workspace import Workspace

MOST_ROWS = 16
STATES = {
    state.STATUS_READY: "runs",
    state.STATUS_BARRIER: "at barrier",
    state.STATUS_DONE: "has ended",
    state.STATUS_FAULT: "faulted",
    state.STATUS_DECODE: "jumps",
}
HEADER = ("workgroup", "wave", "state", "pc", "instruction", "line")


@dataclass(frozen=True)
class WavePosition:
    """The position of a wave: `address` is its state's; `instruction` is the one that it waits at,
    or would execute next."""

    address: int
    group: tuple[int, int, int]
    wave: int
    status: int
    instruction: Instruction | None


def waves(space: Workspace) -> list[WavePosition]:
    """Returns the waves of the workgroups that have started and not ended."""
    found = []
    for wave in space.live_wave_states():
        status = ctypes.c_uint32.from_address(wave + state.STATUS).value
        op = ctypes.c_uint64.from_address(wave + state.OP).value
        if status == state.STATUS_BARRIER:
            op -= state.OP_SIZE  # it resumes after the barrier
        record = faults.Record.read(wave)
        instruction = space.prepared.instruction_at(op)
        found.append(WavePosition(wave, record.group, record.wave, status, instruction))
    return found


def table(positions: list[WavePosition], prepared: Prepared) -> list[str]:
    """Formats the table; waves of a workgroup at the same place share a line."""
    rows: list[tuple[str, ...]] = [HEADER]

    def alike(one: WavePosition) -> tuple[object, ...]:
        pc = one.instruction.pc if one.instruction else None
        # The place where a wave has ended is irrelevant.
        return one.group, one.status, pc if one.status != state.STATUS_DONE else None

    for _, run in itertools.groupby(positions, alike):
        first, *more = run
        x, y, z = first.group
        numbers = f"{first.wave}-{more[-1].wave}" if more else str(first.wave)
        cells = [f"({x}, {y}, {z})", numbers, STATES[first.status]]
        if first.instruction is not None and first.status != state.STATUS_DONE:
            line = faults.line_of(prepared, first.instruction)
            cells += [f"0x{first.instruction.pc:x}", first.instruction.text]
            cells += [str(line)] if line else []
        rows.append((*cells, *[""] * (len(HEADER) - len(cells))))
    left = len(rows) - 1 - MOST_ROWS
    if all(not row[-1] for row in rows[1:]):
        rows = [row[:-1] for row in rows]
    rows = rows[: MOST_ROWS + 1]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return [*lines, f"… and {left} more"] if left > 0 else lines
