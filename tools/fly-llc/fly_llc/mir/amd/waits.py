"""Tracks pending memory operations, and which of them a wait waits for.

Counters (LLVM's guide for AMDGPU, "Memory Model"; CDNA3 ISA, "Data Dependency Resolution"): each
memory instruction increments a counter, and decrements it on completion. Vector loads complete in
order, and so do LDS operations; scalar loads complete in any order. A wait limits the number of
pending operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fly_common.record import record
from fly_target.amd.processors import version
from fly_target.amd.waits import BY_MAJOR, WaitField, Waits

from fly_llc.mir.amd import kinds, registers
from fly_llc.mir.instruction import Instruction

MOST = 63  # the maximum of any counter on gfx9


@record
class Layout:
    """A target's S_WAITCNT: the fields of its immediate by counter, "vm" and "lgkm". EXPCNT is not
    included, because it is never changed here."""

    waits: Waits

    def __iter__(self) -> Iterator[str]:
        return iter(("vm", "lgkm"))

    def items(self) -> Iterable[tuple[str, WaitField]]:
        return (("vm", self.waits.vm), ("lgkm", self.waits.lgkm))

    @property
    def exports(self) -> WaitField:
        return self.waits.exp

    @property
    def nothing(self) -> int:
        """The immediate of a wait without effect."""
        return self.waits.word()

    def __getitem__(self, name: str) -> WaitField:
        return dict(self.items())[name]

    def counters(self, one: Instruction) -> tuple[str, ...]:
        """The counters of S_WAITCNT that an instruction increments."""
        if kinds.is_vector_memory(one):
            found = () if self.waits.stores_apart and not one.results else ("vm",)
            # A flat access may access LDS, and increments that counter too.
            return (*found, "lgkm") if one.opcode.startswith("FLAT_") else found
        if kinds.is_lds(one) or kinds.is_scalar_memory(one) or one.opcode.startswith("S_SENDMSG"):
            return ("lgkm",)
        return ()


def layout(cpu: str) -> Layout | None:
    """The encoding of a processor's S_WAITCNT, or None if it has no such instruction. Accepts any
    processor that LLVM knows, not only this compiler's targets."""
    number = version(cpu)
    found = BY_MAJOR.get(number[0]) if number else None
    return None if found is None or found.split else Layout(found)


@record
class Pending:
    """`ages` maps each unit that a pending operation will write to the minimum number of operations
    of the counter that were issued after it. `unordered`: there are pending scalar loads, which may
    complete in any order."""

    ages: tuple[tuple[str, int], ...] = ()
    unordered: bool = False

    @property
    def units(self) -> frozenset[str]:
        return frozenset(unit for unit, _ in self.ages)

    def issue(self, written: frozenset[str], unordered: bool) -> Pending:
        ages = {unit: min(age + 1, MOST) for unit, age in self.ages}
        ages.update(dict.fromkeys(written, 0))
        return Pending(tuple(sorted(ages.items())), self.unordered or unordered)

    def wait(self, count: int) -> Pending:
        if count == 0:
            return Pending()
        if self.unordered:
            return self
        return Pending(tuple((unit, age) for unit, age in self.ages if age < count))

    def merge(self, other: Pending) -> Pending:
        ages = dict(self.ages)
        for unit, age in other.ages:
            ages[unit] = min(age, ages.get(unit, MOST))
        return Pending(tuple(sorted(ages.items())), self.unordered or other.unordered)

    def needed(self, touched: frozenset[str]) -> int | None:
        """The maximum number of pending operations that a wait must leave before `touched` may be
        used, or None if no wait is needed."""
        ages = [age for unit, age in self.ages if unit in touched]
        if not ages:
            return None
        return 0 if self.unordered else min(ages)


def written_later(one: Instruction) -> frozenset[str]:
    """The units that a memory instruction writes on completion."""
    return registers.defined(one) - {"exec_lo", "exec_hi", "scc"}
