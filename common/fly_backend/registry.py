"""Looks backends up by name.

The built-in backends are a table of references. Installed packages add backends by entry points:

    [project.entry-points."fly.backends"]
    mybackend = "my_package.backend:BACKEND"

They are searched only for names that are not in the table.
"""

from __future__ import annotations

import functools

from fly_common.errors import UsageError
from fly_common.quoting import quoted
from fly_common.resolve import entry_points, load, resolve

from fly_backend.backend import Backend

GROUP = "fly.backends"
BUILT_IN = {"rocm": "fly_backend.amd:ROCM", "cuda": "fly_backend.nvidia:CUDA"}


@functools.cache
def find(name: str) -> Backend:
    """Returns the backend `name`. Raises UsageError, which lists the known names, if there is none,
    and MissingError if its entry point cannot be loaded."""
    if name in BUILT_IN:
        return resolve(BUILT_IN[name])
    entries = {entry.name: entry for entry in entry_points(GROUP)}
    if name not in entries:
        known = ", ".join([*BUILT_IN, *sorted(entries)])
        raise UsageError(f"unknown backend {quoted(name)}", hint=f"the backends are {known}")
    return load(entries[name], "backend", Backend)


@functools.cache
def built_in() -> tuple[Backend, ...]:
    """Returns the built-in backends."""
    return tuple(find(name) for name in BUILT_IN)


def default() -> Backend:
    """Returns the backend of a compilation that names none."""
    return built_in()[0]
