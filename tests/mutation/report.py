"""The report of a mutation run: the survivors and the score."""

from __future__ import annotations

import collections
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass

from mutation import judges
from mutation.accepted import ACCEPTED
from mutation.damage import Mutant

WAYS = {
    judges.BY_PROBES: "probes",
    judges.BY_TESTS: "tests",
    judges.SURVIVED: "nobody",
    judges.TOOL_FAILED: "a failure of the tool",
    -signal.SIGPROF: "the clock",
    -signal.SIGALRM: "the clock",
}


@dataclass(frozen=True)
class Report:
    """`results`: an exit status for each mutant; `covered`: the handlers that any probe or test
    uses; `alarms`: detections without a mutation."""

    mutants: list[Mutant]
    results: list[int]
    covered: set[str]
    alarms: tuple[str, ...] = ()

    def of(self, result: int) -> list[Mutant]:
        return [m for m, r in zip(self.mutants, self.results, strict=True) if r == result]

    @property
    def failed(self) -> list[str]:
        """The handlers of mutants whose trial failed."""
        return [m.handler for m in self.of(judges.TOOL_FAILED)]

    @property
    def trusted(self) -> bool:
        return not (self.alarms or self.failed)

    @property
    def accepted(self) -> list[Mutant]:
        return [m for m in self.of(judges.SURVIVED) if reason(m)]

    @property
    def survivors(self) -> list[Mutant]:
        return [m for m in self.of(judges.SURVIVED) if not reason(m)]

    @property
    def counted(self) -> int:
        return len(self.mutants) - len(self.accepted)

    @property
    def score(self) -> float:
        return 1 - len(self.survivors) / self.counted if self.counted else 1.0

    def lines(self) -> Iterator[str]:
        for m in self.survivors:
            yield survivor(m, "" if m.handler in self.covered else " (no test uses it)")
        for m in self.accepted:
            yield f"accepted: {m.handler} [{m.kind}] {m.what}: {reason(m)}"
        kinds = collections.Counter(m.kind for m in self.mutants)
        ways = collections.Counter(way(r) for r in self.results)
        yield f"{len(self.mutants)} mutants: " + _counts(kinds)
        yield "noticed by " + _counts(ways)
        noticed = self.counted - len(self.survivors)
        yield f"score {100 * self.score:.1f} %: {noticed} of {self.counted}"
        yield f"not counted: {len(self.accepted)} accepted for a reason"
        if not self.trusted:
            false, failed = ", ".join(self.alarms) or "none", ", ".join(self.failed) or "none"
            yield f"not to be trusted: false alarms {false}; not judged {failed}"


def survivor(mutant: Mutant, seen: str = "") -> str:
    return f"survives: {mutant.handler}{seen} [{mutant.kind}] {mutant.what}"


def _counts(counter: collections.Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counter.most_common())


def way(result: int) -> str:
    """Returns what detected the mutant, by a child's exit status."""
    return WAYS.get(result, "a crash")


def reason(mutant: Mutant) -> str:
    """Returns why a mutant is accepted, or the empty string."""
    for handler, what, why in ACCEPTED:
        if re.fullmatch(handler, mutant.handler) and re.search(what, mutant.what):
            return why
    return ""
