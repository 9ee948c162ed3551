"""What a call asks to be told of its launches (`--stats`, `--trace`), and how it is told.

Statistics for people are on standard error, beside the table of results, as JSON on standard
output. A trace goes where `--trace` says, and what there is of it even where the run fails.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fly_common import filter

if TYPE_CHECKING:
    from fly_run.emulator.observe import Observer
    from fly_run.shell import Call
    from fly_run.stats import Statistics


@dataclass(frozen=True)
class Watching:
    """The observers of a call, and what becomes of what they have seen."""

    json: bool = False
    statistics: Statistics | None = None

    @staticmethod
    def of(call: Call) -> Watching:
        statistics = None
        if call.stats:
            from fly_run.stats import Statistics

            statistics = Statistics()
        return Watching(call.json, statistics)

    @property
    def observers(self) -> tuple[Observer, ...]:
        return tuple(one for one in (self.statistics,) if one is not None)

    def report(self) -> None:
        """Tells the statistics of a run that has succeeded."""
        if self.statistics is None:
            return
        documents = self.statistics.documents
        if self.json:
            text = json.dumps({"launches": documents}, indent=2) + "\n"
            filter.write_output(text.encode(), None)
        else:
            from fly_run import stats_text

            stats_text.show(documents, sys.stderr)
