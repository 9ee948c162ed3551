"""Differences between the two sides, and the text of the report."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from same_bytes.digests import Digest
from same_bytes.jobs import Job
from same_bytes.recorded import Recorded


@dataclass(frozen=True)
class Outcome:
    """The digest of a job's output, or the command that rejected its input."""

    made: str | None
    refused: str | None = None

    def __str__(self) -> str:
        return self.made or f"refused {self.refused}"


NOT_RUN = Outcome(None, "not run")


def read(file: Path) -> dict[str, Outcome]:
    """Returns a worker's results by the job's name."""
    lines = map(json.loads, file.read_text().splitlines())
    return {line["job"]: Outcome(line.get("made"), line.get("refused")) for line in lines}


@dataclass
class Report:
    """`same`, `same_code` and `refused` are counts; the others list names and differences.
    `same_code` differ in the host program only."""

    same: int = 0
    same_code: int = 0
    refused: int = 0
    differing: list[str] = field(default_factory=list)
    one_sided: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __add__(self, other: Report) -> Report:
        return Report(
            self.same + other.same,
            self.same_code + other.same_code,
            self.refused + other.refused,
            self.differing + other.differing,
            self.one_sided + other.one_sided,
            self.notes + other.notes,
        )

    def text(self, targets: list[str]) -> str:
        lines = [*self.notes]
        if self.one_sided:
            lines += ["on one side only, not compared:", *(f"  {one}" for one in self.one_sided)]
        if self.differing:
            lines += ["different:", *(f"  {one}" for one in self.differing)]
        code = f"{self.same_code} differ in the host program only, " if self.same_code else ""
        lines.append(
            f"{len(self.differing)} HSACOs differ; {code}{self.same} are the same, "
            f"{self.refused} inputs are refused alike ({', '.join(targets)})"
        )
        return "\n".join(lines)


def of_jobs(
    jobs: list[Job], before: dict[str, Outcome], now: dict[str, Outcome], code: Digest | None = None
) -> Report:
    """Compares the results of jobs. With `code`, HSACOs that differ in the host program only are
    counted apart."""
    report = Report()
    for job in jobs:
        old, new = before.get(job.name, NOT_RUN), now.get(job.name, NOT_RUN)
        if NOT_RUN in (old, new):
            report.differing.append(f"{job.name}: {old} before, {new} now")
        elif old == new:
            report.same += old.made is not None
            report.refused += old.made is None
        elif code and old.made and new.made and code(old.made) == code(new.made):
            report.same_code += 1
        elif job.origin == "now" and old.made is None:
            # A new input may need features that the old revision doesn't have.
            report.one_sided.append(f"{job.name}: {old} before")
        else:
            report.differing.append(f"{job.name}: {old} before, {new} now")
    return report


def of_tests(before: Recorded, now: Recorded, code: Digest | None = None) -> Report:
    """Compares the HSACOs of tests that both sides have. For a test of one side only, lists those
    that no test of the other side links."""
    report = Report()
    everywhere = [sum(side.made.values(), Counter()) for side in (before, now)]
    for test in sorted({*before.made, *now.made}):
        old, new = before.made.get(test), now.made.get(test)
        if old is None or new is None:
            side, other = ("now", everywhere[0]) if old is None else ("before", everywhere[1])
            alone = set(old or new or ()) - set(other)
            report.same += len(set(old or new or ())) - len(alone)
            if alone:
                report.one_sided.append(f"{test}: {len(alone)} HSACOs, {side} only")
            continue
        report.same += len(set(old) & set(new))
        gone, come = sorted(set(old) - set(new)), sorted(set(new) - set(old))
        if code:
            old_code, new_code = set(map(code, old)), set(map(code, new))
            report.same_code += sum(code(one) in old_code for one in come)
            gone = [one for one in gone if code(one) not in new_code]
            come = [one for one in come if code(one) not in old_code]
        report.differing += [
            f"{test}: {one} before, {other} now"
            for one, other in zip(
                gone + ["nothing"] * (len(come) - len(gone)),
                come + ["nothing"] * (len(gone) - len(come)),
                strict=True,
            )
        ]
    for name, side in (("before", before), ("now", now)):
        linked = sum(sum(one.values()) for one in side.made.values())
        told = "; ".join(f"{what}: {last}" for what, last in side.summaries.items())
        report.notes.append(f"{name}: {linked} HSACOs linked by the tests ({told})")
    return report
