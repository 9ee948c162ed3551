"""The observer for `--trace`: lists executed instructions, one per line, with the values written.

    0/1  0x1540  v_add_f32_e32 v2, v2, v3    [0-35]  v2=1.5 2.5 3.5 …

These are workgroup and wave, pc, text, the active lanes if not all are active, and each register
that the instruction names as its result or has changed, with the values of its active lanes. JSON
lines have the registers' bits, for the lanes in the mask `lanes`; the last line gives the limit if
it was reached.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fly_common.errors import UsageError
from fly_common.quoting import quoted

from fly_run.emulator.isa import kinds
from fly_run.emulator.isa.instruction import GET_PC, Instruction, Register
from fly_run.emulator.watch import trace_values
from fly_run.emulator.watch.observe import Count, Enough, Launch, Wants
from fly_run.launch import limits

if TYPE_CHECKING:
    import numpy as np

    from fly_run.emulator.watch.observe import WaveView

LINES = 1000  # default limit of a trace
TEXT_WIDTH = 44  # columns; longer instructions shift the rest of the line
Triple = tuple[int, int, int]

# Instructions whose first operand is not a result: stores, comparisons, atomics without return.
_NO_RESULT = re.compile(
    r"\w*_store_|ds_write|ds_store|s_cmp|s_bitcmp|s_wait|s_nop|s_setreg|s_set_|s_sleep|s_sendmsg"
)
_ATOMIC = re.compile(r"(global|flat|t?buffer)_(\w+_)?atomic_")
_RETURNS = ("glc", "sc0", "th")


@dataclass(frozen=True)
class Only:
    """Filters for the trace: a kernel, a workgroup, a wave of each, an address range, the lanes
    whose values are shown. None stands for all."""

    kernel: str | None = None
    group: Triple | None = None
    wave: int | None = None
    pc: tuple[int, int] | None = None
    lanes: tuple[int, int] | None = None

    @staticmethod
    def parse(words: Sequence[str]) -> Only:
        """Parses KEY=VALUE words. UsageError for an invalid one."""
        found: dict[str, object] = {}
        for word in words:
            key, equals, value = word.partition("=")
            if key not in _KEYS or not equals:
                raise UsageError(
                    f"--trace-only {word}: expected KEY=VALUE", hint=f"keys: {', '.join(_KEYS)}"
                )
            try:
                found[key] = _KEYS[key](value)
            except ValueError:
                raise UsageError(
                    f"--trace-only {word}: {quoted(value)} is not a valid {key}",
                    hint="kernel=NAME group=X[,Y[,Z]] wave=N pc=0x1600-0x1680 lanes=0-7",
                ) from None
        return Only(**found)  # type: ignore[arg-type]

    def takes(self, wave: WaveView) -> bool:
        return (self.group is None or self.group == wave.group) and (
            self.wave is None or self.wave == wave.wave
        )


def _range(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    return int(first, 0), int(last if dash else first, 0)


def _group(text: str) -> Triple:
    x, y, z = [*map(int, text.split(",")), 0, 0][:3]
    return x, y, z


_KEYS = {"kernel": str, "group": _group, "wave": int, "pc": _range, "lanes": _range}


@dataclass(frozen=True)
class _Before:
    """A wave's state before an instruction."""

    exec_mask: int
    sgprs: np.ndarray
    vgprs: np.ndarray
    scc: int


class Tracer:
    """Observes launches; `lines` is the trace, in JSON if `as_json`."""

    def __init__(self, only: Only, limit: int = LINES, as_json: bool = False):
        self.lines: list[str] = []
        self._only, self._limit, self._json = only, limit, as_json
        self._traced = 0  # instructions
        self._full = False
        self._launch: Launch | None = None
        self._pending: dict[int, tuple[WaveView, Instruction, _Before]] = {}

    def begin(self, launch: Launch) -> None:
        self._launch = launch
        if not self._json and self._only.kernel in (None, launch.kernel.name):
            sizes = f"grid {limits.show(launch.grid)}, block {limits.show(launch.block)}"
            self.lines.append(f"{launch.kernel.name}: {sizes}")

    def wants(self, instruction: Instruction) -> Wants:
        if self._only.pc and not self._only.pc[0] <= instruction.pc <= self._only.pc[1]:
            return Wants.NOTHING
        return Wants.BEFORE if _ends_a_run(instruction) else Wants.BEFORE | Wants.AFTER

    def before(self, wave: WaveView, instruction: Instruction) -> None:
        assert self._launch is not None
        if self._only.kernel not in (None, self._launch.kernel.name):
            raise Enough
        if not self._only.takes(wave):
            return
        if self._traced + len(self._pending) >= self._limit:
            if not self._full:
                self._full = True
                self._add_limit_line()
            raise Enough
        state = _Before(wave.exec_mask, wave.sgprs.copy(), wave.vgprs.copy(), wave.scc)
        if _ends_a_run(instruction):
            self._add(wave, instruction, state)
        else:
            self._pending[wave.address] = wave, instruction, state

    def after(self, wave: WaveView, instruction: Instruction) -> None:
        pending = self._pending.pop(wave.address, None)
        if pending is not None:
            self._add(*pending)

    def end(self, executed: int, counts: Sequence[Count]) -> None:
        """Lists instructions that have not completed: those that faulted."""
        for pending in self._pending.values():
            self._add(*pending)
        self._pending.clear()

    def _add_limit_line(self) -> None:
        told = f"… {self._limit} instructions were traced; --trace-limit sets the limit"
        self.lines.append(json.dumps({"limit": self._limit}) if self._json else told)

    def _add(self, wave: WaveView, instruction: Instruction, before: _Before) -> None:
        assert self._launch is not None
        self._traced += 1
        line = self._launch.lines.find(instruction.pc)
        written = trace_values.written(
            wave, result(instruction), before.sgprs, before.vgprs, before.scc
        )
        active = [n for n in range(self._launch.lanes) if before.exec_mask >> n & 1]
        first, last = self._only.lanes or (0, self._launch.lanes)
        lanes = [n for n in active if first <= n <= last]
        if self._json:
            told = {
                "kernel": self._launch.kernel.name,
                "group": list(wave.group),
                "wave": wave.wave,
                "pc": instruction.pc,
                "text": instruction.text,
                "exec": f"0x{before.exec_mask:x}",
                "lanes": f"0x{sum(1 << n for n in lanes):x}",
                "source": str(line) if line else None,
                "writes": {one.name: one.bits(lanes) for one in written},
            }
            self.lines.append(json.dumps(told))
            return
        values = "  ".join(one.text(instruction.mnemonic, lanes) for one in written)
        partial = "" if len(active) == self._launch.lanes else f"[{trace_values.ranges(active)}]"
        columns = [
            f"{_place(wave.group)}/{wave.wave}",
            f"0x{instruction.pc:x}",
            f"{instruction.text:<{TEXT_WIDTH}}",
            partial,
            values,
            f"; {line}" if line else "",
        ]
        self.lines.append("  ".join(column for column in columns if column).rstrip())


def _place(group: Triple) -> str:
    x, y, z = group
    return f"{x},{y},{z}" if z else f"{x},{y}" if y else str(x)


def _ends_a_run(instruction: Instruction) -> bool:
    """Whether another instruction than the next, or another wave, may execute before control is
    past this one."""
    if kinds.kind(instruction.mnemonic) in ("branch", "barrier"):
        return instruction.mnemonic not in GET_PC
    return instruction.mnemonic.startswith(("s_endpgm", "s_trap"))


def result(instruction: Instruction) -> Register | None:
    """Returns the register that an instruction names as its result."""
    name, modifiers = instruction.mnemonic, instruction.modifiers
    if not instruction.operands or not isinstance(instruction.operands[0], Register):
        return None
    if _NO_RESULT.match(name) or _ends_a_run(instruction):
        return None
    if _ATOMIC.match(name) and not modifiers.keys() & set(_RETURNS):
        return None
    if name.startswith("ds_") and not re.match(r"ds_(read|load|\w+_rtn|\w*permute|swizzle)", name):
        return None
    return instruction.operands[0]
