"""What a backend adds to the dialect: its own dialect beside `fly`, with ops, types and spaces.

A backend's record (`fly_backend`) gives the dialect's name and refers to its `Extension`. An
extension is loaded when a name of its dialect is first seen, a module of instruction types when one
of its types is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from fly_backend import registry
from fly_backend.backend import Backend
from fly_common.errors import MissingError
from fly_common.record import field, record
from fly_common.resolve import resolve
from fly_plugin import active

from fly_dialect.op_info import OpInfo
from fly_dialect.types import PtrSpec, Spec


@record
class Extension:
    """`types` maps the name of each type of a plugin's dialect to the function that reads the text
    between its brackets, "" if it has none. It returns the type as data, whose `str` is its text,
    or raises ValueError. `atoms` maps each module to the types whose families it registers
    (`fly_dialect.atoms.registry`). `spaces` maps each address space to the check of a
    `fly.make_ptr` that makes a pointer to it from operands (it raises ValueError), or to None if
    such a pointer allocates memory."""

    ops: tuple[OpInfo, ...] = ()
    types: Mapping[str, Callable[[str], Spec]] = field(default_factory=dict)
    atoms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spaces: Mapping[str, Callable[[list[Spec], PtrSpec], None] | None] = field(default_factory=dict)


@functools.cache
def namespaces() -> tuple[str, ...]:
    """The names of the dialects of the built-in backends, and of those that are in use when the
    dialect is first needed: its tables are built once in a process."""
    return tuple(dict.fromkeys(backend.namespace for backend in registry.loaded()))


@functools.cache
def upstream() -> tuple[str, ...]:
    """MLIR's dialects whose ops the passes of these backends build."""
    return tuple(dict.fromkeys(name for one in registry.loaded() for name in one.upstream))


@functools.cache
def extensions() -> tuple[Extension, ...]:
    """The extensions of these backends."""
    return tuple(resolve(name) for name in dict.fromkeys(one.dialect for one in registry.loaded()))


def check_included(backend: Backend) -> None:
    """Raises MissingError for a backend whose dialect the tables lack."""
    if backend.namespace not in namespaces():
        raise MissingError(
            f"the dialect of the backend {backend.name} can't be added any more",
            hint="this process has already used the dialect without it: use the backend first,"
            " for example by fly.get_backend",
        )


def backend_of(name: str) -> Backend | None:
    """The backend whose dialect has an op, a type or an address space of this name, with
    or without its sigil: "fly_x.load", "!fly_x.copy<32>", "#fly_x.space". None if none has."""
    namespace = name.lstrip("!#").partition(".")[0]
    return next((one for one in registry.loaded() if one.namespace == namespace), None)


def extension_of(name: str) -> Extension | None:
    """The extension whose dialect has an op, a type or an address space of this name: of
    `backend_of`, or of an active plugin."""
    backend = backend_of(name)
    if backend is not None:
        return resolve(backend.dialect)
    reference = plugins_dialects().get(name.lstrip("!#").partition(".")[0])
    return None if reference is None else resolve(reference)


def plugins_dialects() -> dict[str, str]:
    """The dialects of the active plugins: references to their extensions, by name."""
    return {name: where for one in active() for name, where in one.plugin.dialects.items()}


def plugins_atoms() -> dict[str, str]:
    """The instructions of the active plugins: references to their classes, by type name."""
    return {name: where for one in active() for name, where in one.plugin.atoms.items()}


def plugins_emitter(name: str) -> str | None:
    """The module that registers the emitter of an active plugin's instruction, or None."""
    found = (one.plugin.emitters.get(name) for one in active())
    return next((module for module in found if module), None)


def is_of_plugin(name: str) -> bool:
    """Whether an op is of the dialect of an active plugin."""
    return bool(active()) and name.partition(".")[0] in plugins_dialects()


def plugins_type(namespace: str, text: str) -> Spec | None:
    """The type `!namespace.text` of an active plugin's dialect, None if no plugin has this dialect.
    Raises ValueError for one that is not valid."""
    reference = plugins_dialects().get(namespace) if active() else None
    if reference is None:
        return None
    name, opened, body = text.partition("<")
    known = resolve(reference).types
    if name not in known:
        raise ValueError(f"the dialect {namespace} has no type {name}")
    if opened and not body.endswith(">"):
        raise ValueError(f"!{namespace}.{name}< is never closed")
    return known[name](body.removesuffix(">").strip())


def check_made_pointer(space: str, operands: list[Spec], result: PtrSpec) -> bool:
    """Checks a pointer made from operands in a backend's space. Returns False for others."""
    extension = extension_of(space)
    check = None if extension is None else extension.spaces.get(space)
    if check is None:
        return False
    check(operands, result)
    return True
