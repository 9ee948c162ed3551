"""Liveness of registers: a backward data-flow analysis."""

from __future__ import annotations

from fly_llc.mir import registers
from fly_llc.mir.block import Block
from fly_llc.mir.function import Function


def live_outs(function: Function) -> dict[int, frozenset[str]]:
    """The units that are live at the end of each block, by number.

    Computes the fixpoint of live-in = used before defined ∪ (live-out − defined). The operands of a
    phi count as used at the start of its block, which is slightly conservative.
    """
    uses: dict[int, frozenset[str]] = {}
    defs: dict[int, frozenset[str]] = {}
    for block in function.blocks:
        used: set[str] = set()
        defined: set[str] = set()
        for one in block.instructions:
            for inner in (*one.bundled, one):
                used |= registers.used(inner) - defined
                defined |= registers.defined(inner)
        uses[block.number], defs[block.number] = frozenset(used), frozenset(defined)
    outs: dict[int, frozenset[str]] = {block.number: frozenset() for block in function.blocks}
    changed = True
    while changed:
        changed = False
        for block in reversed(function.blocks):
            number = block.number
            wanted: frozenset[str] = frozenset()
            for successor in block.successors:
                wanted |= uses[successor] | (outs[successor] - defs[successor])
            if wanted != outs[number]:
                outs[number], changed = wanted, True
    return outs


def live_sets(block: Block, live_out: frozenset[str]) -> list[frozenset[str]]:
    """The units that are live before each instruction of `block`."""
    live = set(live_out)
    found: list[frozenset[str]] = []
    for one in reversed(block.instructions):
        for inner in (*one.bundled, one):
            live -= registers.defined(inner)
        for inner in (*one.bundled, one):
            live |= registers.used(inner)
        found.append(frozenset(live))
    return found[::-1]
