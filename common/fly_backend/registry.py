"""Looks backends up by name. Names are not case-sensitive.

The built-in backends are a table of references. `register` adds a backend to this process, by a
factory that is called when the backend is first used. Installed packages add backends by entry
points:

    [project.entry-points."fly.backends"]
    mybackend = "my_package.backend:BACKEND"

They are searched only for names that are neither built in nor registered. Active plugins
(`fly_plugin`) add theirs for as long as they are active.
"""

from __future__ import annotations

import re

from fly_common.errors import MissingError, UsageError
from fly_common.quoting import quoted
from fly_common.resolve import entry_points, load, resolve
from fly_plugin import active

from fly_backend.backend import Backend

TYPE_CHECKING = False  # importing it from typing costs 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable

GROUP = "fly.backends"
BUILT_IN = {"rocm": "fly_backend.amd:ROCM", "cuda": "fly_backend.nvidia:CUDA"}

_factories: dict[str, Callable[[], Backend]] = {}  # of `register`
_found: dict[str, Backend] = {}  # in the order of their first use


def register(name: str, factory: Callable[[], Backend]) -> None:
    """Adds the backend `name` to this process. `factory` returns its record; it is called when the
    backend is first used. Raises UsageError if the name is taken or is not a name."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise UsageError(
            f"{quoted(name)} can't be the name of a backend",
            hint="a name begins with a letter, and has letters, digits, '_' and '-'",
        )
    if not callable(factory):
        raise UsageError(
            f"the backend {name} needs a factory, not {type(factory).__name__}",
            hint="a function without arguments that returns a fly_backend.backend.Backend",
        )
    if name.lower() in BUILT_IN:
        raise UsageError(f"the backend {name.lower()} is built in", hint="choose another name")
    if name.lower() in _factories:
        raise UsageError(f"the backend {name.lower()} is already registered")
    _factories[name.lower()] = factory


def find(name: str) -> Backend:
    """Returns the backend `name`. Raises UsageError, which lists the known names, if there is none,
    and MissingError if its factory or its entry point does not return its record."""
    key = name.lower()
    if (own := of_plugins().get(key)) is not None:
        return own
    if key not in _found:
        _found[key] = _load(key, name)
    return _found[key]


def _load(key: str, name: str) -> Backend:
    if key in BUILT_IN:
        return resolve(BUILT_IN[key])
    if key in _factories:
        return _made(key, _factories[key])
    entries = {entry.name.lower(): entry for entry in entry_points(GROUP)}
    if key not in entries:
        known = ", ".join([*BUILT_IN, *_factories, *sorted(entries)])
        raise UsageError(f"unknown backend {quoted(name)}", hint=f"the backends are {known}")
    return load(entries[key], "backend", Backend)


def _made(key: str, factory: Callable[[], Backend]) -> Backend:
    where = f"backend {key}: its factory"
    try:
        made = factory()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        raise MissingError(f"{where} failed: {reason}") from error
    if not isinstance(made, Backend) or made.name.lower() != key:
        is_what = f"the backend {made.name}" if isinstance(made, Backend) else type(made).__name__
        raise MissingError(
            f"{where} returned {is_what}",
            hint="it must return a fly_backend.backend.Backend of that name",
        )
    return made


def built_in() -> tuple[Backend, ...]:
    """Returns the built-in backends."""
    return tuple(find(name) for name in BUILT_IN)


def loaded() -> tuple[Backend, ...]:
    """Returns the built-in backends, then the other ones that this process has used."""
    own = built_in()
    others = (one for name, one in _found.items() if name not in BUILT_IN)
    return (*own, *others, *of_plugins().values())


def of_plugins() -> dict[str, Backend]:
    """Returns the backends of the active plugins, by name."""
    tables = (one.plugin.backends for one in active())
    return {name.lower(): resolve(where) for table in tables for name, where in table.items()}


def owner(name: str) -> str | None:
    """Returns who has the backend `name`, besides plugins, for messages; None if nobody has."""
    if name.lower() in BUILT_IN:
        return "fly-filters"
    return "this process" if name.lower() in _factories else None


def default() -> Backend:
    """Returns the backend of a compilation that names none."""
    return find(next(iter(BUILT_IN)))
