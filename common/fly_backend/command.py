"""The option `--backend` of the tools."""

from __future__ import annotations

import os

from fly_backend import choice, registry

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from typing import Any


def backend_option(typer: Any) -> Any:
    """Returns the option for `typer` or its stand-in."""
    known = ", ".join(registry.BUILT_IN)
    return typer.Option("--backend", metavar="NAME", help=f"The backend: {known}, or another's.")


def backend_of(target: str | None, backend: str | None) -> str | None:
    """Returns the backend that a command line selects, or None for the one of the target's row.
    FLY_BACKEND counts only if there is a target: it alone does not make a tool compile."""
    if backend is None and target is None:
        return None
    chosen = choice.choose(target, backend)
    return chosen.backend.name if backend is not None or not chosen.is_own else None


def named_backend(backend: str | None) -> str | None:
    """Returns the backend that `--backend` or FLY_BACKEND names, or None. Raises UsageError if it
    is unknown."""
    named = backend or os.environ.get(choice.BACKEND)
    return registry.find(named).name if named else None
