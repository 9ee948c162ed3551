"""What a launch on the emulator executes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.watch.observe import Count, Launch, Wants, WaveView


class Counter:
    """An observer that counts the instructions of all waves, one by one and by mnemonic, and the
    bytes of LDS."""

    def __init__(self) -> None:
        self.lds = 0
        self.counts: list[Count] = []
        self.found: dict[str, int] = {}

    def begin(self, launch: Launch) -> None:
        self.lds = launch.lds

    def wants(self, instruction: Instruction) -> Wants:
        return Wants.COUNT

    def before(self, wave: WaveView, instruction: Instruction) -> None:
        """Not called, because `wants` never asks for it."""

    def after(self, wave: WaveView, instruction: Instruction) -> None:
        """Not called, because `wants` never asks for it."""

    def end(self, executed: int, counts: Sequence[Count]) -> None:
        self.counts.extend(counts)
        for one in counts:
            name = one.instruction.mnemonic
            self.found[name] = self.found.get(name, 0) + one.times


def totals(found: Mapping[str, int], waves: int) -> tuple[int, int, int]:
    """The instructions, the accesses of LDS and the barriers that one of the waves executes."""
    lds = sum(times for name, times in found.items() if name.startswith("ds_"))
    counts = sum(found.values()), lds, found.get("s_barrier", 0)
    instructions, accesses, barriers = (round(count / waves) for count in counts)
    return instructions, accesses, barriers


def without_effect(counts: Sequence[Count], function: Any) -> dict[str, int]:
    """Executions, by mnemonic, of the instructions for which the emulator does nothing: waits,
    `s_delay_alu`, `s_clause`, cache controls. `function` is the loaded kernel."""
    found: dict[str, int] = {}
    for one in counts:
        if not function.encoder.lower(one.instruction):
            name = one.instruction.mnemonic
            found[name] = found.get(name, 0) + one.times
    return found
