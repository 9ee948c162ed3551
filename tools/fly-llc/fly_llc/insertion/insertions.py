"""Parses the user's insertions into the machine pipeline: the point, and what runs there.

    --insert before:PASS=WHAT    --insert after:PASS=WHAT    --insert POINT=WHAT
    --replace PASS=WHAT          --disable-pass PASS

WHAT is a command in any language that reads and writes MIR (`./pass.py --flag`), the name of a
shipped filter (`nop-sled`), or `plugin.so:NAME`, a machine pass in a library that LLVM loads.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from fly_common.errors import MissingError, UsageError
from fly_common.quoting import quoted, shortened
from fly_common.record import record

from fly_llc.codegen import points
from fly_llc.codegen.options import Options
from fly_llc.codegen.points import Point
from fly_llc.codegen.source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_plugin.contents import Seat

PLUGIN = ".so"


@record
class What:
    """`text` is what the user wrote. `words` is the command; its first word is a path or the name
    of a shipped filter. For a native pass, `plugin` is the library's path, `words` the pass's
    name. For a plugin's function of MIR, `seat` is its place in the slot of the point."""

    text: str
    words: tuple[str, ...]
    plugin: str | None = None
    seat: Seat | None = None


@record
class Cut:
    """A gap in the pipeline: llc stops at `stop`, `filters` transform the MIR, llc starts at
    `start`. The two differ if passes between them are omitted."""

    stop: Point
    start: Point
    filters: tuple[What, ...]

    def __str__(self) -> str:
        return (
            f"in place of {self.stop.machine_pass}" if self.stop != self.start else f"{self.stop}"
        )


def parse(text: str, option: str) -> tuple[str, str, What]:
    """Parses `[before:|after:]PASS=WHAT` into the side ("" if omitted), the pass, and `What`."""
    place, equals, what = text.partition("=")
    side, colon, name = place.rpartition(":")
    if not equals or not name or not what.strip() or (colon and side not in ("before", "after")):
        form = "PASS=WHAT" if option == "--replace" else "before:PASS=WHAT or after:PASS=WHAT"
        raise UsageError(f"{option} {shortened(text)}: expected {form}")
    return side, name, parse_what(what)


def parse_what(text: str) -> What:
    """Parses WHAT. Raises UsageError if it is not a command."""
    path, colon, name = text.rpartition(":")
    if colon and path.endswith(PLUGIN):
        if not name:
            raise UsageError(
                f"{shortened(text)}: the pass's name is missing", hint="write plugin.so:my-pass"
            )
        return What(text, (name,), os.path.abspath(path))
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{quoted(text)} is not a command: {error}") from None
    if words[0].endswith(PLUGIN):
        raise UsageError(
            f"{shortened(text)}: the pass's name is missing", hint=f"write {words[0]}:my-pass"
        )
    return What(text, tuple(words))


def cuts(options: Options, source: Source) -> list[Cut]:
    """Returns the cuts in pipeline order. At one point, plugins' filters run first, then those of
    the options in the user's order."""
    here = (source.target.cpu, source.level)
    found: list[tuple[Point, Point, What | None]] = list(of_plugins(source))
    for text in options.insert:
        side, name, what = parse(text, "--insert")
        if not (options.in_process and what.plugin):
            point = points.find(side or None, name, *here)
            found.append((point, point, what))
    for text in options.replace:
        side, name, what = parse(text, "--replace")
        if side:
            raise UsageError(f"--replace {shortened(text)}: expected PASS=WHAT")
        found.append((*_around(name, here), what))
    found += [(*_around(name, here), None) for name in options.disable]
    merged: dict[tuple[Point, Point], list[What]] = {}
    for stop, start, what in found:
        merged.setdefault((stop, start), []).extend([what] if what else [])
    made = [Cut(stop, start, tuple(whats)) for (stop, start), whats in merged.items()]

    def place(cut: Cut) -> tuple[int, int]:
        return points.position(cut.stop, *here), points.position(cut.start, *here)

    if len(made) > 1:  # sorting needs pipeline positions, a lookup that one cut can avoid
        made.sort(key=place)
    for cut in made:
        if source.resume and place(cut)[0] < points.position(source.resume, *here):
            raise UsageError(f"{cut}: the MIR was already stopped {source.resume}")
    return made


def of_plugins(source: Source) -> Iterator[tuple[Point, Point, What]]:
    """Yields what the active plugins have at named points of the machine pipeline."""
    from fly_plugin import active

    if not active():
        return
    from fly_plugin.contents import machine_seats

    cpu, level = source.target.cpu, source.level
    for name, seat in machine_seats():
        if name not in points.named(cpu):
            raise UsageError(
                f"{seat.named}: the code generation for {cpu} has no point {name}",
                hint=f"its points are {', '.join(points.named(cpu))}",
            )
        point = points.find(None, name, cpu, level)
        yield point, point, What(f"{seat.owner.id}@{name}", (seat.owner.id,), seat=seat)


def _around(name: str, here: tuple[str, int]) -> tuple[Point, Point]:
    return points.find("before", name, *here), points.find("after", name, *here)


def library(what: What) -> str:
    """Returns the path of a native pass's library. Raises MissingError if there is none."""
    assert what.plugin
    if not os.path.isfile(what.plugin):
        raise MissingError(f"the plugin {what.plugin} was not found")
    return what.plugin
