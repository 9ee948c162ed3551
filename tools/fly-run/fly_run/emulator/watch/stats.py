"""Statistics of a launch: an observer that counts, and the document with its results.

Everything is exact except `cycles` of LDS and lines of global accesses, which follow a model
(fly_run.emulator.watch.measure), and occupancy, which is LLVM's figure
(fly_run.emulator.watch.occupancy).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fly_target import registry

from fly_run.emulator.isa import kinds
from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.watch import flops
from fly_run.emulator.watch.measure import Measured
from fly_run.emulator.watch.observe import Count, Launch, Wants
from fly_run.emulator.watch.occupancy import occupancy

if TYPE_CHECKING:
    from fly_run.emulator.watch.observe import WaveView

HOTTEST = 10  # number of instructions listed
Document = dict[str, Any]


class Statistics:
    """Observes launches; `documents` has one for each, `launch` is the last one."""

    def __init__(self) -> None:
        self.documents: list[Document] = []
        self.launch: Launch | None = None

    def begin(self, launch: Launch) -> None:
        self.launch = launch

    def wants(self, instruction: Instruction) -> Wants:
        return Wants.MEASURE

    def before(self, wave: WaveView, instruction: Instruction) -> None:
        """Not called, because `wants` never asks for it."""

    def after(self, wave: WaveView, instruction: Instruction) -> None:
        """Not called, because `wants` never asks for it."""

    def end(self, executed: int, counts: Sequence[Count]) -> None:
        assert self.launch is not None
        self.documents.append(document(self.launch, executed, counts))


def document(launch: Launch, executed: int, counts: Sequence[Count]) -> Document:
    """Returns the statistics of one launch, ready for JSON. `lanes_active` is the fraction of all
    lanes of the waves, from 0 to 1; None if no vector instruction ran."""
    items = launch.block[0] * launch.block[1] * launch.block[2]
    workgroups = launch.grid[0] * launch.grid[1] * launch.grid[2]
    held = occupancy(launch.target, launch.kernel, items, launch.lds)
    return {
        "kernel": launch.kernel.name,
        "target": launch.target,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "cluster": list(launch.cluster),
        "clusters": workgroups // math.prod(launch.cluster),
        "workgroups": workgroups,
        "waves": workgroups * -(-items // launch.lanes),
        "instructions": executed,
        "kinds": _kinds(launch, counts),
        "lanes_active": _utilisation(
            launch, [c for c in counts if kinds.kind(c.instruction.mnemonic) in kinds.VECTOR]
        ),
        "branches": _branches(counts),
        "flops": flops.total(counts),
        "memory": _memory(launch, counts),
        "occupancy": None if held is None else asdict(held),
        "registers": {
            "vgpr": launch.kernel.vgpr_count,
            "agpr": launch.kernel.agpr_count,
            "sgpr": launch.kernel.sgpr_count,
            "vgpr_spills": launch.kernel.vgpr_spill_count,
            "sgpr_spills": launch.kernel.sgpr_spill_count,
        },
        "lds_bytes": launch.lds,
        "scratch_bytes": launch.scratch,
        "hottest": _hottest(launch, counts),
    }


def _utilisation(launch: Launch, counts: Sequence[Count]) -> float | None:
    times = sum(count.times for count in counts)
    return sum(count.lanes for count in counts) / (times * launch.lanes) if times else None


def _kinds(launch: Launch, counts: Sequence[Count]) -> Document:
    """Returns executions by kind, the most frequent first."""
    of_kind: dict[str, list[Count]] = {}
    for count in counts:
        of_kind.setdefault(kinds.kind(count.instruction.mnemonic), []).append(count)
    found = {
        name: {
            "instructions": sum(count.times for count in some),
            "lanes_active": _utilisation(launch, some) if name in kinds.VECTOR else None,
        }
        for name, some in of_kind.items()
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]["instructions"]))


def _branches(counts: Sequence[Count]) -> Document:
    """Counts conditional branches, and those that a wave executed with some of its work items
    active and some not, so that it has to execute both sides of a condition."""
    conditional = [c for c in counts if c.instruction.mnemonic.startswith("s_cbranch")]
    return {
        "conditional": sum(count.times for count in conditional),
        "divergent": sum(count.partial - count.idle for count in conditional),
    }


def _memory(launch: Launch, counts: Sequence[Count]) -> Document:
    """Returns bytes by space and direction. Global: the cache lines touched by the waves' accesses,
    and the minimum for that many bytes. LDS: cycles, and cycles without conflicts."""
    accesses = [access for count in counts for access in count.accesses]
    unknown = sum(
        count.times for count in counts if not count.accesses and _moves(count.instruction.mnemonic)
    )
    line = registry.find(launch.target).cache_line
    return {
        "line_bytes": line,
        "global": _by_direction(accesses, "global", ("lines", "ideal_lines")),
        "LDS": _by_direction(accesses, "LDS", ("cycles", "ideal_cycles")),
        "private": _by_direction(_elsewhere(accesses, "private"), "private", None),
        "scalar": _by_direction(accesses, "scalar", None),
        "flat_to_LDS": _by_direction(_elsewhere(accesses, "shared"), "shared", None),
        "not_modelled": unknown,
    }


def _moves(mnemonic: str) -> bool:
    """Whether an instruction accesses memory; cache control and lane moves do not."""
    if kinds.kind(mnemonic) == "LDS":
        return not mnemonic.startswith(("ds_bpermute", "ds_permute", "ds_swizzle", "ds_nop"))
    return kinds.kind(mnemonic) in kinds.MEMORY and "dcache" not in mnemonic


def _elsewhere(accesses: Sequence[Measured], space: str) -> list[tuple[str, int, int]]:
    """Yields direction, size and lanes of accesses to private memory or LDS, whether direct or by a
    flat or buffer access."""
    found = []
    for access in accesses:
        lanes = getattr(access, space) + (access.lanes if access.space == space else 0)
        if lanes:
            found.append((access.direction, access.size, lanes))
    return found


def _by_direction(
    accesses: Sequence[Measured] | Sequence[tuple[str, int, int]],
    space: str,
    units: tuple[str, str] | None,
) -> Document:
    found: Document = {}
    for access in accesses:
        if isinstance(access, Measured):
            if access.space != space or not access.lanes:
                continue
            direction, size, lanes = access.direction, access.size, access.lanes
        else:
            direction, size, lanes = access
        entry = found.setdefault(direction, {"bytes": 0})
        entry["bytes"] += lanes * size
        if units is not None and isinstance(access, Measured):
            for name, value in zip(units, (access.units, access.ideal), strict=True):
                entry[name] = entry.get(name, 0) + value
    return found


def _hottest(launch: Launch, counts: Sequence[Count]) -> list[Document]:
    """Returns the instructions executed most often; among equals, the first ones."""
    total = sum(count.times for count in counts)
    ordered = sorted(counts, key=lambda count: -count.times)[:HOTTEST]
    lines = [launch.lines.find(count.instruction.pc) for count in ordered]
    return [
        {
            "pc": count.instruction.pc,
            "text": count.instruction.text,
            "source": str(line) if line else None,
            "times": count.times,
            "share": count.times / total,
            "lanes_active": _utilisation(launch, [count])
            if kinds.kind(count.instruction.mnemonic) in kinds.VECTOR
            else None,
        }
        for count, line in zip(ordered, lines, strict=True)
    ]
