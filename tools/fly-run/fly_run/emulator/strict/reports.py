"""The messages of `--strict`: what is wrong, where, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from fly_common.errors import Fault

from fly_run.emulator import state
from fly_run.emulator.engine import faults
from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.strict import races
from fly_run.emulator.strict.undefined.shadow import PRIVATE, SHARED, Use
from fly_run.emulator.strict.waits import Counters, Outstanding
from fly_run.emulator.watch.observe import Launch, WaveView

WAIT_HINTS = {
    "vmcnt": "s_waitcnt vmcnt({})",
    "vscnt": "s_waitcnt_vscnt null, {}",
    "lgkmcnt": "s_waitcnt lgkmcnt({})",
}


@dataclass(frozen=True)
class Reports:
    """Makes the faults of a launch."""

    launch: Launch

    def too_early(
        self,
        wave: WaveView,
        counters: Counters,
        instruction: Instruction,
        load: Outstanding,
        word: int,
        what: str,
    ) -> Fault:
        queue = counters.queues[load.counter]
        younger = len(queue) - 1 - queue.index(load)
        ordered = len({one.kind for one in queue}) == 1 and load.kind != "scalar"
        wait = WAIT_HINTS.get(load.counter, f"s_wait_{load.counter} {{}}")
        message = (
            f"`{self._register(word)}` is {what} before its load has completed:"
            f" it is loaded by {self.instruction_text(load.instruction)}"
        )
        hint = f"insert {wait.format(younger if ordered else 0)} between them"
        return self.fault(wave, instruction, message, hint)

    def race(self, wave: WaveView, made: races.Access, other: races.Access, byte: int) -> Fault:
        if other.wave == made.wave and other.kind == "load":
            message = (
                f"byte 0x{byte:x} of LDS is overwritten before it has been read:"
                f" it is stored to memory by {self.instruction_text(other.instruction)}"
            )
            hint = "insert a wait for the store between them"
            return self.fault(wave, made.instruction, message, hint)
        if other.wave == made.wave:
            message = (
                f"byte 0x{byte:x} of LDS is used before its load has completed:"
                f" it is loaded by {self.instruction_text(other.instruction)}"
            )
            hint = "insert a wait for the load between them"
            return self.fault(wave, made.instruction, message, hint)
        verbs = {"load": "loaded", "store": "stored", "atomic": "changed", "arrival": "changed"}
        message = (
            f"LDS race: byte 0x{byte:x} is {verbs[made.kind]} by wave {made.wave} and"
            f" {verbs[other.kind]} by wave {other.wave}, without synchronization; the other"
            f" is {self.instruction_text(other.instruction)}"
        )
        hint = "insert a barrier between them, and wait for the earlier access before it"
        return self.fault(wave, made.instruction, message, hint)

    def uninitialised(self, wave: WaveView, instruction: Instruction, use: Use) -> Fault:
        if use.origin in (SHARED, PRIVATE):
            memory = "LDS" if use.origin == SHARED else "private memory"
            what = f"a value from {memory} that was never stored"
        else:
            what = f"`{self._register(use.origin)}`, which was never written,"
        lane = f" of lane {use.lane}" if use.lane is not None else ""
        message = f"uninitialized value: {what} determines {use.what}{lane}"
        return self.fault(
            wave, instruction, message, "a variable is read on a path that does not initialize it"
        )

    def _register(self, word: int) -> str:
        """Returns the name of the register at this offset in the wave state."""
        if word < state.SGPR + 512:
            number = (word - state.SGPR) // 4
            names = {106: "vcc_lo", 107: "vcc_hi", 124: "m0", 126: "exec_lo", 127: "exec_hi"}
            return names.get(number, f"s{number}")
        if word == state.SCC:
            return "scc"
        row = (word - state.VGPR) // state.ROW
        base = self.launch.allocation.accumulation_base
        return f"a{row - base}" if row >= base else f"v{row}"

    def instruction_text(self, instruction: Instruction) -> str:
        line = self.launch.lines.find(instruction.pc)
        where = f" ({line})" if line else ""
        return f"pc 0x{instruction.pc:x} '{instruction.text}'{where}"

    def fault(self, wave: WaveView, instruction: Instruction, message: str, hint: str) -> Fault:
        where = faults.place(self.launch.kernel.name, instruction, wave.group, wave.wave)
        place = self.launch.lines.place(instruction.pc)
        return Fault(f"{message}; {where}", place=place, hint=hint, pc=instruction.pc)
