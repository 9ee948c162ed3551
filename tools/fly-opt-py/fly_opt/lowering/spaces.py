"""Finds the backend address space of a type."""

from __future__ import annotations

from fly_dialect.types import SPACES, MemRefSpec, PtrSpec, Spec

from fly_opt.lowering import interface
from fly_opt.lowering.interface import PointerSpaces


def of(spec: Spec) -> PointerSpaces | None:
    """Returns the backend's spaces that hold a pointer or memref; None if LLVM's do."""
    if not isinstance(spec, (PtrSpec, MemRefSpec)) or spec.space in SPACES:
        return None
    lowering = interface.of_name(spec.space)
    spaces = None if lowering is None else lowering.spaces()
    return spaces if spaces is not None and spaces.holds(spec) else None
