"""Measures a wave's use of caches and LDS banks, by the model of each target.

Cache lines: `Target.cache_line`. LDS banks, and the lanes served together:
`fly_target.bank_conflicts`.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace

from fly_target import bank_conflicts, registry

from fly_run.emulator import state
from fly_run.emulator.lowering.steps import Step
from fly_run.emulator.semantics.base.access import Access, Atomic, ScalarAccess
from fly_run.emulator.semantics.base.operation import Operation
from fly_run.emulator.semantics.memory.measuring import CUSTOM

SUMS = ("lanes", "private", "shared", "units", "ideal")
assert state.ACCESS.names[: len(SUMS)] == SUMS

# Space by the form of the operation; SMEM has no lanes.
SPACES = {"global": "global", "flat": "global", "buffer": "global", "scratch": "private"}
SPACES |= {"lds": "LDS", "smem": "scalar"}


@dataclass(frozen=True)
class Measured:
    """One memory access of an instruction: its `space` (global, LDS, private, scalar), `direction`
    (load, store, atomic), `size` in bytes per lane, and over all executions: the lanes that
    accessed the space; those of a flat or buffer access that accessed `private` memory or LDS
    (`shared`) instead; `units` (global: cache lines touched, LDS: cycles) and their minimum,
    `ideal`; executions that were not modelled."""

    space: str
    direction: str
    size: int
    lanes: int
    private: int
    shared: int
    units: int
    ideal: int

    def plus(self, other: Measured) -> Measured:
        """Merges two measurements of the same access."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in SUMS}
        return replace(self, **sums)


@dataclass
class Meter:
    """The native counters of one access. `site` is None if there is nothing to measure natively:
    the instruction's executions and lanes suffice then."""

    space: str
    direction: str
    size: int
    site: ctypes.Array[ctypes.c_uint64] | None

    def read(self, times: int, lanes: int) -> Measured:
        """Returns the measurement; `times` and `lanes` are those of the instruction."""
        if self.site is None:
            lanes = times if self.space == "scalar" else lanes
            return Measured(self.space, self.direction, self.size, lanes, 0, 0, 0, 0)
        return Measured(self.space, self.direction, self.size, *self.site[: len(SUMS)])


def meters(
    steps: list[Step], table: dict[str, Operation], target: str
) -> tuple[list[Step], list[Meter]]:
    """Inserts measuring steps before the first access of an instruction; returns the steps and the
    meters. No instruction changes an address before its first access."""
    measuring: list[Step] = []
    found: list[Meter] = []
    first = None
    for number, step in enumerate(steps):
        name, _, variant = step.handler.rpartition(".")
        operation = table.get(step.handler) or table.get(name)
        if operation is None or operation.form not in SPACES:
            continue
        first = number if first is None else first
        direction, size = _shape(operation)
        kind = "" if operation.form == "buffer" else f".{variant}"
        handler = f"fly_measure_{operation.form}{kind}"
        site = None
        if handler in CUSTOM:
            site = _site(target, direction, size)
            address = ctypes.addressof(site)
            same = replace(step, handler=handler, memory=False, link=None, site=address)
            measuring.append(same)
        found.append(Meter(SPACES[operation.form], direction, size, site))
    if first is None:
        return steps, []
    # The shortcut of ds_read2 skips the steps that follow it.
    if first and steps[first - 1].handler == "fly_read_pair":
        first -= 1
    return [*steps[:first], *measuring, *steps[first:]], found


def clear(meter: Meter) -> None:
    """Sets the sums to 0."""
    if meter.site is not None:
        ctypes.memset(meter.site, 0, state.ACCESS.offsets["size"])


def _shape(operation: Operation) -> tuple[str, int]:
    """Returns the direction, and the bytes per lane."""
    detail = operation.detail
    if isinstance(detail, Access):
        return detail.kind, detail.size
    if isinstance(detail, Atomic):
        return "atomic", detail.size
    assert isinstance(detail, ScalarAccess)
    return detail.kind, detail.size


def _site(target: str, direction: str, size: int) -> ctypes.Array[ctypes.c_uint64]:
    site = (ctypes.c_uint64 * (state.ACCESS_BYTES // 8))()
    kind = "load" if direction == "load" else "store"
    chip = registry.find(target)
    whole = size >= bank_conflicts.BANK_BYTES and size & (size - 1) == 0
    parameters = {
        "size": size,
        "shift": chip.cache_line.bit_length() - 1,
        "granule": (size if whole else bank_conflicts.BANK_BYTES).bit_length() - 1,
        "banks": bank_conflicts.banks(chip, kind, size),
    }
    for number, lanes in enumerate(bank_conflicts.phases(chip, kind, size)):
        parameters[f"phase{number}"] = sum(1 << lane for lane in lanes)
    for name, value in parameters.items():
        site[state.ACCESS.offsets[name] // 8] = value
    return site
