"""What a backend adds to the dialect: its own dialect beside `fly`, with ops, types and spaces.

A backend's record (`fly_backend`) refers to its `Extension`. The extensions of the backends in use
are loaded with the table of ops; modules of instruction types are loaded when one of their types is
first used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fly_backend import registry
from fly_backend.backend import Backend
from fly_common.errors import MissingError
from fly_common.resolve import resolve

from fly_dialect.op_info import OpInfo
from fly_dialect.types import PtrSpec, Spec


@dataclass(frozen=True)
class Extension:
    """`namespace` is the name of the backend's dialect. `upstream` are MLIR's dialects whose ops
    the backend's passes build. `atoms` maps each module to the types whose families it registers
    (`fly_dialect.atoms.registry`). `spaces` maps each address space to the check of a
    `fly.make_ptr` that makes a pointer to it from operands (it raises ValueError), or to None if
    such a pointer allocates memory."""

    namespace: str
    upstream: tuple[str, ...] = ()
    ops: tuple[OpInfo, ...] = ()
    atoms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spaces: Mapping[str, Callable[[list[Spec], PtrSpec], None] | None] = field(default_factory=dict)


@functools.cache
def extensions() -> tuple[Extension, ...]:
    """The extensions of the built-in backends, and of those that are in use when the dialect is
    first needed: its tables are built once in a process."""
    return tuple(map(resolve, _included()))


@functools.cache
def _included() -> tuple[str, ...]:
    return tuple(dict.fromkeys(backend.dialect for backend in registry.loaded()))


def check_included(backend: Backend) -> None:
    """Raises MissingError for a backend whose extension the dialect's tables lack."""
    if backend.dialect not in _included():
        raise MissingError(
            f"the dialect of the backend {backend.name} can't be added any more",
            hint="this process has already used the dialect without it: use the backend first,"
            " for example by fly.get_backend",
        )


def check_made_pointer(space: str, operands: list[Spec], result: PtrSpec) -> bool:
    """Checks a pointer made from operands in a backend's space. Returns False for others."""
    for extension in extensions():
        if (check := extension.spaces.get(space)) is not None:
            check(operands, result)
            return True
    return False
