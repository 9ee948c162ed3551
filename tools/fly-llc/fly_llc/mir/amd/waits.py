"""Which memory operations are on their way, and which of them a wait waits for.

Counters (LLVM's guide for AMDGPU, "Memory Model"; CDNA3 ISA, "Data Dependency Resolution"): each
memory instruction adds one to a counter, and takes it off when it is done. Vector loads are done in
order, LDS operations too; scalar loads in any order. A wait lets at most so many be on their way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fly_target.amd.processors import version
from fly_target.amd.waits import BY_MAJOR, WaitField, Waits

from fly_llc.mir.amd import kinds, registers
from fly_llc.mir.instruction import Instruction

MOST = 63  # no counter of gfx9 counts further


@dataclass(frozen=True)
class Layout:
    """A target's S_WAITCNT: the fields of its immediate by counter, "vm" and "lgkm". EXPCNT is left
    out: nothing here changes it."""

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
        """The immediate of a wait that waits for nothing."""
        return self.waits.word()

    def __getitem__(self, name: str) -> WaitField:
        return dict(self.items())[name]

    def counters(self, one: Instruction) -> tuple[str, ...]:
        """The counters that an instruction adds to, of those that S_WAITCNT waits for."""
        if kinds.is_vector_memory(one):
            found = () if self.waits.stores_apart and not one.results else ("vm",)
            # A flat access may go to LDS, and counts there too.
            return (*found, "lgkm") if one.opcode.startswith("FLAT_") else found
        if kinds.is_lds(one) or kinds.is_scalar_memory(one) or one.opcode.startswith("S_SENDMSG"):
            return ("lgkm",)
        return ()


def layout(cpu: str) -> Layout | None:
    """How a processor's S_WAITCNT is encoded; None where it has none of this kind. Any processor
    that LLVM knows is taken, not only this compiler's targets."""
    number = version(cpu)
    found = BY_MAJOR.get(number[0]) if number else None
    return None if found is None or found.split else Layout(found)


@dataclass(frozen=True)
class Pending:
    """`ages` tells for each unit that an operation on its way will write, how many operations of
    the counter were issued after it, at least. `unordered`: scalar loads are among them, which may
    overtake each other and everything else."""

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
        """What a wait must let on its way at most, before `touched` may be used; None: no wait."""
        ages = [age for unit, age in self.ages if unit in touched]
        if not ages:
            return None
        return 0 if self.unordered else min(ages)


def written_later(one: Instruction) -> frozenset[str]:
    """What a memory instruction writes when it is done."""
    return registers.defined(one) - {"exec_lo", "exec_hi", "scc"}
