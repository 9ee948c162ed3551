"""Code generation with filters in between: llc to a point, filters, llc to the next point.

    llc -stop-before=A │ filter │ llc -start-before=A -stop-after=B │ filter │ llc -start-after=B

If llc cannot resume, it is run on the same MIR without the filters. This shows whether a filter or
LLVM is at fault; in the latter case the point is refused, and the error suggests the nearest points
that work.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from fly_common.errors import FlyError, InputError, MissingError, Place, UsageError
from fly_common.record import replace

from fly_llc.codegen import llc, points
from fly_llc.codegen.points import Point
from fly_llc.insertion import filters, insertions
from fly_llc.insertion.insertions import Cut, What

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fly_common.diagnostics import Warn
    from fly_common.programs.process import Running

    from fly_llc.codegen.llc import Run
    from fly_llc.codegen.options import Options
    from fly_llc.codegen.source import Source

REACH = 12  # how many passes to search for a point that works


def compile(source: Source, options: Options, stop: Point | None, warn: Warn | None) -> bytes:
    """Compiles `source` with everything that `options` insert into the pipeline, to the end or to
    the point `stop`, as MIR."""
    if options.in_process:
        from fly_llc.insertion import native

        source = replace(source, flags=(*source.flags, *native.flags(options, source)))
    cuts = insertions.cuts(options, source)
    for cut in cuts:
        for what in cut.filters:
            filters.check(what)
    here = (source.target.cpu, source.level)
    if stop and cuts and points.position(stop, *here) < points.position(cuts[-1].start, *here):
        raise UsageError(f"can't stop {stop}: something is inserted {cuts[-1]}, which is later")
    if options.dump and not cuts:
        cuts = _named_cuts(source, stop)
    work = _Pipeline(source, options, warn)
    try:
        for cut in cuts:
            work.open(cut)
        made = work.finish(stop)
    finally:
        work.end()
    return points.note(stop, source.level) + made if stop else made


class _Pipeline:
    """The progress through the pipeline. `source` is llc's next input. `clean` is the same MIR
    before the filters of `cut`, the last cut."""

    def __init__(self, source: Source, options: Options, warn: Warn | None):
        self.original = self.source = self.clean = source
        self.options, self.warn = options, warn
        self.cut: Cut | None = None
        self.checks: list[_Check] = []
        self.number = 0

    def open(self, cut: Cut) -> None:
        """Advances to a cut and runs its filters."""
        mir = self._continue("mir", cut.stop, cut.filters)
        self.clean = self.source = self.source.at(cut.start, mir)
        self.cut = cut
        self._dump(cut)
        for what in cut.filters:
            for check in self.checks[-1:]:
                check.start()  # of the previous filter
            made = filters.apply(what, self.source, cut)
            self.source = self.source.at(cut.start, made)
            self._dump(cut, what)
            if self.options.verify:
                self.checks.append(_Check(self.source, self.clean, what, cut))

    def finish(self, stop: Point | None) -> bytes:
        return self._continue(self.options.emit, stop)

    def end(self) -> None:
        """Stops running checks after an error."""
        for check in self.checks:
            check.end()

    def _continue(self, emit: str, stop: Point | None, upcoming: Sequence[What] = ()) -> bytes:
        """Runs code generation from the current point to `stop`, where the filters `upcoming` are.

        The run also verifies the last filter's output. If that fails, each filter's output is
        verified separately. If none is at fault, LLVM's own code does not pass the verifier.
        """

        def load() -> None:  # while llc runs: imports for the next filters
            from fly_image import elf  # noqa: F401

            from fly_llc.codegen import resume  # noqa: F401

            for what in upcoming:
                filters.load(what)

        verified = self.checks.pop() if self.checks else None
        done = llc.generate(self.source, emit, stop, verify=verified is not None, meanwhile=load)
        if verified is not None and done.output is None:
            self.checks.append(verified)
            self._await_checks()
            done = llc.generate(self.source, emit, stop)
        self._await_checks()
        if done.output is None and self.cut is not None:
            raise self._diagnose(done, emit, stop, self.cut)
        return llc.checked_output(done, self.source, self.warn)

    def _await_checks(self) -> None:
        """Raises the first error that the machine verifier found in a filter's output."""
        while self.checks:
            if error := self.checks.pop(0).wait():
                raise error

    def _diagnose(self, done: Run, emit: str, stop: Point | None, cut: Cut) -> FlyError:
        """Returns why llc could not resume at a cut: the filters' output, or the point."""
        from fly_llc.codegen import refusal

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
            error.message = f"LLVM can't use the output of {names} ({cut}): {error.message}"
            return error
        if cut.stop != cut.start:
            what = refusal.explain(done.stderr, "", source.name, source.target.cpu, done.signal)
            return InputError(
                f"LLVM requires {cut.stop.machine_pass}: {what.message}",
                place=Place(source.name),
            )
        near = _nearest(self.original, cut.stop)
        return InputError(
            f"LLVM can't resume {cut.stop} for this module",
            place=Place(source.name),
            hint=f"it can resume {' and '.join(map(str, near))}" if near else None,
        )

    def _dump(self, cut: Cut, what: What | None = None) -> None:
        """Writes the current MIR to a file: `03.before-greedy.mir`, then each filter's output as
        `04.before-greedy.my-pass.mir`."""
        if self.options.dump is None:
            return
        self.number += 1
        words = [f"{self.number:02}", f"{cut.stop.side}-{cut.stop.machine_pass.replace(',', '.')}"]
        if what is not None:
            program = os.path.basename(what.plugin or what.words[0])
            words.append(re.sub(r"[^\w.-]+", "-", os.path.splitext(program)[0]))
        path = os.path.join(self.options.dump, ".".join([*words, "mir"]))
        try:
            os.makedirs(self.options.dump, exist_ok=True)
            with open(path, "wb") as file:
                file.write(points.note(cut.start, self.source.level) + self.source.data)
        except OSError as error:
            raise MissingError(f"--dump-mir {path}: {error.strerror}") from None


class _Check:
    """Runs LLVM's machine verifier on one filter's output, in parallel once started."""

    def __init__(self, source: Source, clean: Source, what: What, cut: Cut):
        self.source, self.clean, self.what, self.cut = source, clean, what, cut
        self.running: Running | None = None

    def start(self) -> None:
        if self.running is None:
            self.running = _verifier(self.source)

    def end(self) -> None:
        if self.running is not None:
            self.running.end()

    def wait(self) -> FlyError | None:
        """Returns the error in the output, if any."""
        self.start()
        assert self.running is not None
        done = llc.finish(self.running)
        # At some points LLVM's own MIR does not pass the verifier. Then the check is inconclusive.
        if done.output is not None or llc.finish(_verifier(self.clean)).output is None:
            return None
        from fly_llc.codegen import refusal

        text = self.source.data.decode(errors="replace")
        name = f"<output of {self.what.text}>"
        error = refusal.explain(done.stderr, text, name, self.source.target.cpu, done.signal)
        error.message = f"{self.what.text} ({self.cut}): {error.message}"
        return error


def _verifier(source: Source) -> Running:
    words = [f"-mcpu={source.target.cpu}", "-x", "mir", "-run-pass=none", "-verify-machineinstrs"]
    return llc.start(words, source.data)


def _named_cuts(source: Source, stop: Point | None) -> list[Cut]:
    """Returns a cut without filters at each named point that is ahead, for `--dump`."""
    here = (source.target.cpu, source.level)
    ahead = points.position(source.resume, *here) if source.resume else -1
    end = points.position(stop, *here) if stop else None
    known = points.named(source.target.cpu).values()
    rows = (named.point if source.level else named.unoptimised for named in known)
    found = [(points.position(point, *here), point) for point in rows if point]
    return [
        Cut(point, point, ())
        for place, point in sorted(found, key=lambda pair: pair[0])
        if place > ahead and (end is None or place <= end)
    ]


def _nearest(source: Source, point: Point) -> list[Point]:
    """Returns the nearest points before and after `point` at which llc can stop and resume."""
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
