"""Address spaces of backends: whose pointers a value's type asks for."""

from __future__ import annotations

from fly_dialect.types import SPACES, MemRefSpec, PtrSpec, Spec

from fly_opt.lowering import interface
from fly_opt.lowering.interface import PointerSpaces


def of(spec: Spec) -> PointerSpaces | None:
    """The backend's spaces that a pointer or memref is in; None where it becomes LLVM's pointer."""
    if not isinstance(spec, (PtrSpec, MemRefSpec)) or spec.space in SPACES:
        return None
    every = (lowering.spaces() for lowering in interface.built_in())
    return next((spaces for spaces in every if spaces is not None and spaces.holds(spec)), None)
