"""What a launch on the emulator executes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.watch.observe import Count, Launch, Wants, WaveView


class Counter:
    """An observer that counts the instructions of all waves, by mnemonic, and the bytes of LDS."""

    def __init__(self) -> None:
        self.lds = 0
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
        for one in counts:
            name = one.instruction.mnemonic
            self.found[name] = self.found.get(name, 0) + one.times


def totals(found: Mapping[str, int], waves: int) -> tuple[int, int, int]:
    """The instructions, the accesses of LDS and the barriers that one of the waves executes."""
    lds = sum(times for name, times in found.items() if name.startswith("ds_"))
    counts = sum(found.values()), lds, found.get("s_barrier", 0)
    instructions, accesses, barriers = (round(count / waves) for count in counts)
    return instructions, accesses, barriers
