"""The types in which LLVM stores elements: a float narrower than 16 bits, and an index, is stored
as an integer."""

from __future__ import annotations

from fly_dialect.bindings import ir
from fly_dialect.dialect import type_of
from fly_dialect.types import bits

from fly_opt.ir.builder import Builder


def storage_type(element: str) -> ir.Type:
    """Returns the type of an element in memory and in registers: f32 for f32, i8 for f8E4M3FN."""
    return stored_type(type_of(element))


def stored_type(type_: ir.Type) -> ir.Type:
    """Returns the type in which a value is stored: its own, or for narrow floats, index, and
    vectors of them integers of the same width."""
    if isinstance(type_, ir.VectorType):
        element = stored_type(type_.element_type)
        return type_ if element == type_.element_type else ir.VectorType.get(type_.shape, element)
    if isinstance(type_, ir.FloatType) and type_.width < 16:
        return ir.IntegerType.get_signless(type_.width)
    if isinstance(type_, ir.IndexType):
        return ir.IntegerType.get_signless(bits("index"))
    return type_


def to_stored(builder: Builder, value: ir.Value) -> ir.Value:
    """Returns the value in the type in which it is stored."""
    return _converted(builder, value, stored_type(value.type), value.type)


def from_stored(builder: Builder, value: ir.Value, wanted: ir.Type) -> ir.Value:
    """Returns a value of type `wanted` that was loaded in the type in which it is stored."""
    return _converted(builder, value, wanted, wanted)


def _converted(builder: Builder, value: ir.Value, to: ir.Type, type_: ir.Type) -> ir.Value:
    if value.type == to:
        return value
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    name = "arith.index_cast" if isinstance(element, ir.IndexType) else "arith.bitcast"
    return builder.value(name, to, [value])
