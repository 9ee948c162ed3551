"""`--list-points`: the machine passes of a module's pipeline, and where code generation can stop
and resume, found by trying each point on the module."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from fly_common.programs import process
from fly_common.record import record, replace

from fly_llc.codegen import assembly, llc, points
from fly_llc.codegen.points import Point

if TYPE_CHECKING:
    from fly_llc.codegen.options import Options
    from fly_llc.codegen.source import Source

# How resuming compares with an uninterrupted run, as shown in the table.
WORDS = {"exact": "exact", "registers": "registers", "other": "other", "none": "-"}
LEGEND = (
    "exact: resuming gives the bytes of an uninterrupted run\n"
    "registers: the same instructions with other registers\n"
    "other: different code, just as correct\n"
    "-: LLVM can't resume there\n"
)


@record
class Found:
    """The result of trying a pass. `before` and `after` are keys of WORDS. `is_left_out` says
    whether an ordinary run leaves the pass out (`defects`)."""

    machine_pass: str
    before: str
    after: str
    holds: str
    is_left_out: bool = False


def text(data: bytes, options: Options, name: str) -> str:
    """Returns the table for the module `data`."""
    from fly_llc.codegen.source import prepare

    source = prepare(data, options, name)
    found = list(survey(source))
    names = _names(source.target.cpu, source.level)
    width = max(len(row.machine_pass) for row in found)
    lines = [
        f"{source.target.cpu} -O{source.level}: {len(found)} machine passes, tried on {name}",
        "",
        f"{'pass':{width}}  {'before':9}  {'after':9}  then",
    ]
    for row in found:
        named = f"  ({', '.join(names[row.machine_pass])})" if row.machine_pass in names else ""
        named += "  (left out: LLVM's code would be wrong)" if row.is_left_out else ""
        lines.append(
            f"{row.machine_pass:{width}}  {WORDS[row.before]:9}  {WORDS[row.after]:9}"
            f"  {row.holds}{named}".rstrip()
        )
    return "\n".join([*lines, "", LEGEND])


def survey(source: Source) -> Iterator[Found]:
    """Tries every pass after the start of `source`, in pipeline order."""
    cpu, level = source.target.cpu, source.level
    ahead = points.position(source.resume, cpu, level) if source.resume else -1
    passes = [
        name
        for number, name in enumerate(points.machine_passes(cpu, level))
        if 2 * number > ahead and not points.is_analysis(name)
    ]
    done = llc.generate(source, "obj")
    whole = llc.checked_output(done, source, None)
    limit = process.time_limit()  # read here because it is per thread
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = pool.map(lambda name: _try(source, name, whole, limit), passes)
        for row in _with_progress(rows, len(passes)):
            yield replace(row, is_left_out=row.machine_pass in done.left_out)


def _try(source: Source, name: str, whole: bytes, limit: float) -> Found:
    with process.limited(limit):
        before, _ = _resume(source, Point("before", name), whole)
        after, mir = _resume(source, Point("after", name), whole)
    return Found(name, before, after, _holds(mir or b""))


def _resume(source: Source, point: Point, whole: bytes) -> tuple[str, bytes | None]:
    mir = llc.generate(source, "mir", point).output
    if mir is None:
        return "none", None
    made = llc.generate(source.at(point, mir), "obj").output
    return ("none" if made is None else assembly.likeness(made, whole)), mir


def _holds(mir: bytes) -> str:
    """Returns the properties of the MIR's functions: SSA or not, virtual or physical registers."""
    if not mir:
        return ""
    form = "SSA, " if b"isSSA:           true" in mir else ""
    return form + ("physical registers" if b"noVRegs:         true" in mir else "virtual registers")


def _names(cpu: str, level: int) -> dict[str, list[str]]:
    """Returns the names of the named points, by pass."""
    found: dict[str, list[str]] = {}
    for named in points.named(cpu).values():
        point = named.point if level else named.unoptimised
        if point:
            found.setdefault(point.machine_pass, []).append(f"{named.name}: {point.side}")
    return found


def _with_progress(rows: Iterator[Found], count: int) -> Iterator[Found]:
    if not sys.stderr.isatty():
        yield from rows
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        yield from progress.track(rows, total=count, description="trying")
