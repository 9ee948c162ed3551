"""Measures the kernels of `fly.kernels`: counts on the emulator, times on a GPU, and their share of
the roofline.

    python benchmarks/kernels.py [--target gfx942] [--device emulator|hip|cuda] [--small] [KERNEL…]
    python benchmarks/kernels.py --write

KERNEL is a function, such as softmax, or a part of calls' names. Without one, all are measured.

On the emulator: instructions that waves execute, bytes that they access outside of LDS, FLOPs, the
greatest numbers of VGPRs and bytes of LDS of a kernel, and the greatest difference from torch in
f64. The bound is the time that the chip's peaks allow for the problem: its inputs and results moved
once, its FLOPs.

On a GPU (`hip`, `cuda`) the same call is checked there, and timed with large arguments: the median
of repeated launches between the device's events. GB/s and TFLOP/s are the problem's bytes and FLOPs
in that time, and the share is that of the bound. Counts are those of the emulator; for a CUDA
device, which it does not emulate, those of gfx942. Peaks are what the driver tells of clocks and
widths, or of the data sheet; the last line says which. --small times the emulator's arguments.
A call that the target refuses, or that fails, is named below the table with the reason; the exit
status is then that of the first.
--write puts the counts for gfx942 into docs/kernels.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from unittest.mock import patch

import kernel_costs
from fly_common.errors import FlyError, UsageError
from fly_run.shell.bench import duration
from kernel_calls import CALLS, Row
from kernel_inputs import LARGE, SMALL
from kernel_times import Clock, Peak, of_device, of_table, work
from rich.console import Console
from rich.table import Table

COUNTED_FOR = "gfx942"  # where the emulator has no code of the device
TARGETS = {"emulator": COUNTED_FOR, "hip": COUNTED_FOR, "cuda": "sm_90a"}
COUNTS = ("instructions", "bytes", "FLOPs", "VGPRs", "LDS", "error")
BOUND, TIMES = ("bound", "by"), ("median", "GB/s", "TFLOP/s", "of the roofline", "by")
Cells = list[str]
Measuring = Callable[[Row], tuple[Cells, str]]


@dataclass
class Found:
    """What was measured: the cells of each row, by the name of its call, what the peaks are by, and
    the errors of the other calls."""

    lines: dict[str, Cells] = field(default_factory=dict[str, Cells])
    source: str = ""
    errors: dict[str, FlyError] = field(default_factory=dict[str, FlyError])

    @property
    def exit_code(self) -> int:
        return next((error.exit_code for error in self.errors.values()), 0)


def chosen(words: list[str]) -> list[Row]:
    """The calls of these functions, or those whose names have a word in them, where no function is
    called so. UsageError for a word that none has."""
    found: list[str] = []
    for word in words:
        names = [row.name for row in CALLS if row.name.partition("(")[0] == word]
        names = names or [row.name for row in CALLS if word in row.name]
        if not names:
            raise UsageError(f"no call has {word!r} in its name")
        found += names
    return [row for row in CALLS if not words or row.name in found]


def number(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def count_cells(costs: kernel_costs.Costs, error: str) -> Cells:
    numbers = (costs.instructions, costs.moved, costs.flops, costs.vgprs, costs.lds)
    return [*(f"{one:,}" for one in numbers), error]


def bound_cells(peak: Peak, amounts: tuple[float, float, float]) -> Cells:
    found = peak.bound(*amounts)
    return ["–", "–"] if found is None else [duration(found[0]), found[1]]


def time_cells(peak: Peak, amounts: tuple[float, float, float], seconds: float) -> Cells:
    moved, *flops = amounts
    found = peak.bound(*amounts)
    share = ["–", "–"] if found is None else [f"{100 * found[0] / seconds:.3g} %", found[1]]
    rates = (moved / seconds / 1e9, sum(flops) / seconds / 1e12)
    return [duration(seconds), *map(number, rates), *share]


def on_emulator(target: str) -> Measuring:
    """Returns what measures a call: its cells, and what the peaks are by."""
    peak = of_table(target)

    def cells(row: Row) -> tuple[Cells, str]:
        arguments = row.arguments(SMALL)
        made, costs = kernel_costs.counted(row.call, arguments)
        error = (
            kernel_costs.error(made, kernel_costs.exact(row, arguments)) if row.reference else ""
        )
        amounts = work(row, costs, arguments, made, 1.0)
        return [*count_cells(costs, error), *bound_cells(peak, amounts)], peak.source

    return cells


def on_gpu(target: str, device: str, small: bool) -> Measuring:
    """The same. Results are compared with torch's where arguments are small."""
    clock = Clock(device)
    counted_for = target if target.startswith("gfx") else COUNTED_FOR

    def cells(row: Row) -> tuple[Cells, str]:
        arguments = row.arguments(SMALL)
        with patch.dict(os.environ, FLY_TARGET=counted_for):
            _, costs = kernel_costs.counted(row.call, arguments)
        made, error = clock.run(row.call, arguments, timed=small), ""
        if row.reference is not None:
            error = kernel_costs.error(made, kernel_costs.exact(row, arguments))
        scale = 1.0
        if not small:
            size, arguments = arguments[0].numel(), row.arguments(LARGE)
            scale = arguments[0].numel() / size
            made = clock.run(row.call, arguments, timed=True)
        peak = of_device(clock.limits, target)
        amounts = work(row, costs, arguments, made, scale)
        source = f"{peak.source}; {clock.device}, counts of {counted_for}"
        return [*count_cells(costs, error), *time_cells(peak, amounts, clock.seconds)], source

    return cells


def found_of(rows: list[Row], measuring: Measuring) -> Found:
    found = Found()
    for row in rows:
        try:
            found.lines[row.name], found.source = measuring(row)
        except FlyError as error:
            found.errors[row.name] = error
        print(row.name, file=sys.stderr)
    return found


def measure(options: argparse.Namespace) -> int:
    """Prints the table, and returns the exit status."""
    rows = chosen(options.kernels)
    target = options.target or TARGETS[options.device]
    on_device = options.device != "emulator"
    if not on_device and not target.startswith("gfx"):
        raise UsageError(f"the emulator does not count code for {target}", hint="add --device cuda")
    with patch.dict(os.environ, FLY_TARGET=target):
        found = found_of(
            rows,
            on_gpu(target, options.device, options.small) if on_device else on_emulator(target),
        )
    if found.lines:
        table = Table(title=f"fly.kernels, {target}")
        table.add_column("call")
        for name in (*COUNTS, *(TIMES if on_device else BOUND)):
            table.add_column(name, justify="left" if name == "by" else "right", no_wrap=True)
        for name, cells in found.lines.items():
            table.add_row(name, *cells)
        # Numbers are not cut off where there is less room.
        wide = Console(width=10_000)
        Console(width=wide.measure(table).maximum).print(table)
        print(f"peaks: {found.source}")
    for name, error in found.errors.items():
        print(f"kernels: {name}: error: {error}", file=sys.stderr)
    return found.exit_code


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "kernels", nargs="*", metavar="KERNEL", help="a function, or a part of a call's name"
    )
    parser.add_argument("--target", help="default: gfx942; sm_90a for the device cuda")
    parser.add_argument("--device", choices=TARGETS, default="emulator")
    parser.add_argument("--small", action="store_true", help="time the emulator's arguments")
    parser.add_argument("--write", action="store_true", help="put the counts into the page")
    options = parser.parse_args()
    try:
        if options.write:
            kernel_costs.write()
            return 0
        return measure(options)
    except FlyError as error:
        print(f"kernels: error: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
