"""Counters of outstanding memory operations, as the hardware keeps them for a wave.

An operation that has been issued is outstanding until a wait requires its counter to be low enough.
Counters are decremented in issue order, unless the manuals and LLVM's model (SIInsertWaitcnts) say
otherwise: scalar loads return in any order, and a counter that mixes kinds of operations that can
overtake each other is unordered too. For those only a wait for 0 is conclusive.

    gfx9     vmcnt: vector memory    lgkmcnt: LDS, scalar memory
    gfx10+   vmcnt: loads, atomics that return    vscnt: stores    lgkmcnt
    gfx12    loadcnt    storecnt    dscnt: LDS    kmcnt: scalar memory
    gfx1250  also asynccnt: copies between memory and LDS    tensorcnt: tensor data moves

A flat access counts for the memories that its lanes' addresses select. A store's data may be
overwritten at once on all of these targets, so expcnt is irrelevant here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fly_run.emulator.isa.instruction import Immediate, Instruction, Name
from fly_run.emulator.semantics.base.access import Access, Atomic
from fly_run.emulator.strict.dataflow import Effect

_COUNT = re.compile(r"(\w+)\((\d+)\)")
# The counters of the waits of gfx10 and gfx12; a combined wait has the second counter in bits 5:0
# and the first in bits 13:8.
_WAITS = {
    "s_waitcnt_vscnt": ("vscnt",),
    "s_waitcnt_vmcnt": ("vmcnt",),
    "s_waitcnt_lgkmcnt": ("lgkmcnt",),
    "s_wait_loadcnt": ("loadcnt",),
    "s_wait_storecnt": ("storecnt",),
    "s_wait_dscnt": ("dscnt",),
    "s_wait_kmcnt": ("kmcnt",),
    "s_wait_asynccnt": ("asynccnt",),
    "s_wait_tensorcnt": ("tensorcnt",),
    "s_wait_loadcnt_dscnt": ("loadcnt", "dscnt"),
    "s_wait_storecnt_dscnt": ("storecnt", "dscnt"),
}
# s_wait_idle waits for all of them.
_EVERY = sorted({counter for counters in _WAITS.values() for counter in counters})


@dataclass(eq=False)
class Outstanding:
    """An issued operation. `kind` determines with which others it is ordered; `places` are the byte
    offsets in the wave state of the rows or dwords that it will write."""

    instruction: Instruction
    counter: str
    kind: str
    places: frozenset[int]


@dataclass
class Counters:
    """The outstanding operations of a wave of `generation` 9, 10, 11 or 12."""

    generation: int
    queues: dict[str, list[Outstanding]] = field(default_factory=dict)
    written: dict[int, Outstanding] = field(default_factory=dict)  # by place

    def counter_of(self, effect: Effect, space: str) -> str:
        """Returns the counter of an access to `space`: "memory", "lds" or "scalar"."""
        late = self.generation >= 12
        if space == "scalar":
            return "kmcnt" if late else "lgkmcnt"
        if space == "lds":
            return "dscnt" if late else "lgkmcnt"
        detail = effect.operation.detail
        stores = isinstance(detail, Access) and detail.kind == "store"
        stores |= isinstance(detail, Atomic) and not detail.returns
        if stores and self.generation >= 10:
            return "storecnt" if late else "vscnt"
        return "loadcnt" if late else "vmcnt"

    def issue(
        self, instruction: Instruction, counter: str, kind: str, places: frozenset[int]
    ) -> Outstanding:
        made = Outstanding(instruction, counter, kind, places)
        self.queues.setdefault(counter, []).append(made)
        for place in places:
            self.written[place] = made
        return made

    def wait(self, instruction: Instruction) -> list[Outstanding]:
        """Returns the operations that a wait completes; empty for other instructions."""
        done: list[Outstanding] = []
        for counter, count in _waited(instruction).items():
            queue = self.queues.get(counter, [])
            if count >= len(queue):
                continue
            ordered = len({one.kind for one in queue}) == 1 and queue[0].kind != "scalar"
            if count and not ordered:
                continue
            cut = len(queue) - count
            done += queue[:cut]
            del queue[:cut]
        for one in done:
            for place in one.places:
                if self.written.get(place) is one:
                    del self.written[place]
        return done

    def pending(self, one: Outstanding) -> bool:
        return one in self.queues.get(one.counter, ())


def _waited(instruction: Instruction) -> dict[str, int]:
    """Returns the counters of a wait and their limits."""
    name = instruction.mnemonic
    if name == "s_wait_idle":
        return dict.fromkeys(_EVERY, 0)
    if name == "s_waitcnt":
        found = (
            _COUNT.fullmatch(operand.text)
            for operand in instruction.operands
            if isinstance(operand, Name)
        )
        return {match[1]: int(match[2]) for match in found if match}
    if name not in _WAITS:
        return {}
    *_, number = instruction.operands
    if not isinstance(number, Immediate):
        return {}
    first, *second = _WAITS[name]
    if not second:
        return {first: number.value}
    return {first: number.value >> 8 & 0x3F, second[0]: number.value & 0x3F}
