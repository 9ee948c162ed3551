"""Backends in the hands of applications: `fly.register_backend`, `fly.get_backend`,
`fly.backend_name`."""

from __future__ import annotations

from collections.abc import Callable

from fly_backend import choice, registry
from fly_backend.backend import Backend


def register_backend(name: str, factory: Callable[[], Backend]) -> None:
    """Adds the backend `name` to this process. `factory` returns its record; it is called when the
    backend is first used. Raises UsageError if the name is taken; names are not case-sensitive.

    What the record refers to must be in modules that can be imported and have source files: their
    contents are part of the fingerprint of everything that the backend compiles.
    """
    registry.register(name, factory)


def get_backend(name: str | None = None) -> Backend:
    """Returns the backend `name`, or the one that compiles where none is named (`FLY_BACKEND`, else
    that of `FLY_TARGET`, else rocm). Raises UsageError, which lists the known names, if there is
    none."""
    return registry.find(name) if name is not None else choice.choose().backend


def backend_name() -> str:
    """Returns the name of the backend that compiles where none is named."""
    return get_backend().name
