"""Atoms as values: an LLVM struct of the atom's state, empty for most."""

from __future__ import annotations

from fly_dialect.atoms.interface import AtomOp
from fly_dialect.bindings import ir
from fly_dialect.dialect import type_of

from fly_opt.ir import pointers
from fly_opt.ir.builder import Builder


def struct(op: AtomOp) -> ir.Type:
    """Returns the type of an atom's value."""
    return ir.Type.parse(f"!llvm.struct<({', '.join(field.type for field in op.state)})>")


def default(builder: Builder, op: AtomOp) -> ir.Value:
    """Returns the atom with every field at its default."""
    type_ = struct(op)
    state = pointers.undefined(builder, type_)
    for slot, field in enumerate(op.state):
        value = builder.constant(field.default, pointers.width(type_of(field.type)))
        state = pointers.insert(builder, state, slot, value, type_)
    return state


def with_field(
    builder: Builder, op: AtomOp, state: ir.Value, name: str, value: ir.Value
) -> ir.Value:
    """Returns the atom with one field replaced. ValueError if there is no such field or the value
    has another number of bits; a scale may be a vector of bytes."""
    slot = op.slot(name)
    type_ = type_of(op.state[slot].type)
    if pointers.width(value.type) != pointers.width(type_):
        raise ValueError(f"`{name}` of {op} is {type_}, not {value.type}")
    value = pointers.bitcast(builder, value, type_)
    return pointers.insert(builder, state, slot, value, struct(op))
