"""Calls of atoms, brought to the one form that a family's emitter sees.

    copy_atom_call      registers are memrefs: loaded before the instruction, stored after it
    copy_atom_call_ssa  registers are values
    mma_atom_call       as copy_atom_call, for A, B, C and D
    mma_atom_call_ssa   registers are values; what is not contiguous is a memref

A predicate is an scf.if around the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fly_dialect.atoms.interface import CopyOp, MmaOp
from fly_dialect.bindings import ir
from fly_dialect.types import bits

from fly_opt.atoms import emitters, registers
from fly_opt.atoms.emitters import Copy, Memory, Multiply
from fly_opt.ir import pointers
from fly_opt.ir.builder import Builder

Value = Any  # an ir.Value
Operand = Memory | Value


def copy(
    builder: Builder,
    op: CopyOp,
    state: Value,
    source: Operand,
    destination: Operand | None,
    predicate: Operand | None,
    result: Any,
) -> Value | None:
    """Writes a copy; gives the value of its result, of type `result`, if it has one.

    With a result, `destination` is the value that a copy which doesn't happen leaves.
    """
    _check_elements(source, destination)

    def emit() -> Value | None:
        call = Copy(builder, op, state, source, destination, result)
        if result is not None:
            return _emit(replace(call, destination=None))
        if isinstance(destination, Memory) and destination.spec.space == "register":
            wanted = registers.value_type(destination.spec)
            value = _emit(replace(call, destination=None, result=wanted))
            registers.store(builder, value, destination.spec, destination.pointer)
            return None
        return _emit(call)

    if predicate is None:
        return emit()
    condition: Value = predicate
    if isinstance(predicate, Memory):
        condition = registers.load(builder, predicate.spec, predicate.pointer)
    if condition.type != pointers.integer(1):
        raise ValueError(f"the predicate of a copy must be one i1, not {condition.type}")
    return _conditional(builder, condition, emit, destination, result)


def _emit(call: Copy) -> Value | None:
    builder, source = call.builder, call.source
    if isinstance(source, Memory) and source.spec.space == "register":
        value = registers.load(builder, source.spec, source.pointer)
        call = replace(call, source=value)
    for type_ in (call.result, None if isinstance(call.source, Memory) else call.source.type):
        moved = getattr(call.op, "copied_bits", None)
        if type_ is not None and moved is not None and pointers.width(type_) != moved:
            raise ValueError(
                f"{call.op} moves {moved} bits, but {type_} has {pointers.width(type_)}"
            )
    value = emitters.of_copy(call.op)(call)
    if call.result is None:
        return None
    if value is None:
        raise ValueError(f"{call.op} returns no value: its destination is memory")
    return pointers.bitcast(builder, value, call.result)


def _check_elements(source: Operand, destination: Operand | None) -> None:
    if isinstance(source, Memory) and isinstance(destination, Memory):
        sizes = bits(source.spec.element), bits(destination.spec.element)
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"{source.spec} and {destination.spec} have elements of different sizes"
            )


def _conditional(
    builder: Builder,
    condition: Value,
    emit: Callable[[], Value | None],
    otherwise: Value | None,
    result: Any,
) -> Value | None:
    """`emit` where the condition holds; with a result, else the value `otherwise`."""
    op = ir.Operation.create(
        "scf.if",
        results=[] if result is None else [result],
        operands=[condition],
        regions=2,
        loc=builder.loc,
        ip=builder.ip,
    )
    with builder.within(op.regions[0].blocks.append()):
        value = emit()
        builder.op("scf.yield", None, [] if value is None else [value])
    if result is None:
        return None
    with builder.within(op.regions[1].blocks.append()):
        builder.op("scf.yield", None, [otherwise])
    return op.results[0]


def multiply(
    builder: Builder,
    op: MmaOp,
    state: Value,
    d: Memory | None,
    operands: tuple[Operand, Operand, Operand],
    result: Any,
) -> Value | None:
    """Writes a matrix instruction; gives the value of its result, of type `result`, if it has one,
    else puts it into `d`."""
    types, emit = emitters.of_mma(op)
    wanted = types(op)
    a, b, c = (
        _operand(builder, name, operand, type_)
        for name, operand, type_ in zip(
            "ABC", operands, (wanted.a, wanted.b, wanted.c), strict=True
        )
    )
    value = emit(Multiply(builder, op, state, a, b, c))
    if result is not None:
        return pointers.bitcast(builder, value, result)
    assert d is not None, "the verifier has seen to it"
    registers.store(builder, value, d.spec, d.pointer)
    return None


def _operand(builder: Builder, name: str, operand: Operand, type_: Any) -> Value:
    if isinstance(operand, Memory):
        return registers.load(builder, operand.spec, operand.pointer, type_)
    if pointers.width(operand.type) != pointers.width(type_):
        raise ValueError(f"the instruction takes {type_} for {name}, not {operand.type}")
    return pointers.bitcast(builder, operand, type_)
