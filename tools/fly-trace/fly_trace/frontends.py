"""Frontends: other languages whose tracing `fly-trace --frontend NAME` runs.

A frontend is a function that takes a `Request` and returns the text of a module of the dialect
`fly`. It is found by its name here, or as an entry point of the group `fly.frontends`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.record import record
from fly_common.resolve import entry_points, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fly_trace.signatures.signature import ParameterType

GROUP = "fly.frontends"
# Resolved on use: a frontend may be in a package that is not installed with this one.
BUILT_IN = {"flydsl": "fly.flydsl.frontend:trace"}


@record
class Request:
    """What to trace: the host function `entry` of a file, or its only one. `types` are its
    parameters' as far as the caller says them, `arguments` the program's. `target` is a chip, and
    `python` an interpreter that has the frontend's packages; None is for the frontend to choose."""

    path: str
    entry: str | None
    types: Mapping[str, ParameterType]
    arguments: tuple[str, ...] = ()
    target: str | None = None
    python: str | None = None
    locations: bool = True


def find(name: str) -> Callable[[Request], str]:
    """The frontend of this name. UsageError if there is none."""
    if name in BUILT_IN:
        return resolve(BUILT_IN[name])
    entries: dict[str, Any] = {entry.name: entry for entry in entry_points(GROUP)}
    if name in entries:
        return entries[name].load()
    listed = ", ".join(["fly", *BUILT_IN, *sorted(entries)])
    raise UsageError(f"unknown frontend {quoted(name)}", hint=f"the frontends are {listed}")
