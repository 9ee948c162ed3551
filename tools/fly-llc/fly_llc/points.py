"""The points of the machine pipeline at which code generation can stop, and go on from the MIR.

A point is named by the machine pass that has just run. Only points are listed where stopping,
printing MIR, reading it and going on gives the very bytes of an undisturbed run (tried on every
target for each point: `tests/fly_llc/test_points.py`). Elsewhere MIR doesn't carry all of what
LLVM knows, and the code would change without a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fly_common.errors import UsageError


@dataclass(frozen=True)
class Point:
    """`holds` says what is true of the code there. `levels` are the -O levels at which it is
    exact: after register allocation at -O0, MIR names stack slots that it doesn't declare."""

    after: str
    holds: str
    levels: tuple[int, ...] = (1, 2, 3)


POINTS = (
    Point("finalize-isel", "machine instructions in SSA form, virtual registers", (0, 1, 2, 3)),
    Point("prologepilog", "physical registers, stack laid out"),
    Point("si-post-ra-bundler", "pseudo instructions expanded, before the last scheduling"),
    Point("postmisched", "scheduled for the last time"),
    Point("si-insert-waitcnts", "waits inserted"),
    Point("branch-relaxation", "final: only the encoding is left"),
)

# The first line of the MIR that fly-llc prints, so that going on needs no flags. A YAML comment.
_NOTE = re.compile(rb"# fly-llc: stopped after (?P<after>[\w-]+) at -O(?P<level>[0-3])\n")


def stop(after: str | None, level: int) -> Point:
    """The point `after`, or the last one at this level for None."""
    here = [point for point in POINTS if level in point.levels]
    if after is None:
        return here[-1]
    for point in here:
        if point.after == after:
            return point
    elsewhere = next((point for point in POINTS if point.after == after), None)
    why = f"at -O{level} " if elsewhere else ""
    raise UsageError(
        f"code generation can't stop after {after} {why}and go on exactly",
        hint=f"points at -O{level}: {', '.join(point.after for point in here)}",
    )


def note(after: str, level: int) -> bytes:
    """The line that says where MIR was stopped."""
    return f"# fly-llc: stopped after {after} at -O{level}\n".encode()


def read_note(mir: bytes) -> tuple[str, int] | None:
    """The pass and the level that `note` wrote; None for MIR from elsewhere."""
    match = _NOTE.match(mir)
    return (match["after"].decode(), int(match["level"])) if match else None


def order(after: str) -> int:
    """Where a point lies in the pipeline."""
    return [point.after for point in POINTS].index(after)
