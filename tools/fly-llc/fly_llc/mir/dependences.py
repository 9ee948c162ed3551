"""Dependences between the instructions of a block."""

from __future__ import annotations

from collections.abc import Sequence

from fly_llc.mir import kinds, registers
from fly_llc.mir.instruction import Instruction


def regions(instructions: Sequence[Instruction]) -> list[tuple[int, int]]:
    """The ranges of instructions, as start and end, within which instructions may be reordered."""
    found, start = [], 0
    for at, one in enumerate(instructions):
        if not kinds.is_movable(one):
            if at - start > 1:
                found.append((start, at))
            start = at + 1
    if len(instructions) - start > 1:
        found.append((start, len(instructions)))
    return found


def dependences(instructions: Sequence[Instruction]) -> list[set[int]]:
    """For each instruction of a region, the indices of those that must precede it.

    Registers: read after write, write after read, write after write. Memory: a store is ordered
    with all accesses, because addresses are not compared. Volatile and atomic accesses, and those
    without memory operands, are also ordered with each other.
    """
    writer: dict[str, int] = {}
    readers: dict[str, set[int]] = {}
    last_write: int | None = None
    accesses: set[int] = set()
    before: list[set[int]] = []
    for number, one in enumerate(instructions):
        needed: set[int] = set()
        reads, writes = registers.used(one), registers.defined(one)
        for unit in reads:
            if unit in writer:
                needed.add(writer[unit])
        for unit in writes:
            if unit in writer:
                needed.add(writer[unit])
            needed |= readers.get(unit, set())
        if kinds.is_memory(one):
            if last_write is not None:
                needed.add(last_write)
            if kinds.writes_memory(one) or kinds.is_ordered(one):
                needed |= accesses
                last_write, accesses = number, set()
            else:
                accesses.add(number)
        for unit in writes:
            writer[unit] = number
            readers[unit] = set()
        for unit in reads:
            readers.setdefault(unit, set()).add(number)
        needed.discard(number)
        before.append(needed)
    return before
