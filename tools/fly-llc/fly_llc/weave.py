"""Code generation with other programs within it: llc to a point, filters, llc to the next point.

    llc -stop-before=A │ filter │ llc -start-before=A -stop-after=B │ filter │ llc -start-after=B

Where llc can't go on, the same MIR without the filters tells whose fault it is: the filter's, or
LLVM's at this point, which then is refused with the nearest points that work.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from fly_common.errors import FlyError, InputError, MissingError, Place, UsageError
from fly_common.record import replace

from fly_llc import filters, insertion, llc, native, points
from fly_llc.insertion import Cut, What
from fly_llc.points import Point

if TYPE_CHECKING:
    from fly_llc.codegen import Options
    from fly_llc.llc import Run, Warn
    from fly_llc.source import Source

REACH = 12  # how far to look for a point that works, in passes


def compile(source: Source, options: Options, stop: Point | None, warn: Warn | None) -> bytes:
    """The code of `source` with everything that `options` puts into the pipeline; to the point
    `stop`, if there is one, where it is MIR."""
    source = replace(source, flags=(*source.flags, *native.flags(options, source)))
    cuts = insertion.cuts(options, source)
    for cut in cuts:
        for what in cut.filters:
            filters.check(what)
    here = (source.target.cpu, source.level)
    if stop and cuts and points.position(stop, *here) < points.position(cuts[-1].start, *here):
        raise UsageError(f"can't stop {stop}: something is inserted {cuts[-1]}, which is later")
    if options.dump and not cuts:
        cuts = _named_cuts(source, stop)
    work = _Weave(source, options, warn)
    for cut in cuts:
        work.open(cut)
    made = work.finish(stop)
    return points.note(stop, source.level) + made if stop else made


class _Weave:
    """The way through the pipeline. `source` is what llc reads next; `clean` is the same as LLVM
    made it, before the filters of `cut`, the last one."""

    def __init__(self, source: Source, options: Options, warn: Warn | None):
        self.original = self.source = self.clean = source
        self.options, self.warn = options, warn
        self.cut: Cut | None = None
        self.checks: list[_Check] = []
        self.number = 0

    def open(self, cut: Cut) -> None:
        """Goes on to a cut, and runs its filters."""
        mir = self._go_on("mir", cut.stop)
        self.clean = self.source = self.source.at(cut.start, mir)
        self.cut = cut
        self._dump(cut)
        for what in cut.filters:
            made = filters.apply(what, self.source, cut, self.options.timeout)
            self.source = self.source.at(cut.start, made)
            self._dump(cut, what)
            if self.options.verify:
                self.checks.append(_Check(self.source, self.clean, what, cut))

    def finish(self, stop: Point | None) -> bytes:
        made = self._go_on(self.options.emit, stop)
        self._await_checks()
        return made

    def _go_on(self, emit: str, stop: Point | None) -> bytes:
        done = llc.generate(self.source, emit, stop)
        if done.output is None:
            self._await_checks()
            if self.cut is not None:
                raise self._blame(done, emit, stop, self.cut)
        return llc.judge(done, self.source, self.warn)

    def _await_checks(self) -> None:
        """Raises what the machine verifier found in a filter's output, the earliest first."""
        checks, self.checks = self.checks, []
        errors = [check.wait() for check in checks]
        for error in errors:
            if error is not None:
                raise error

    def _blame(self, done: Run, emit: str, stop: Point | None, cut: Cut) -> FlyError:
        """Why llc could not go on from a cut: the filters' output, or the place."""
        from fly_llc import refusal

        source = self.source
        if (
            source.data != self.clean.data
            and llc.generate(self.clean, emit, stop).output is not None
        ):
            names = " and ".join(what.text for what in cut.filters)
            text = source.data.decode(errors="replace")
            error = refusal.explain(
                done.stderr, text, f"<output of {names}>", source.target.cpu, done.signal
            )
            error.message = f"LLVM can't use what {names} made ({cut}): {error.message}"
            return error
        if cut.stop != cut.start:
            what = refusal.explain(done.stderr, "", source.name, source.target.cpu, done.signal)
            return InputError(
                f"LLVM can't do without {cut.stop.machine_pass}: {what.message}",
                place=Place(source.name),
            )
        near = _nearest(self.original, cut.stop)
        return InputError(
            f"LLVM can't go on {cut.stop} for this module",
            place=Place(source.name),
            hint=f"it can {' and '.join(map(str, near))}" if near else None,
        )

    def _dump(self, cut: Cut, what: What | None = None) -> None:
        """A file with the MIR as it is now: `03.before-greedy.mir`, then what each filter made of
        it, `04.before-greedy.my-pass.mir`."""
        if self.options.dump is None:
            return
        self.number += 1
        words = [f"{self.number:02}", f"{cut.stop.side}-{cut.stop.machine_pass.replace(',', '.')}"]
        if what is not None:
            words.append(re.sub(r"[^\w.-]+", "-", Path(what.plugin or what.words[0]).stem))
        path = Path(self.options.dump, ".".join([*words, "mir"]))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(points.note(cut.start, self.source.level) + self.source.data)
        except OSError as error:
            raise MissingError(f"--dump-mir {path}: {error.strerror}") from None


class _Check(threading.Thread):
    """LLVM's machine verifier on a filter's output, beside the code generation that goes on."""

    def __init__(self, source: Source, clean: Source, what: What, cut: Cut):
        super().__init__(daemon=True)
        self.source, self.clean, self.what, self.cut = source, clean, what, cut
        self.error: FlyError | None = None
        self.start()

    def run(self) -> None:
        done = _verify(self.source)
        # LLVM's own MIR may not pass the verifier at some points: then nobody can tell.
        if done.output is not None or _verify(self.clean).output is None:
            return
        from fly_llc import refusal

        text = self.source.data.decode(errors="replace")
        name = f"<output of {self.what.text}>"
        cpu = self.source.target.cpu
        self.error = refusal.explain(done.stderr, text, name, cpu, done.signal)
        self.error.message = f"{self.what.text} ({self.cut}): {self.error.message}"

    def wait(self) -> FlyError | None:
        self.join()
        return self.error


def _verify(source: Source) -> Run:
    words = [f"-mcpu={source.target.cpu}", "-x", "mir", "-run-pass=none", "-verify-machineinstrs"]
    return llc.run(words, source.data)


def _named_cuts(source: Source, stop: Point | None) -> list[Cut]:
    """A cut without filters at each named point that is ahead: for looking at them."""
    here = (source.target.cpu, source.level)
    ahead = points.position(source.resume, *here) if source.resume else -1
    end = points.position(stop, *here) if stop else None
    rows = (named.point if source.level else named.unoptimised for named in points.NAMED.values())
    found = [(points.position(point, *here), point) for point in rows if point]
    return [
        Cut(point, point, ())
        for place, point in sorted(found, key=lambda pair: pair[0])
        if place > ahead and (end is None or place <= end)
    ]


def _nearest(source: Source, point: Point) -> list[Point]:
    """The nearest points before and behind `point` at which llc stops and goes on."""
    passes = points.machine_passes(source.target.cpu, source.level)
    place = points.position(point, source.target.cpu, source.level)
    found = []
    for step in (-1, 1):
        for distance in range(1, 2 * REACH):
            number = place + step * distance
            if not 0 <= number < 2 * len(passes):
                break
            near = Point("after" if number % 2 else "before", passes[number // 2])
            mir = llc.generate(source, "mir", near).output
            if mir and llc.generate(source.at(near, mir), "obj").output is not None:
                found.append(near)
                break
    return found
