"""What is ordered before what, by barriers: of the workgroup, named ones, those of clusters and
those in LDS.

A wave has a clock, which counts its own signals, and has of every other wave the number of signals
that came before. A signal hands the clock to the barrier, for the phase that it takes part in; a
wave that goes past the barrier takes what was handed over in the phases that it has seen complete.
An access is ordered before those of another wave that has the number of a signal after it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from fly_run.emulator import state
from fly_run.emulator.isa.instruction import Immediate, Instruction
from fly_run.emulator.watch.observe import WaveView

# By (workgroup of the cluster, wave), or the key of a barrier in LDS: how many signals, or phases.
Clock = dict[Hashable, int]


def join(clock: Clock, other: Clock) -> None:
    """Adds to a clock what another one has."""
    for key, number in other.items():
        if clock.get(key, 0) < number:
            clock[key] = number


@dataclass
class Barrier:
    """What has been handed over at a barrier by signals of each phase and those before."""

    phases: dict[int, Clock] = field(default_factory=dict)

    def arrive(self, phase: int, clock: Clock) -> None:
        if phase not in self.phases:
            self.phases[phase] = dict(self.phases.get(phase - 1, {}))
        join(self.phases[phase], clock)

    def after(self, phase: int) -> Clock:
        """Returns what a wave gets that has seen this phase complete."""
        return self.phases.get(phase, {})


@dataclass
class Timeline:
    """The clock of a wave, whose own key is `key`: it has signalled its workgroup's barrier
    `signals` times, and passed it `barriers` times. `_goes_on` makes what it gets when it goes on
    behind a wait."""

    key: tuple[int, int]
    clock: Clock = field(default_factory=dict)
    signals: int = 0
    barriers: int = 0
    _goes_on: Callable[[], Clock] | None = None

    @property
    def next(self) -> int:
        """The number of the wave's next signal."""
        return self.clock.get(self.key, 0) + 1

    def hand_over(self) -> Clock:
        """Counts a signal; returns the clock with it."""
        self.clock[self.key] = self.next
        return dict(self.clock)

    def signal(self, barrier: Barrier, phase: int) -> None:
        """Signals a barrier in this phase."""
        barrier.arrive(phase, self.hand_over())

    def wait(self, goes_on: Callable[[], Clock]) -> None:
        """The wave waits; what it gets is known only when it goes on."""
        self._goes_on = goes_on

    def go_on(self) -> None:
        """Called before each instruction: the wave has gone past a wait."""
        if self._goes_on is not None:
            join(self.clock, self._goes_on())
            self._goes_on = None

    def signal_own(self, barrier: Barrier) -> None:
        self.signals += 1
        self.signal(barrier, self.signals)

    def wait_own(self, barrier: Barrier) -> None:
        self.barriers += 1
        phase = self.barriers
        self.wait(lambda: barrier.after(phase))

    def end(self, barrier: Barrier) -> None:
        """The wave ends: its workgroup's barrier no longer waits for it."""
        self.signal(barrier, self.signals + 1)

    def wait_cluster(self, barrier: Barrier, wave: WaveView) -> None:
        seen = _word(wave.address + state.CLUSTER_SEEN)
        self.wait(lambda: barrier.after(seen.value))


@dataclass
class NamedBarriers:
    """The named barriers of a workgroup, by number. How often each was complete, and what a wave
    has seen of that, is in the emulator's state."""

    found: dict[int, Barrier] = field(default_factory=dict)

    def step(self, timeline: Timeline, wave: WaveView, name: str, number: int) -> None:
        """An instruction with the barrier's number. Wrong numbers, waits without a barrier and so
        on are faults of the emulator's."""
        if name == "s_barrier_wait":
            number = _word(wave.address + state.JOINED).value
            seen, barrier = _word(wave.address + state.SEEN), self._of(number)
            timeline.wait(lambda: barrier.after(seen.value))
        if not 1 <= number <= state.NAMED_BARRIERS:
            return
        phase = self._completed(wave, number) + 1
        if name == "s_barrier_init":
            self._of(number).phases.pop(phase, None)  # signals so far don't count any more
        elif name.startswith("s_barrier_signal"):
            timeline.signal(self._of(number), phase)

    def _of(self, number: int) -> Barrier:
        return self.found.setdefault(number, Barrier())

    def _completed(self, wave: WaveView, number: int) -> int:
        slot = ctypes.c_uint64.from_address(wave.address + state.SLOT).value
        return _word(slot + state.SLOT_BARRIERS + 16 * number + state.COMPLETED).value


def named_number(instruction: Instruction, wave: WaveView) -> int:
    """Returns the number of a named barrier: a constant, or in M0."""
    operand = instruction.operands[0]
    if isinstance(operand, Immediate):
        return operand.value & 63
    return int(wave.sgprs[state.M0 // 4]) & 63


def _word(address: int) -> ctypes.c_uint32:
    return ctypes.c_uint32.from_address(address)
