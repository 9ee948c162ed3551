"""Right kernels under `--strict`: what it says of one is a false alarm.

A launch that executes more than a limit of wave instructions is looked at up to there and goes on
unobserved, so its results are held against NumPy all the same. One workgroup runs after another:
what is cut off is the later ones.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fly_common.errors import Fault
from fly_run.device import Options
from fly_run.emulator.instruction import Instruction
from fly_run.emulator.machine import Emulator
from fly_run.emulator.observe import Count, Enough, Launch, WaveView
from fly_run.emulator.strict import Strict
from kernels.case import Case
from kernels.launching import on_device

EXAMPLES = Path(__file__).parents[1] / "examples"


class Brief(Strict):
    """Looks at the first `limit` instructions of each launch."""

    def __init__(self, limit: int | None) -> None:
        super().__init__()
        self.limit = limit
        self.looked = 0  # instructions, in all launches
        self.cut = False  # whether some were not looked at

    def begin(self, launch: Launch) -> None:
        super().begin(launch)
        self._last = None if self.limit is None else self.looked + self.limit

    def before(self, wave: WaveView, instruction: Instruction) -> None:
        if self.looked == self._last:
            self.cut = True
            raise Enough
        self.looked += 1
        super().before(wave, instruction)


@dataclass(frozen=True)
class Seen:
    """`looked`: the instructions that were looked at; `cut`: whether there were more; `fault`:
    what was reported, None for nothing."""

    looked: int
    cut: bool
    fault: Fault | None


def kernel(case: Case, target: str, level: str, limit: int | None) -> Seen:
    """A kernel of tests/kernels; AssertionError where its results are wrong."""
    watch = Brief(limit)
    try:
        on_device(case, Emulator(target, Options(observers=(watch,))), level)
    except Fault as fault:
        return Seen(watch.looked, watch.cut, fault)
    return Seen(watch.looked, watch.cut, None)


def example_names() -> Sequence[str]:
    return [case.name for case in _examples()]


def example(name: str, target: str, level: str, limit: int | None) -> Seen:
    """A repository example, at the chain's own level ("-O3") or without any effort ("-O0")."""
    from example_cases import check
    from fly_trace.load import find_entry, load_file

    import fly

    (case,) = (case for case in _examples() if case.name == name)
    path = str(EXAMPLES.parents[1] / "examples" / case.file)
    module = find_entry(load_file(path), path, case.entry).compile(target=target).ir("mlir")
    unoptimised = fly.chain(target=target, opt=None, llc=(("level", 0),))
    chain = unoptimised if level == "-O0" else fly.chain(target=target)
    arguments = case.make()
    expected = case.expect(arguments)
    watch = Brief(limit)
    try:
        fly.load(fly.run(chain, module.encode())).run(
            arguments, device="emulator", options=Options(observers=(watch,))
        )
    except Fault as fault:
        return Seen(watch.looked, watch.cut, fault)
    check(case, arguments, expected)
    return Seen(watch.looked, watch.cut, None)


def _examples():
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    from example_cases import CASES

    return CASES


__all__ = ["Count", "Seen", "example", "example_names", "kernel"]
