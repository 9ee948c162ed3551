"""The handlers that only one target uses, found by lowering every form of its instructions."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

from fly_common.errors import InputError
from fly_run.emulator import coverage
from fly_run.emulator.isa.parse import parse
from fly_run.emulator.lowering.encode import Encoder
from fly_run.emulator.lowering.registers import Allocation, Constants, Registers
from fly_run.emulator.semantics import table
from fly_target import registry

from mutation.handlers import Handlers

# Forms that differ from those of `coverage` in a number only: barriers of clusters, named ones.
MORE = (
    *("s_barrier_signal -3", "s_barrier_signal_isfirst -3", "s_barrier_wait 0xfffd"),
    *("s_barrier_signal 1", "s_barrier_signal_isfirst 1", "s_barrier_wait 0x1"),
    *("s_barrier_signal_isfirst -1",),
)


def handlers(target: str) -> frozenset[str]:
    """Returns the names of the handlers of `target` that no other emulated target uses."""
    # Targets with the same traits have the same instructions. A process each: enumerating the
    # encodings of one takes about ten seconds.
    distinct = {registry.find(name).traits: name for name in registry.EMULATED if name != target}
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        found, *others = processes.map(_used, [target, *distinct.values()])
    return frozenset(found.difference(*others))


def _used(target: str) -> set[str]:
    row, operations = registry.find(target), table.operations_of(target)
    registers = Registers(Allocation(256, 256, 256, 512), Constants(0, 1 << 26), row, row.wave_size)
    known = {name: 1 for operation in table.operations().values() for name in operation.handlers}
    recorded = Handlers(known)
    texts = [form for forms in coverage.universe(target).values() for form in forms]
    texts += [(text, bytes(4)) for text in MORE]
    with recorded.recording() as used:
        for text, code in texts:
            try:
                encoder = Encoder(registers, operations, recorded, null_region=0)
                encoder.encode({0: parse(text, 0, len(code))}, text)
            except InputError:
                continue
    return used
