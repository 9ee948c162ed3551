"""One launch: the loop that runs the grid in slices, and what it does when a wave stops.

A launch begins on the calling thread. One that is not done after its first slice gets more threads,
which take workgroups from the same counter; short launches never pay for them. In a round all
threads run a slice; what one of them stopped for is looked after while none runs.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from typing import Any

from fly_common.errors import Fault, InputError

from fly_run.devices.options import Options
from fly_run.emulator import state
from fly_run.emulator.engine import faults, wave_report
from fly_run.emulator.engine.resident_workgroups import Residents
from fly_run.emulator.engine.workspace import Workspace

FIRST_SLICE, SLICE = 1 << 19, 1 << 25  # instructions of a thread between two looks by Python
FOREVER = (1 << 62) - 1
MOST_THREADS = 64
LONG = "raise --max-instructions if the kernel is only long; its waves were here:"
WILD = "a function's address is wrong, or its return address was overwritten"
# The order of workgroups shows in what these leave behind, or give back.
_ATOMIC = re.compile(r"(?:global|flat|buffer|s|s_buffer)_(?:\w+_)?atomic_")


def run(space: Workspace, driver: Any, kernarg: bytes, options: Options) -> None:
    """Runs the grid by the library's `driver`. Raises Fault for what the kernel does wrong, and
    when more wave instructions have run than the options allow."""
    limit = FOREVER if options.max_instructions is None else options.max_instructions
    space.begin(kernarg, limit)
    unfinished, length = list(space.members), FIRST_SLICE
    while unfinished:
        results = _round(unfinished, driver, length, limit - space.executed)
        over = space.executed > limit
        for residents, result in zip(unfinished, results, strict=True):
            if result == state.RUN_FAULT:
                _attend(space, residents)
            elif result == state.RUN_TIMEOUT or (over and result == state.RUN_SLICE):
                raise _timeout(space, limit)
        if options.progress is not None:
            options.progress(space.done_groups, space.groups)
        pairs = zip(unfinished, results, strict=True)
        unfinished = [residents for residents, result in pairs if result != state.RUN_DONE]
        if unfinished and length == FIRST_SLICE:
            length = SLICE
            more = min(_threads(space, options) - 1, space.pending_groups)
            unfinished += [space.join() for _ in range(more)]


def _threads(space: Workspace, options: Options) -> int:
    """How many threads share a long grid. Unless the user says so, a kernel with atomics on global
    memory keeps to one: with more, the order of its workgroups would be another each time. So does
    one that is observed."""
    if options.observers:
        return 1
    if options.threads is not None:
        return min(options.threads, MOST_THREADS)
    if any(_ATOMIC.match(mnemonic) for mnemonic in space.prepared.mnemonics):
        return 1
    return min(len(os.sched_getaffinity(0)), MOST_THREADS)


def _round(members: list[Residents], driver: Any, length: int, left: int) -> list[int]:
    """Runs a slice of each member's workgroups, each on a thread of its own, the first one's on
    this. The round ends for all when it ends for one."""
    for residents in members:
        executed = residents.get("executed")
        residents.set("slice_end", executed + length)
        residents.set("limit", executed + left)
    if len(members) == 1:  # no thread is started, nobody else's slice ends
        return [driver(members[0].context)]
    results = [state.RUN_SLICE] * len(members)

    def end_round() -> None:
        for residents in members:
            residents.set("slice_end", 0)

    def work(number: int) -> None:
        # The call lets other Python threads run; a signal's handler runs when it returns.
        results[number] = driver(members[number].context)
        end_round()

    others = [threading.Thread(target=work, args=(n,)) for n in range(1, len(members))]
    try:
        for thread in others:
            thread.start()
        work(0)
    finally:
        end_round()
        for thread in others:
            if thread.ident is not None:
                thread.join()
    return results


def _attend(space: Workspace, residents: Residents) -> None:
    """Looks after the wave that stopped: new code to decode, or a fault."""
    prepared, wave = space.prepared, residents.get("stopped_wave")
    prepared.watch.check()
    record = faults.Record.read(wave, prepared.kernel.wavefront_size)
    status = ctypes.c_uint32.from_address(wave + state.STATUS)
    op = ctypes.c_uint64.from_address(wave + state.OP)
    instruction = prepared.instruction_at(op.value)
    if status.value != state.STATUS_DECODE:
        sizes = space.lds, space.scratch
        raise faults.describe(record, prepared, instruction, space.arena, *sizes)
    pc = record.address - prepared.loaded.base
    try:
        if not 0 <= pc - prepared.loaded.low < prepared.loaded.size:
            raise InputError("no code is there", hint=WILD)
        if pc % 4:
            raise InputError(f"pc 0x{pc:x} is no multiple of 4", hint=WILD)
        program = prepared.add_code(pc)
    except InputError as error:
        what = f"jump to 0x{record.address:x}: {error.message}"
        raise faults.fault(what, prepared, instruction, record, error.hint) from None
    space.update_constants()
    op.value = program.address_of(pc)
    landing = ctypes.c_uint64.from_address(wave + state.LANDING)
    landing.value = ctypes.c_uint32.from_address(op.value + state.OP_INDEX).value
    status.value = state.STATUS_READY


def _timeout(space: Workspace, limit: int) -> Fault:
    """Names a wave that has not ended, and tells where they all are."""
    standings = wave_report.waves(space)
    what = f"timeout: {space.executed} wave-instructions executed, the limit is {limit}"
    running = next((one for one in standings if one.status == state.STATUS_READY), None)
    first = running or next(iter(standings), None)
    if first is None:
        return Fault(f"{what}; kernel {space.prepared.kernel.name}", hint=LONG)
    hint = "\n  ".join([LONG, *wave_report.table(standings, space.prepared)])
    record = faults.Record.read(first.address)
    return faults.fault(what, space.prepared, first.instruction, record, hint)
