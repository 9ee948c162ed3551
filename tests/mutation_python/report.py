"""The report of a run: the survivors and the score of each group."""

from __future__ import annotations

import collections
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field

from mutation_python import trials
from mutation_python.accepted import ACCEPTED
from mutation_python.damage import Mutant

WAYS = {
    trials.NOTICED: "tests",
    trials.SURVIVED: "nobody",
    trials.TOOL_FAILED: "a failure of the tool",
    -signal.SIGPROF: "the clock",
    -signal.SIGALRM: "the clock",
}


@dataclass(frozen=True)
class Report:
    """`results`: an exit status for each mutant. `uncovered`: the mutants that no test executes.
    `alarms`: detections without a mutation: the test that failed, or what ended the trial."""

    mutants: list[Mutant]
    results: list[int]
    uncovered: list[Mutant]
    broken: list[str]
    alarms: list[str] = field(default_factory=list)

    def __add__(self, other: Report) -> Report:
        return Report(
            self.mutants + other.mutants,
            self.results + other.results,
            self.uncovered + other.uncovered,
            self.broken + other.broken,
            self.alarms + other.alarms,
        )

    def of(self, result: int) -> list[Mutant]:
        return [m for m, r in zip(self.mutants, self.results, strict=True) if r == result]

    @property
    def trusted(self) -> bool:
        return not self.alarms and not self.of(trials.TOOL_FAILED)

    @property
    def survivors(self) -> list[Mutant]:
        return [m for m in self.of(trials.SURVIVED) if not reason(m)]

    @property
    def accepted(self) -> list[Mutant]:
        return [m for m in self.of(trials.SURVIVED) if reason(m)]

    @property
    def counted(self) -> int:
        return len(self.mutants) - len(self.accepted) - len(self.of(trials.SAME))

    @property
    def score(self) -> float:
        return 1 - len(self.survivors) / self.counted if self.counted else 1.0

    @property
    def told(self) -> str:
        noticed = self.counted - len(self.survivors)
        return f"{100 * self.score:.1f} %: {noticed} of {self.counted}"

    def lines(self, root: str) -> Iterator[str]:
        for m in self.survivors:
            seen = " (no test executes it)" if m in self.uncovered else ""
            place = m.place.removeprefix(f"{root}/")
            yield f"survives: {place}: {m.function}{seen} [{m.kind}] {m.what}"
        for m in self.accepted:
            place = m.place.removeprefix(f"{root}/")
            yield f"accepted: {place}: {m.function} [{m.kind}] {m.what}: {reason(m)}"
        for name in self.broken:
            yield f"left out, as it fails with nothing damaged: {name}"
        for name in self.alarms:
            yield f"false alarm, with nothing damaged: {name}"
        kinds = collections.Counter(m.kind for m in self.mutants)
        ways = collections.Counter(WAYS.get(r, "a crash") for r in self.results if r != trials.SAME)
        yield f"{len(self.mutants)} mutants: {_counts(kinds)}"
        yield f"noticed by {_counts(ways)}"
        yield f"score {self.told}"
        same = len(self.of(trials.SAME))
        yield f"not counted: {len(self.accepted)} accepted for a reason, {same} the same code"
        if not self.trusted:
            failed = ", ".join(m.place for m in self.of(trials.TOOL_FAILED)) or "none"
            count = len(self.alarms)
            yield f"not to be trusted: {count} false alarms; not judged {failed}"


def _counts(counter: collections.Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counter.most_common())


def reason(mutant: Mutant) -> str:
    """Returns why a mutant is accepted, or the empty string."""
    for module, function, what, why in ACCEPTED:
        if (
            re.fullmatch(module, mutant.module)
            and re.fullmatch(function, mutant.function)
            and re.search(what, mutant.what)
        ):
            return why
    return ""
