"""Finding a backend by its name.

The backends that come with the compiler are a table of references, as a guest's entry point is one:

    [project.entry-points."fly.backends"]
    mybackend = "my_package.backend:BACKEND"

Installed packages are only asked for a name that the table does not have.
"""

from __future__ import annotations

import functools

from fly_common.errors import MissingError, UsageError
from fly_common.quoting import quoted
from fly_common.resolve import entry_points, resolve

from fly_backend.backend import Backend

GROUP = "fly.backends"
BUILT_IN = {"rocm": "fly_backend.amd:ROCM"}


@functools.cache
def find(name: str) -> Backend:
    """The backend `name`. UsageError lists those there are; MissingError for an entry point that
    can't be loaded."""
    if name in BUILT_IN:
        return resolve(BUILT_IN[name])
    entries = {entry.name: entry for entry in entry_points(GROUP)}
    if name not in entries:
        known = ", ".join([*BUILT_IN, *sorted(entries)])
        raise UsageError(f"unknown backend {quoted(name)}", hint=f"the backends are {known}")
    where = f"backend {name}: the entry point {entries[name].value} of {GROUP}"
    try:
        found = entries[name].load()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        hint = "fix or uninstall the package that provides it"
        raise MissingError(f"{where} can't be loaded: {reason}", hint=hint) from error
    if not isinstance(found, Backend) or found.name != name:
        raise MissingError(
            f"{where} is not a backend of that name",
            hint="it must refer to a fly_backend.backend.Backend",
        )
    return found


@functools.cache
def built_in() -> tuple[Backend, ...]:
    """The backends that come with the compiler."""
    return tuple(find(name) for name in BUILT_IN)


def default() -> Backend:
    """The backend of a compilation that names none."""
    return built_in()[0]
