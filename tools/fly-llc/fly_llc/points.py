"""The points of the machine pipeline at which code generation can stop, and go on from the MIR.

A point is named by the machine pass that has just run. At these points stopping, printing MIR,
reading it and going on gives the very bytes of an undisturbed run for most modules. No point does
so for every module: MIR does not carry the order in which a call graph is compiled, all that alias
analysis knew, nor stack slots that were removed. So each stop is tried (`codegen._stop`), and
refused where going on would give other code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fly_common.errors import UsageError


@dataclass(frozen=True)
class Point:
    """`holds` says what is true of the code there."""

    after: str
    holds: str


POINTS = (
    Point("finalize-isel", "machine instructions in SSA form, virtual registers"),
    Point("prologepilog", "physical registers, stack laid out"),
    Point("branch-folder", "branches folded"),
    Point("si-post-ra-bundler", "pseudo instructions expanded, before the last scheduling"),
    Point("postmisched", "scheduled for the last time"),
    Point("si-insert-waitcnts", "waits inserted"),
    Point("branch-relaxation", "final: only the encoding is left"),
)
NAMES = tuple(point.after for point in POINTS)

# The first line of the MIR that fly-llc prints, so that going on needs no flags. A YAML comment.
_NOTE = re.compile(rb"# fly-llc: stopped after (?P<after>[\w-]+) at -O(?P<level>[0-3])\n")


def check(after: str) -> str:
    """`after`, if it names a point."""
    if after not in NAMES:
        raise UsageError(
            f"code generation can't stop after {after} and go on exactly",
            hint=f"it can after {', '.join(NAMES)}",
        )
    return after


def note(after: str, level: int) -> bytes:
    """The line that says where MIR was stopped."""
    return f"# fly-llc: stopped after {after} at -O{level}\n".encode()


def read_note(mir: bytes) -> tuple[str, int] | None:
    """The pass and the level that `note` wrote; None for MIR from elsewhere."""
    match = _NOTE.match(mir)
    return (match["after"].decode(), int(match["level"])) if match else None
