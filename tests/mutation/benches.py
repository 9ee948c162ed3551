"""Probes of single instructions, prepared once: encoded for a device that stays open, with the
oracle's results. Running them again costs a millisecond.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field

import numpy as np
from fly_image.amd.code_object import CodeObject
from fly_run.emulator.machine import Emulator
from oracle.comparison import runs
from oracle.launching import build, launch
from oracle.probes import probe

from mutation.handlers import Handlers

AT_ONCE = 240  # probes per bench
RECORD = probe.WAVES * probe.LANES * 16  # bytes that a probe writes

# The output of benches, one after the other.
_outputs = np.zeros(AT_ONCE * RECORD, np.uint8)


@dataclass
class Bench:
    """`expected`: the oracle's records, in shared memory that a process forked later fills, until
    they are `settled`; `uses`: the handlers in its code."""

    run: runs.Run
    batch: probe.Batch
    data: bytes
    expected: np.ndarray
    uses: set[str] = field(default_factory=set)

    @property
    def grid(self) -> launch.Triple:
        return (self.run.frame.waves, 1, 1)

    @property
    def block(self) -> launch.Triple:
        return (self.run.frame.lanes, 1, 1)

    def ask(self) -> None:
        """Computes `expected`."""
        arguments = [self.batch.inputs, self.batch.outputs(), self.batch.masks]
        self.expected[:] = launch.on_oracle(
            self.data, "probe", self.grid, self.block, arguments
        ).arguments[1]

    def settle(self) -> None:
        """Moves `expected` out of shared memory: a mutant that writes anywhere must not change the
        reference of later trials."""
        self.expected = self.expected.copy()

    def open(self, handlers: Handlers) -> None:
        """Encodes the probes, and runs them once."""
        self._code = CodeObject.parse(self.data)
        self._device = Emulator(self.run.target)
        self._records = _outputs[: len(self.batch.probes) * RECORD].view(np.uint32)
        self._records = self._records.reshape(self.expected.shape)
        arrays = {"inputs": self.batch.inputs, "outputs": self._records, "masks": self.batch.masks}
        places = [
            self._device.adopt(
                array.ctypes.data, array.nbytes, writable=name == "outputs", label=name
            )
            for name, array in arrays.items()
        ]
        self._kernarg = np.array(places, np.uint64).tobytes()
        with handlers.recording() as used:
            self._function = self._device.load(self._code).function("probe")
            self.launch()
        self.uses = used

    def launch(self) -> np.ndarray:
        """Returns the output of the emulator in its present state."""
        self._records[:] = 0
        self._device.launch(self._function, self.grid, self.block, self._kernarg)
        return self._records

    def differs(self) -> bool:
        """Whether the emulator in its present state differs from the oracle."""
        got = self.launch()
        for position, one in enumerate(self.batch.probes):
            if (got[position] == self.expected[position]).all():
                continue
            if probe.differences(one, self.expected[position], got[position]).any():
                return True
        return False


def prepared(targets: tuple[str, ...]) -> list[Bench]:
    """Returns the suite's comparisons on these targets, in parts, not yet opened."""
    found = []
    for run in [*runs.gfx9(), *runs.OTHERWISE, *runs.rdna(), *runs.wide()]:
        if run.target not in targets:
            continue
        chosen = run.probes()
        for start in range(0, len(chosen), AT_ONCE):
            batch = run.batch(chosen[start : start + AT_ONCE])
            memory = mmap.mmap(-1, len(batch.probes) * RECORD)
            expected = np.frombuffer(memory, np.uint32).reshape(batch.outputs().shape)
            found.append(Bench(run, batch, build.assemble(batch.text, run.target), expected))
    return found
