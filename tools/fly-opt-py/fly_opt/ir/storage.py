"""The types in which LLVM stores elements: a float narrower than 16 bits is stored as an
integer."""

from __future__ import annotations

from fly_dialect.bindings import ir
from fly_dialect.dialect import type_of


def storage_type(element: str) -> ir.Type:
    """Returns the type of an element in memory and in registers: f32 for f32, i8 for f8E4M3FN."""
    return stored_type(type_of(element))


def stored_type(type_: ir.Type) -> ir.Type:
    """Returns the type in which a value is stored: its own, or for narrow floats and vectors of
    them integers of the same width."""
    if isinstance(type_, ir.VectorType):
        element = stored_type(type_.element_type)
        return type_ if element == type_.element_type else ir.VectorType.get(type_.shape, element)
    if isinstance(type_, ir.FloatType) and type_.width < 16:
        return ir.IntegerType.get_signless(type_.width)
    return type_
