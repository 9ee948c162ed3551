"""Measuring on the emulator: its counts, as the work of the cost model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fly_image.amd.code_object import Kernel
from fly_run.emulator.isa import kinds
from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.watch import flops
from fly_run.emulator.watch.observe import Count, Launch, Wants, WaveView
from fly_run.emulator.watch.occupancy import WGP_MODE, Occupancy, occupancy
from fly_target import registry
from fly_target.amd.facts import facts_of

from fly.tune import cost_model
from fly.tune.cost_model import Work

METHOD = f"counts of the emulator, cost model {cost_model.VERSION}"
UNIT = "cycles"

_TRANSCENDENTAL = re.compile(r"v_(?:s_)?(?:exp|log|rcp|rsq|sqrt|sin|cos)_")
# Waits for vector memory; the others are for LDS and scalar memory.
_GLOBAL_WAIT = re.compile(r"vmcnt|vscnt|loadcnt|storecnt|samplecnt|bvhcnt")
_NO_WAIT = re.compile(r"s_wait_(?:alu|idle|event)|s_wait_?depctr")
_MEMORY = {"SMEM": "local", "LDS": "local"} | dict.fromkeys(
    ("VMEM load", "VMEM store", "VMEM atomic"), "global"
)
# How long matrix instructions take beside those of 16-bit elements, by the format of A; others have
# elements of 8 bits and fewer.
_MATRIX_TIME = {"f16": 1.0, "bf16": 1.0, "xf32": 2.0, "f32": 8.0, "f64": 8.0}
_NARROW_TIME = 0.5


class Counter:
    """An observer of launches. `cycles` is the cost of all of them, `launches` tells about each."""

    def __init__(self) -> None:
        self.launches: list[dict[str, Any]] = []
        self.cycles = 0.0
        self._launch: Launch | None = None

    def begin(self, launch: Launch) -> None:
        self._launch = launch

    def wants(self, instruction: Instruction) -> Wants:
        return Wants.MEASURE

    def before(self, wave: WaveView, instruction: Instruction) -> None:
        """Not called, because `wants` never asks for it."""

    def after(self, wave: WaveView, instruction: Instruction) -> None:
        """Not called, because `wants` never asks for it."""

    def end(self, executed: int, counts: Sequence[Count]) -> None:
        launch = self._launch
        assert launch is not None
        held = _held(launch)
        found = cost_model.cost(work_of(launch, counts, held))
        self.cycles += found.cycles + cost_model.LAUNCH
        self.launches.append(
            {
                "kernel": launch.kernel.name,
                "cycles": round(found.cycles),
                "limit": found.limit,
                "instructions": executed,
                "waves per SIMD": held.waves,
                "VGPRs": held.vgprs,
                "LDS": launch.lds,
            }
        )


def work_of(launch: Launch, counts: Sequence[Count], held: Occupancy) -> Work:
    """Sums what a launch did. Of the waits that follow a group of accesses, only the first one
    counts: the accesses overlap. What is such a group is decided by the order of the code, not by
    that of execution."""
    items = launch.block[0] * launch.block[1] * launch.block[2]
    workgroups = launch.grid[0] * launch.grid[1] * launch.grid[2]
    sums: dict[str, float] = {}
    pending: set[str] = set()  # kinds of memory that were accessed since the last wait for it

    def add(name: str, amount: float) -> None:
        sums[name] = sums.get(name, 0) + amount

    for count in counts:
        name, times = count.instruction.mnemonic, count.times
        kind = kinds.kind(name)
        if kind == "matrix":
            add("matrix", times)
            add("matrix_flops", _matrix_flops(count))
        elif kind == "VALU":
            add("transcendental" if _TRANSCENDENTAL.match(name) else "vector", times)
        else:
            add("other", times)
        if kind == "barrier" and "signal" not in name:
            add("barriers", times)
        if kind in _MEMORY:
            pending.add(_MEMORY[kind])
        elif kind == "wait" and not _NO_WAIT.match(name):
            of_global = _GLOBAL_WAIT.search(count.instruction.text) is not None
            if of_global and "global" in pending:
                add("global_waits", times)
                pending.clear()
            elif "local" in pending and (not of_global or "lgkmcnt" in count.instruction.text):
                add("local_waits", times)
                pending.discard("local")
        for access in count.accesses:
            if access.space == "LDS":
                add("lds_cycles", access.units)
            elif access.space == "global":
                add("lines", access.units)
    waves = workgroups * -(-items // launch.lanes)
    unit = facts_of(registry.find(launch.target)).unit
    units = 2 if _is_processor(launch.kernel, launch.target) else 1
    return Work(
        target=launch.target,
        workgroups=workgroups,
        waves=waves,
        working=_working(counts, waves),
        lanes=launch.lanes,
        shared_simds=unit.simds * units,
        units=units,
        resident=max(1, held.workgroups),
        **sums,
    )


def _working(counts: Sequence[Count], waves: int) -> int:
    """The number of waves that have something to do, where others end at once: those that execute
    the most frequent access to memory outside of loops. All, if there is no such access."""
    branches = [(one.instruction.target, one.instruction.pc) for one in counts]
    loops = [(start, end) for start, end in branches if start is not None and start <= end]
    accesses = [
        count.times
        for count in counts
        if kinds.kind(count.instruction.mnemonic) in _MEMORY
        and kinds.kind(count.instruction.mnemonic) != "SMEM"
        and not any(start <= count.instruction.pc <= end for start, end in loops)
    ]
    return min(waves, max(accesses, default=waves))


def _held(launch: Launch) -> Occupancy:
    items = launch.block[0] * launch.block[1] * launch.block[2]
    held = occupancy(launch.target, launch.kernel, items, launch.lds)
    assert held is not None, "the emulator runs code of known targets only"
    return held


def _is_processor(kernel: Kernel, target: str) -> bool:
    """Whether workgroups run on a processor of two compute units."""
    unit = facts_of(registry.find(target)).unit
    return unit.work_group_processor and bool(kernel.compute_pgm_rsrc1 & WGP_MODE)


def _matrix_flops(count: Count) -> float:
    """The FLOPs of a matrix instruction's executions, as those of 16-bit elements that take the
    same time. Integer products count like floating-point ones."""
    shape = flops.shape_of(count.instruction)
    if shape is None:
        return 0.0
    return flops.of_matrices(count, shape) * _MATRIX_TIME.get(shape.a, _NARROW_TIME)
