"""What a backend adds to the dialect: its own dialect beside `fly`, with ops, types and spaces.

A backend's record (`fly_backend`) gives the dialect's name and refers to its `Extension`. An
extension is loaded when a name of its dialect is first seen, a module of instruction types when one
of its types is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fly_backend import registry
from fly_backend.backend import Backend
from fly_common.resolve import resolve

from fly_dialect.op_info import OpInfo
from fly_dialect.types import PtrSpec, Spec


@dataclass(frozen=True)
class Extension:
    """`atoms` maps each module to the types whose families it registers
    (`fly_dialect.atoms.registry`). `spaces` maps each address space to the check of a
    `fly.make_ptr` that makes a pointer to it from operands (it raises ValueError), or to None if
    such a pointer allocates memory."""

    ops: tuple[OpInfo, ...] = ()
    atoms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spaces: Mapping[str, Callable[[list[Spec], PtrSpec], None] | None] = field(default_factory=dict)


@functools.cache
def namespaces() -> tuple[str, ...]:
    """The names of the built-in backends' dialects."""
    return tuple(backend.namespace for backend in registry.built_in())


@functools.cache
def upstream() -> tuple[str, ...]:
    """MLIR's dialects whose ops the passes of the built-in backends build."""
    return tuple(name for backend in registry.built_in() for name in backend.upstream)


@functools.cache
def extensions() -> tuple[Extension, ...]:
    """The extensions of the built-in backends."""
    return tuple(resolve(backend.dialect) for backend in registry.built_in())


def backend_of(name: str) -> Backend | None:
    """The built-in backend whose dialect has an op, a type or an address space of this name, with
    or without its sigil: "fly_x.load", "!fly_x.copy<32>", "#fly_x.space". None if none has."""
    namespace = name.lstrip("!#").partition(".")[0]
    return next((one for one in registry.built_in() if one.namespace == namespace), None)


def extension_of(name: str) -> Extension | None:
    """The extension of `backend_of`."""
    backend = backend_of(name)
    return None if backend is None else resolve(backend.dialect)


def check_made_pointer(space: str, operands: list[Spec], result: PtrSpec) -> bool:
    """Checks a pointer made from operands in a backend's space. Returns False for others."""
    extension = extension_of(space)
    check = None if extension is None else extension.spaces.get(space)
    if check is None:
        return False
    check(operands, result)
    return True
