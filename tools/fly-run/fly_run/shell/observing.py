"""The observers of a call (`--stats`, `--trace`), and their output.

Statistics for users go to standard error, after the table of results; JSON goes to standard output.
A trace goes to the file of `--trace`, even if the run fails.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fly_common import filter
from fly_common.errors import UsageError

if TYPE_CHECKING:
    from fly_run.emulator.watch.observe import Observer
    from fly_run.emulator.watch.stats import Statistics
    from fly_run.emulator.watch.trace import Tracer
    from fly_run.shell.command import Call


@dataclass(frozen=True)
class Watching:
    """The observers of a call, and the output of their results."""

    json: bool = False
    statistics: Statistics | None = None
    tracer: Tracer | None = None
    trace_path: str | None = None

    @staticmethod
    def of(call: Call) -> Watching:
        """Returns a call's observers. UsageError for options that contradict each other, or a file
        that can't be written."""
        statistics = tracer = None
        if call.stats:
            from fly_run.emulator.watch.stats import Statistics

            statistics = Statistics()
        if call.trace is None:
            if call.trace_only or call.trace_limit is not None:
                raise UsageError("--trace-only and --trace-limit require --trace FILE")
        else:
            from fly_run.emulator.watch.trace import LINES, Only, Tracer

            if call.trace == filter.STDIN and call.stats and call.json:
                raise UsageError(
                    "--trace - and --stats --json both write to standard output",
                    hint="write the trace to a file",
                )
            if call.trace_limit is not None and call.trace_limit < 1:
                raise UsageError("--trace-limit must be at least 1")
            limit = LINES if call.trace_limit is None else call.trace_limit
            tracer = Tracer(Only.parse(call.trace_only), limit, call.json)
            if call.trace != filter.STDIN:
                # An unwritable file is rejected before the work, instead of after it.
                filter.write_output(b"", call.trace)
        return Watching(call.json, statistics, tracer, call.trace)

    @property
    def observers(self) -> tuple[Observer, ...]:
        return tuple(one for one in (self.statistics, self.tracer) if one is not None)

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        """Writes the trace of the enclosed run, even if that fails, when it is needed most."""
        try:
            yield
        finally:
            if self.tracer is not None:
                text = "".join(f"{line}\n" for line in self.tracer.lines)
                filter.write_output(text.encode(), self.trace_path)

    def report(self) -> None:
        """Prints the statistics of a successful run."""
        if self.statistics is None:
            return
        documents = self.statistics.documents
        if self.json:
            text = json.dumps({"launches": documents}, indent=2) + "\n"
            filter.write_output(text.encode(), None)
        else:
            from fly_run.shell import stats_text

            stats_text.show(documents, sys.stderr)
