"""What fly-run prints with the plugin: for each launch its FLOPs and bytes, and the least time that
the chip's peaks allow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fly_common import filter
from fly_image.amd.code_object import CodeObject

from fly_roofline import peaks, plot, section
from fly_roofline.evaluation import Totals, evaluate
from fly_roofline.instructions import Unknown

if TYPE_CHECKING:
    from fly_run.shell.summaries import Launched, Run

    from fly_roofline.options import Options
    from fly_roofline.peaks import Peaks


@dataclass(frozen=True)
class Bound:
    """A launch's counts, and the seconds that its FLOPs and its bytes take at the chip's peaks."""

    totals: Totals
    computing: float | None
    moving: float | None

    @property
    def seconds(self) -> float | None:
        """The least time; None if a peak that is needed is not known."""
        if self.computing is None or self.moving is None:
            return None
        return max(self.computing, self.moving)

    @property
    def intensity(self) -> float:
        """FLOPs per byte."""
        return self.totals.flops / self.totals.bytes if self.totals.bytes else 0.0


def bound(totals: Totals, peak: Peaks) -> Bound:
    """Returns the bound. Vector and matrix instructions may overlap."""

    def seconds(amount: int, rate: float) -> float | None:
        return amount / rate if rate else None if amount else 0.0

    parts = [seconds(totals.vector, peak.vector), seconds(totals.matrix, peak.matrix)]
    known = [one for one in parts if one is not None]
    computing = max(known) if len(known) == len(parts) else None
    return Bound(totals, computing, seconds(totals.bytes, peak.bandwidth))


def summary(run: Run, options: Options) -> str:
    """Returns the lines for fly-run, and writes the plot."""
    if not isinstance(run.image, CodeObject):
        return f"roofline: code for {run.image.target} is not counted\n"
    kernels = section.kernels_of(run.image)
    if not kernels:
        return "roofline: the code object was compiled without the plugin roofline\n"
    peak = peaks.of(run.image.target, options)
    lines: list[str] = []
    shown: dict[Any, Bound] = {}
    for launch in run.launches:
        where = (
            f"roofline: {launch.kernel}: grid {_sizes(launch.grid)}, block {_sizes(launch.block)}"
        )
        try:
            totals = evaluate(kernels[launch.kernel], launch.grid, launch.block, launch.packed)
        except Unknown as reason:
            lines.append(f"{where}: unknown: {reason}")
            continue
        except KeyError:
            lines.append(f"{where}: unknown: it was compiled without the plugin roofline")
            continue
        found = bound(totals, peak)
        shown[launch.kernel] = found
        lines += _told(where, found, peak, run.image.target, launch)
    if options.plot and shown:
        chart = plot.svg(run.image.target, peak, shown, _rates(run, shown))
        filter.write_atomically(Path(options.plot), chart.encode())
    return "".join(f"{line}\n" for line in lines)


def _told(where: str, found: Bound, peak: Peaks, target: str, launch: Launched) -> list[str]:
    totals = found.totals
    parts = [
        f"{count:,} {name}"
        for name, count in (
            ("loaded", totals.load),
            ("stored", totals.store),
            ("by atomics", totals.atomic),
            ("by scalar loads", totals.scalar),
        )
        if count
    ]
    lines = [
        f"{where}: {totals.flops:,} FLOPs, {totals.bytes:,} bytes ({', '.join(parts) or 'none'}),"
        f" {found.intensity:.3g} FLOPs per byte"
    ]
    chip = f"{target} ({peak.product})" if peak.product else target
    if found.seconds is None:
        lines.append(f"  no bound: the peaks of {chip} are not known; give --roofline-peak-…")
    elif totals.flops or totals.bytes:
        by = "memory" if found.moving == found.seconds else "arithmetic"
        lines.append(f"  bound on {chip}: {_duration(found.seconds)}, by {by}")
        if launch.seconds:
            share = 100 * found.seconds / launch.seconds
            lines.append(
                f"  measured: {_duration(launch.seconds)}; the bound is {share:.3g} % of it"
            )
    if launch.statistics is not None:
        lines.append(f"  the emulator {_compared(totals, launch.statistics)}")
    return lines


def _compared(totals: Totals, statistics: dict[str, Any]) -> str:
    """Compares with what fly-run --stats counted."""
    counted = counts_of(statistics)
    if counted == totals:
        return "counted the same"
    return f"counted {counted.flops:,} FLOPs and {counted.bytes:,} bytes"


def counts_of(statistics: dict[str, Any]) -> Totals:
    """The same quantities in a document of fly-run --stats."""
    memory = statistics["memory"]

    def count(space: str, direction: str) -> int:
        return memory[space].get(direction, {}).get("bytes", 0)

    directions = (count("global", one) for one in ("load", "store", "atomic"))
    flops = statistics["flops"]
    return Totals(flops["vector"], flops["matrix"], *directions, count("scalar", "load"))


def _rates(run: Run, shown: dict[Any, Bound]) -> dict[Any, float]:
    """The FLOPs per second that were measured, by kernel."""
    return {
        one.kernel: shown[one.kernel].totals.flops / one.seconds
        for one in run.launches
        if one.seconds and one.kernel in shown
    }


def _sizes(sizes: tuple[int, int, int]) -> str:
    kept = list(sizes)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return "×".join(map(str, kept))


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
