"""What a backend adds to the dialect: a dialect of its own beside `fly`, with ops, types and
spaces.

A backend's record (`fly_backend`) refers to its `Extension`. The extensions of the backends that
come with the compiler are read when the table of ops is; modules of instruction types when one of
their types is met.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fly_backend import registry
from fly_common.resolve import resolve

from fly_dialect.op_info import OpInfo
from fly_dialect.types import PtrSpec, Spec


@dataclass(frozen=True)
class Extension:
    """`namespace` is the name of the backend's dialect, `upstream` are MLIR's dialects whose ops
    the backend's passes build. `atoms` has, for each module, the types whose families it registers
    (`fly_dialect.atoms.registry`). `spaces` are address spaces: each with the check of a
    `fly.make_ptr` that makes a pointer to it from operands (ValueError where it can't), None where
    such a pointer is memory of its own."""

    namespace: str
    upstream: tuple[str, ...] = ()
    ops: tuple[OpInfo, ...] = ()
    atoms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spaces: Mapping[str, Callable[[list[Spec], PtrSpec], None] | None] = field(default_factory=dict)


@functools.cache
def extensions() -> tuple[Extension, ...]:
    """The extensions of the backends that come with the compiler."""
    return tuple(resolve(backend.dialect) for backend in registry.built_in())


def check_made_pointer(space: str, operands: list[Spec], result: PtrSpec) -> bool:
    """Whether a backend's space makes pointers from operands; then they were checked."""
    for extension in extensions():
        if (check := extension.spaces.get(space)) is not None:
            check(operands, result)
            return True
    return False
