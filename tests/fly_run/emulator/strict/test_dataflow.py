"""What instructions read and write: known for every one that the emulator has, and true."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from chosen_targets import one_of_each
from emulator_support.engine import compile_opencl, launch
from fly_common.errors import InputError
from fly_run.devices.options import Options
from fly_run.emulator import coverage, state
from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.isa.parse import parse
from fly_run.emulator.lowering.encode import Encoder
from fly_run.emulator.lowering.registers import Allocation, Constants, Registers, Unsupported
from fly_run.emulator.machine import Emulator
from fly_run.emulator.semantics import table
from fly_run.emulator.strict.dataflow import UnknownEffect, effects_of
from fly_run.emulator.watch.observe import Count, Launch, Wants, WaveView
from fly_target.registry import EMULATED

from .strict_support import KERNELS


@pytest.mark.parametrize("target", one_of_each(EMULATED))
def test_every_instruction_is_known(target: str) -> None:
    registers = Registers(
        Allocation(256, 256, 256, 512),
        Constants(state.VGPR, 1 << 26),
        EMULATED[target],
        EMULATED[target].wave_size,
    )
    operations = table.operations_of(target)
    unknown: set[str] = set()
    tried = 0
    for name, forms in coverage.universe(target).items():
        for text, code in forms[:4]:
            try:
                instruction = parse(text, 0, len(code))
                steps = Encoder(registers, operations, {}, 0).lower(instruction)
            except (Unsupported, InputError):
                continue
            tried += 1
            try:
                effects_of(instruction, steps, operations, registers)
            except UnknownEffect as missing:
                unknown.add(f"{name}: {missing}")
    assert not unknown
    assert tried > 1000


class Written:
    """Holds what changed in a wave's registers against what the instruction is said to write."""

    def __init__(self) -> None:
        self.checked = 0
        self.old: dict[int, tuple[np.ndarray, np.ndarray, int]] = {}

    def begin(self, launch: Launch) -> None:
        self.launch = launch
        base = state.VGPR + launch.allocation.rows * state.ROW
        target = EMULATED[launch.target]
        registers = Registers(launch.allocation, Constants(base, 1 << 24), target, launch.lanes)
        self.encoder = Encoder(registers, table.operations_of(launch.target), {}, 0)

    def wants(self, instruction: Instruction) -> Wants:
        return Wants.BEFORE | Wants.AFTER

    def before(self, wave: WaveView, instruction: Instruction) -> None:
        self.old[wave.address] = wave.sgprs.copy(), wave.vgprs.copy(), wave.scc

    def after(self, wave: WaveView, instruction: Instruction) -> None:
        encoder = self.encoder
        steps = encoder.lower(instruction)
        effects = effects_of(instruction, steps, encoder.table, encoder.registers)
        said = {word for one in effects for place in one.writes for word in place.words()}
        sgprs, vgprs, scc = self.old[wave.address]
        changed = {4 * int(n) for n in np.flatnonzero(sgprs != wave.sgprs)}
        rows = np.flatnonzero((vgprs != wave.vgprs).any(1))
        changed |= {state.VGPR + int(row) * state.ROW for row in rows}
        changed |= {state.SCC} if scc != wave.scc else set()
        assert changed <= said, f"{instruction.text}: {sorted(changed - said)}"
        self.checked += 1

    def end(self, executed: int, counts: Sequence[Count]) -> None:
        pass


@pytest.mark.parametrize("target", one_of_each(EMULATED))
@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_nothing_else_is_written(target: str, level: str) -> None:
    for source in KERNELS.values() if level == "-O3" else [KERNELS["count"]]:
        observer = Written()
        code = compile_opencl(source, target, level)
        device = Emulator(target, Options(observers=(observer,)))
        a, b = np.linspace(-1, 1, 512, dtype="f4"), np.zeros(512, "f4")
        launch(code, [a, b, np.int32(500)], 1, 256, device=device)
        assert observer.checked > 20
