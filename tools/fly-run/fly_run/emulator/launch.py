"""One launch: the loop that runs the grid in slices, and what it does when a wave stops."""

from __future__ import annotations

import ctypes
from typing import Any

from fly_common.errors import Fault, InputError

from fly_run.device import Options
from fly_run.emulator import faults, state
from fly_run.emulator.workspace import Workspace

FIRST_SLICE, SLICE = 1 << 21, 1 << 25  # instructions between two looks by Python
FOREVER = (1 << 62) - 1


def run(space: Workspace, driver: Any, kernarg: bytes, options: Options) -> None:
    """Runs the grid by the library's `driver`. Raises Fault for what the kernel does wrong, and
    when more wave instructions have run than the options allow."""
    limit, progress = options.max_instructions, options.progress
    space.begin(kernarg, FOREVER if limit is None else limit)
    length = FIRST_SLICE
    while True:
        space.set("slice_end", space.get("executed") + length)
        # The call lets other Python threads run; a signal's handler runs when it returns.
        result = driver(space.context)
        if result == state.RUN_FAULT:
            _attend(space)
        elif result == state.RUN_TIMEOUT:
            raise _timeout(space)
        if progress is not None:
            progress(space.get("done_groups"), space.groups)
        if result == state.RUN_DONE:
            return
        length = SLICE


def _attend(space: Workspace) -> None:
    """Looks after the wave that stopped: new code to decode, or a fault."""
    prepared, wave = space.prepared, space.get("stopped_wave")
    record = faults.Record.read(wave)
    status = ctypes.c_uint32.from_address(wave + state.STATUS)
    op = ctypes.c_uint64.from_address(wave + state.OP)
    instruction = prepared.instruction_at(op.value)
    name = prepared.kernel.name
    if status.value != state.STATUS_DECODE:
        raise faults.describe(record, name, instruction, space.arena, space.lds, space.scratch)
    pc = record.address - prepared.loaded.base
    try:
        if pc % 4:
            raise InputError(f"pc 0x{pc:x} is no multiple of 4")
        program = prepared.add_code(pc)
    except InputError as error:
        where = faults.place(name, instruction, record.group, record.wave)
        message = f"jump to 0x{record.address:x}: {error.message}; {where}"
        raise Fault(message, hint=error.hint) from None
    space.update_constants()
    op.value = program.address_of(pc)
    landing = ctypes.c_uint64.from_address(wave + state.LANDING)
    landing.value = ctypes.c_uint32.from_address(op.value + state.OP_INDEX).value
    status.value = state.STATUS_READY


def _timeout(space: Workspace) -> Fault:
    """Names a wave that has not ended, and how many wait for it."""
    spinning = waiting = None
    count = 0
    for wave in space.wave_states():
        status = ctypes.c_uint32.from_address(wave + state.STATUS).value
        if status == state.STATUS_READY:
            spinning = spinning or wave
        elif status == state.STATUS_BARRIER:
            waiting, count = wave, count + 1
    wave, prepared = spinning or waiting, space.prepared
    where = f"kernel {prepared.kernel.name}"
    if wave is not None:
        record = faults.Record.read(wave)
        op = ctypes.c_uint64.from_address(wave + state.OP).value
        instruction = prepared.instruction_at(op)
        where = faults.place(prepared.kernel.name, instruction, record.group, record.wave)
    waits = f"; {count} waves wait at a barrier" if count else ""
    return Fault(
        f"timeout: {space.get('executed')} wave-instructions executed, the limit is"
        f" {space.get('limit')}; {where}{waits}",
        hint="raise --max-instructions if the kernel is only long",
    )
