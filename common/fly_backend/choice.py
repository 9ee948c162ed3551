"""Chooses the backend and the target of a compilation.

    explicit arguments          backend=, target= (with the aliases arch= and chip=)
    the environment             FLY_BACKEND, FLY_TARGET
    defaults                    the target's own backend; the backend's default target; rocm

FLY_TARGET is a default: a backend that was named explicitly and has no such target uses its own
default target. All other contradictions are errors. Targets without a row are refused by the stage
that first needs the row, not here, so that a chain can be created without looking at entry points.
"""

from __future__ import annotations

import os

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.record import record, replace
from fly_target import registry as targets
from fly_target.target import Target

from fly_backend import registry
from fly_backend.backend import Backend

BACKEND = "FLY_BACKEND"
TARGET = "FLY_TARGET"


@record
class Choice:
    """The backend that compiles for `target`, the name of a chip."""

    backend: Backend
    target: str

    @property
    def is_own(self) -> bool:
        """Whether the backend is the one that the target's row names."""
        row = targets.get(self.target)
        return row is None or row.backend == self.backend.name


def choose(target: str | None = None, backend: str | None = None) -> Choice:
    """Returns the backend and the target for these names, the environment and the defaults. Raises
    UsageError for an unknown backend, and for a target that the backend does not compile for."""
    named = backend or os.environ.get(BACKEND) or None
    if named is None:
        chosen = target or os.environ.get(TARGET) or registry.default().default_target
        row = targets.get(chosen)
        return Choice(registry.find(row.backend) if row else registry.default(), chosen)
    found = registry.find(named)
    if target is None:
        target = os.environ.get(TARGET) or found.default_target
        if backend is not None and not supports(found, target):
            target = found.default_target
    if not supports(found, target):
        by = "" if backend else f", which {BACKEND} names,"
        raise UsageError(
            f"the backend {found.name}{by} does not compile for {quoted(target)}",
            hint=f"its targets are {', '.join(targets_of(found))}",
        )
    return Choice(found, target)


def supports(backend: Backend, target: str) -> bool:
    """Whether a backend compiles for a target. True for a target without a row, which is refused
    later."""
    row = targets.get(target)
    return row is None or row.backend in backend.compiles


def targets_of(backend: Backend) -> tuple[str, ...]:
    """Returns the names of a backend's targets."""
    rows = ((name, targets.get(name)) for name in targets.names())
    return tuple(name for name, row in rows if row and row.backend in backend.compiles)


def row_of(choice: Choice) -> Target:
    """Returns the target's row with the chosen backend. Raises UsageError if there is no row."""
    return replace(targets.find(choice.target), backend=choice.backend.name)


def aliased(
    target: str | None = None, arch: str | None = None, chip: str | None = None
) -> str | None:
    """Returns the target that `target` and its aliases `arch` and `chip` name, or None. Raises
    UsageError if they name different ones."""
    given = {"target": target, "arch": arch, "chip": chip}
    named = {name: value for name, value in given.items() if value is not None}
    if len(set(named.values())) > 1:
        told = " and ".join(f"{name}={quoted(value)}" for name, value in named.items())
        raise UsageError(
            f"{told} contradict each other", hint="arch= and chip= are other names of target="
        )
    return next(iter(named.values()), None)
