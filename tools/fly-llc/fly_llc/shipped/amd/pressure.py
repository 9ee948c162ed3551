"""pressure: reports the register pressure and does not change the MIR.

    fly-llc k.ll --insert pre-ra=pressure -o k.o

For each function, reports the maximum number of live vector, accumulation and scalar registers, and
the blocks and instructions where it occurs. Before register allocation this is what the allocator
has to place; after it, what is really in use.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from fly_common.record import record

from fly_llc import mir
from fly_llc.mir.amd import registers
from fly_llc.mir.function import Function
from fly_llc.mir.liveness import live_outs, live_sets
from fly_llc.shipped import arguments

BANKS = {"v": "VGPRs", "a": "AGPRs", "s": "SGPRs"}


@record
class Peak:
    """The maximum number of live registers of a bank, and the block and instruction of it."""

    count: int = 0
    block: str = ""
    instruction: str = ""


def main(text: str, words: Sequence[str]) -> str:
    """`--blocks N`: report the N blocks with the highest pressure [3]."""
    options = arguments.read("pressure", words, blocks=3)
    for function in mir.parse(text).functions:
        print("\n".join(report(function, options["blocks"])), file=sys.stderr)
    return text


def report(function: Function, blocks: int) -> list[str]:
    peaks = {bank: Peak() for bank in BANKS}
    by_block: list[tuple[int, str, dict[str, int]]] = []
    outs = live_outs(function)
    classes = function.classes
    for block in function.blocks:
        most = dict.fromkeys(BANKS, 0)
        for one, live in zip(block.instructions, live_sets(block, outs[block.number]), strict=True):
            for bank, count in counts(live, classes).items():
                most[bank] = max(most[bank], count)
                if count > peaks[bank].count:
                    peaks[bank] = Peak(count, block.name, one.text.partition(" :: ")[0])
        by_block.append((most["v"] + most["a"], block.name, most))
    lines = [f"pressure: {function.name}"]
    lines += [
        f"  {BANKS[bank]:6} {peak.count:4}  in {peak.block} before {peak.instruction}"
        for bank, peak in peaks.items()
        if peak.count
    ]
    by_block.sort(key=lambda row: -row[0])
    for _, name, most in by_block[:blocks]:
        told = ", ".join(f"{most[bank]} {BANKS[bank]}" for bank in BANKS if most[bank])
        lines.append(f"  {name}: {told or 'none'}")
    return lines


def counts(live: Iterable[str], classes: dict[str, str]) -> dict[str, int]:
    """Returns the number of 32-bit registers of each bank among the live units."""
    found = dict.fromkeys(BANKS, 0)
    for unit in live:
        if unit.startswith("%"):
            bank, width = registers.width(classes.get(unit, ""))
            found[bank] += width
        elif unit[0] in BANKS and unit[1:].isdigit():
            found[unit[0]] += 1
    return found
