"""One launch: the loop that runs the grid in slices and handles stopped waves.

A launch starts on the calling thread. If it is not done after its first slice, more threads join,
which take workgroups from the same counter; short launches do not pay for threads. After an early
slice threads join only if processors are idle: on a busy machine a thread that runs for a
millisecond waits longer than that to be scheduled (benchmarks/emulator.py measures the gain). In a
round all threads run a slice; stopped waves are handled between rounds, when no thread runs.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import re
import threading
from pathlib import Path
from typing import Any

from fly_common.errors import Fault, InputError

from fly_run.devices.options import Options
from fly_run.emulator import state
from fly_run.emulator.engine import faults, wave_report
from fly_run.emulator.engine.resident_workgroups import ResidentWorkgroups
from fly_run.emulator.engine.workspace import Workspace

# Instructions per thread between two returns to Python.
EARLY_SLICE, FIRST_SLICE, SLICE = 1 << 16, 1 << 19, 1 << 25
LOAD = Path("/proc/loadavg")
FOREVER = (1 << 62) - 1
MOST_THREADS = 64
LONG = "raise --max-instructions if the kernel is only long; its waves were here:"
WILD = "a function's address is wrong, or its return address was overwritten"
# The order of workgroups affects the results of these.
_ATOMIC = re.compile(r"(?:global|flat|buffer|s|s_buffer)_(?:\w+_)?atomic_")


def run(space: Workspace, driver: Any, kernarg: bytes, options: Options) -> None:
    """Runs the grid with the library's `driver`. Raises Fault for an error of the kernel, and if
    the launch exceeds the options' limit of wave instructions."""
    limit = FOREVER if options.max_instructions is None else options.max_instructions
    space.begin(kernarg, limit)
    unfinished, length = list(space.members), EARLY_SLICE
    while unfinished:
        results = _round(unfinished, driver, length, limit - space.executed)
        over = space.executed > limit
        for residents, result in zip(unfinished, results, strict=True):
            if result == state.RUN_FAULT:
                _handle_stop(space, residents)
            elif result == state.RUN_TIMEOUT or (over and result == state.RUN_SLICE):
                raise _timeout(space, limit)
        if options.progress is not None:
            options.progress(space.done_groups, space.groups)
        pairs = zip(unfinished, results, strict=True)
        unfinished = [residents for residents, result in pairs if result != state.RUN_DONE]
        if unfinished and length < SLICE:
            wanted = min(_threads(space, options) - 1, space.pending_groups)
            early = length < FIRST_SLICE
            more = _early_threads(space, options, wanted) if early else wanted
            unfinished += [space.join() for _ in range(more)]
            length = FIRST_SLICE if more < wanted and early else SLICE


def _threads(space: Workspace, options: Options) -> int:
    """Returns the number of threads for a long grid. Unless the user chooses, a kernel with atomics
    on global memory gets one thread, because the order of its workgroups would otherwise vary, and
    so does an observed kernel."""
    if options.observers:
        return 1
    if options.threads is not None:
        return min(options.threads, MOST_THREADS)
    if any(_ATOMIC.match(mnemonic) for mnemonic in space.prepared.mnemonics):
        return 1
    return min(len(os.sched_getaffinity(0)), MOST_THREADS)


def _early_threads(space: Workspace, options: Options, wanted: int) -> int:
    """Returns how many of the wanted threads join after the early slice: none if less than half of
    the grid is left, and by default no more than there are idle processors."""
    if 2 * space.pending_groups < space.groups:
        return 0
    return wanted if options.threads is not None else min(wanted, _idle_processors())


def _idle_processors() -> int:
    """Counts idle processors from Linux's number of running tasks, which includes this process."""
    try:
        running = int(LOAD.read_text().split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return 0
    return max(0, len(os.sched_getaffinity(0)) - running)


def _round(members: list[ResidentWorkgroups], driver: Any, length: int, left: int) -> list[int]:
    """Runs a slice of each member's workgroups, each on its own thread, the first on this one. When
    one member's slice ends, the round ends for all: a thread that the system has not scheduled by
    then does nothing and is not waited for."""
    for residents in members:
        executed = residents.get("executed")
        residents.set("slice_end", executed + length)
        residents.set("limit", executed + left)
    if len(members) == 1:  # no thread to start, and no other slice to end
        return [driver(members[0].context)]
    results = [state.RUN_SLICE] * len(members)

    def end_round() -> None:
        for residents in members:
            residents.set("slice_end", 0)

    def work(number: int) -> None:
        # The call releases the GIL; signal handlers run when it returns.
        results[number] = driver(members[number].context)
        end_round()

    gate, over, begun = _thread.allocate_lock(), threading.Event(), []

    def help_with(number: int) -> None:
        with gate:
            if over.is_set():
                return
            done = _thread.allocate_lock()
            done.acquire()
            begun.append(done)
        try:
            work(number)
        finally:
            done.release()

    try:
        for number in range(1, len(members)):
            # threading.Thread.start would wait until the thread runs.
            _thread.start_new_thread(help_with, (number,))
        work(0)
    finally:
        with gate:
            over.set()
        end_round()
        for done in begun:
            done.acquire()
    return results


def _handle_stop(space: Workspace, residents: ResidentWorkgroups) -> None:
    """Handles a stopped wave: decodes new code, or raises its fault."""
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
            raise InputError("there is no code", hint=WILD)
        if pc % 4:
            raise InputError(f"pc 0x{pc:x} is not a multiple of 4", hint=WILD)
        program = prepared.add_code(pc)
    except InputError as error:
        what = f"jump to 0x{record.address:x}: {error.message}"
        raise faults.fault(what, prepared, instruction, record, error.hint) from None
    space.update_code()
    op.value = program.address_of(pc)
    landing = ctypes.c_uint64.from_address(wave + state.LANDING)
    landing.value = ctypes.c_uint32.from_address(op.value + state.OP_INDEX).value
    status.value = state.STATUS_READY


def _timeout(space: Workspace, limit: int) -> Fault:
    """Returns a fault that names an unfinished wave and the location of all of them."""
    positions = wave_report.waves(space)
    what = f"timeout: {space.executed} wave-instructions executed, the limit is {limit}"
    running = next((one for one in positions if one.status == state.STATUS_READY), None)
    first = running or next(iter(positions), None)
    if first is None:
        return Fault(f"{what}; kernel {space.prepared.kernel.name}", hint=LONG)
    hint = "\n  ".join([LONG, *wave_report.table(positions, space.prepared)])
    record = faults.Record.read(first.address)
    return faults.fault(what, space.prepared, first.instruction, record, hint)
