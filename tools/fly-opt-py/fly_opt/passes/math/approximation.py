"""Whether a math operation may be approximated, for the functions that a backend has of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fly_dialect.bindings import ir


def is_allowed(op: ir.Operation) -> bool:
    """Returns whether an op's fast-math flags allow approximations."""
    if "fastmath" not in op.attributes:
        return False
    flags = str(op.attributes["fastmath"])
    return "afn" in flags or "fast>" in flags


def element(op: ir.Operation) -> str:
    """Returns the type of an op's result, or of its elements."""
    from fly_dialect.bindings import ir

    kind = op.results[0].type
    return str(kind.element_type if isinstance(kind, ir.VectorType) else kind)
