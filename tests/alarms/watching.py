"""Runs correct kernels under `--strict`: any report is a false alarm.

A launch that exceeds a limit of wave instructions is checked up to there and continues unobserved,
so its results are compared with NumPy in any case. Workgroups run one after another, so the later
ones are cut off. If only some workgroups are checked, those are checked from their first
instruction to their last: the state of `--strict` for a workgroup (its waits, its LDS, what it has
written) does not depend on others.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fly_common.errors import Fault
from fly_run.devices.options import Options
from fly_run.emulator.isa.instruction import Instruction
from fly_run.emulator.machine import Emulator
from fly_run.emulator.strict.strict import Strict
from fly_run.emulator.watch.observe import Count, Enough, Launch, WaveView
from kernels.case import Case
from kernels.launching import on_device

EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclass(frozen=True)
class Extent:
    """The checked part of each launch: its first `limit` instructions, in `groups` of its
    workgroups, evenly spaced, including the first and the last. None: all."""

    limit: int | None = None
    groups: int | None = None

    def chosen(self, grid: tuple[int, int, int]) -> frozenset[tuple[int, int, int]] | None:
        """Returns the checked workgroups of a grid of this size; None for all."""
        count = grid[0] * grid[1] * grid[2]
        if self.groups is None or self.groups >= count:
            return None
        last = max(self.groups - 1, 1)
        numbers = (place * (count - 1) // last for place in range(self.groups))
        return frozenset(
            (n % grid[0], n // grid[0] % grid[1], n // (grid[0] * grid[1])) for n in numbers
        )


class Brief(Strict):
    """Checks only the given extent of each launch."""

    def __init__(self, extent: Extent) -> None:
        super().__init__()
        self.extent = extent
        self.looked = 0  # instructions checked, in all launches
        self.cut = False  # whether some of the chosen workgroups' instructions were not checked

    def begin(self, launch: Launch) -> None:
        super().begin(launch)
        limit = self.extent.limit
        self._last = None if limit is None else self.looked + limit
        self._chosen = self.extent.chosen(launch.grid)

    def before(self, wave: WaveView, instruction: Instruction) -> None:
        if self._chosen is not None and wave.group not in self._chosen:
            return
        if self.looked == self._last:
            self.cut = True
            raise Enough
        self.looked += 1
        super().before(wave, instruction)


@dataclass(frozen=True)
class Seen:
    """`looked`: the number of checked instructions; `cut`: whether there were more; `fault`: the
    report, None if there is none."""

    looked: int
    cut: bool
    fault: Fault | None


def kernel(case: Case, target: str, level: str, extent: Extent) -> Seen:
    """Runs a kernel of tests/kernels. AssertionError if its results are wrong."""
    watch = Brief(extent)
    try:
        on_device(case, Emulator(target, Options(observers=(watch,))), level)
    except Fault as fault:
        return Seen(watch.looked, watch.cut, fault)
    return Seen(watch.looked, watch.cut, None)


def example_names(target: str) -> Sequence[str]:
    return [case.name for case in _examples() if target in case.targets]


def example(name: str, target: str, level: str, extent: Extent) -> Seen:
    """Runs a repository example, at the chain's level ("-O3") or without optimisation ("-O0")."""
    from example_cases import check
    from fly_trace.session.load import find_entry, load_file

    import fly

    (case,) = (case for case in _examples() if case.name == name)
    path = str(EXAMPLES.parents[1] / "examples" / case.file)
    module = find_entry(load_file(path), path, case.entry).compile(target=target).ir("mlir")
    unoptimised = fly.chain(target=target, opt=None, llc=(("level", 0),))
    chain = unoptimised if level == "-O0" else fly.chain(target=target)
    arguments = case.make()
    expected = case.expect(arguments)
    watch = Brief(extent)
    try:
        loaded = fly.load(fly.run(chain, module.encode()))
        options = Options(observers=(watch,))
        returned = loaded.run(arguments, device="emulator", options=options).results
    except Fault as fault:
        return Seen(watch.looked, watch.cut, fault)
    check(case, case.after(arguments, returned), expected)
    return Seen(watch.looked, watch.cut, None)


def _examples():
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    from example_cases import CASES

    return CASES


__all__ = ["Count", "Extent", "Seen", "example", "example_names", "kernel"]
