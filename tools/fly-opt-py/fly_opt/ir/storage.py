"""The types in which LLVM holds elements: a float narrower than 16 bits is its bits."""

from __future__ import annotations

from fly_dialect.bindings import ir
from fly_dialect.dialect import type_of


def storage_type(element: str) -> ir.Type:
    """The type of an element type in memory and in registers: f32 of f32, i8 of f8E4M3FN."""
    return stored_type(type_of(element))


def stored_type(type_: ir.Type) -> ir.Type:
    """The type in which a value is held: its own, or of a narrow float, or a vector of such, an
    integer of as many bits."""
    if isinstance(type_, ir.VectorType):
        element = stored_type(type_.element_type)
        return type_ if element == type_.element_type else ir.VectorType.get(type_.shape, element)
    if isinstance(type_, ir.FloatType) and type_.width < 16:
        return ir.IntegerType.get_signless(type_.width)
    return type_
