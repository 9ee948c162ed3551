"""Calls of atoms, normalised to the form that a family's emitter takes.

    copy_atom_call      registers are memrefs: loaded before the instruction, stored after it
    copy_atom_call_ssa  registers are values
    mma_atom_call       like copy_atom_call, for A, B, C and D
    mma_atom_call_ssa   registers are values; a non-contiguous operand is a memref

A predicate becomes an scf.if around the whole call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fly_common.record import replace
from fly_dialect import algebra
from fly_dialect.atoms.interface import CopyOp, MmaOp
from fly_dialect.bindings import ir
from fly_dialect.layouts.int_tuple import static_value
from fly_dialect.types import bits

from fly_opt.atoms import emitters, registers
from fly_opt.atoms.emitters import Copy, Memory, Multiply
from fly_opt.ir import pointers
from fly_opt.ir.builder import Builder

Operand = Memory | ir.Value


def copy(
    builder: Builder,
    op: CopyOp,
    state: ir.Value,
    source: Operand,
    destination: Operand | None,
    predicate: Operand | None,
    result: ir.Type | None,
) -> ir.Value | None:
    """Emits a copy; returns its result, of type `result`, if it has one.

    With a result, `destination` is the result's value when the predicate is false.
    """
    _check_elements(source, destination)
    if not op.WHOLE_TILE:
        _check_adjacent(source)
        _check_adjacent(destination)

    def emit() -> ir.Value | None:
        if result is not None:
            return _emit_value(Copy(builder, op, state, source, None, result), result)
        if not isinstance(destination, Memory):
            raise ValueError(f"{op} without a result copies to memory")
        if destination.spec.space == "register":
            wanted = registers.value_type(destination.spec)
            value = _emit_value(Copy(builder, op, state, source, None, wanted), wanted)
            registers.store(builder, value, destination.spec, destination.pointer)
        else:
            _emit(Copy(builder, op, state, source, destination, None))
        return None

    if predicate is None:
        return emit()
    if isinstance(predicate, Memory):
        condition = registers.load(builder, predicate.spec, predicate.pointer)
    else:
        condition = predicate
    if condition.type != pointers.integer(1):
        raise ValueError(f"the predicate of a copy must be one i1, not {condition.type}")
    otherwise = None if isinstance(destination, Memory) else destination
    return _conditional(builder, condition, emit, otherwise, result)


def _emit_value(call: Copy[CopyOp], wanted: ir.Type) -> ir.Value:
    """What a copy to registers gives, as the type that is wanted."""
    value = _emit(call)
    if value is None:
        raise ValueError(f"{call.op} gives no value: its destination is memory")
    return pointers.bitcast(call.builder, value, wanted)


def _emit(call: Copy[CopyOp]) -> ir.Value | None:
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
    return emitters.of_copy(call.op)(call)


def _check_elements(source: Operand, destination: Operand | None) -> None:
    if isinstance(source, Memory) and isinstance(destination, Memory):
        sizes = bits(source.spec.element), bits(destination.spec.element)
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"{source.spec} and {destination.spec} have elements of different sizes"
            )


def _check_adjacent(operand: Operand | None) -> None:
    """ValueError if the elements that a call takes are known not to be adjacent in memory. The
    instruction has a pointer: it would take the elements behind it, whatever the strides are. A
    stride that is not known is the program's affair, which may launch only where it is 1."""
    if not isinstance(operand, Memory) or operand.spec.space == "register":
        return
    layout = algebra.coalesce(operand.spec.layout).linear
    if static_value(algebra.size(layout)) == 1:
        return
    if static_value(layout.stride) != 1 and static_value(algebra.cosize(layout)) is not None:
        raise ValueError(
            f"one call takes {layout}, whose elements are not adjacent in memory: use an atom of "
            "one element, or a tensor whose stride there is 1"
        )


def _conditional(
    builder: Builder,
    condition: ir.Value,
    emit: Callable[[], ir.Value | None],
    otherwise: ir.Value | None,
    result: ir.Type | None,
) -> ir.Value | None:
    """Emits an scf.if around `emit`; if there is a result, `otherwise` is its value in the else
    branch."""
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
    if otherwise is None:
        raise ValueError("a copy with a result and a predicate has the value of one not made")
    with builder.within(op.regions[1].blocks.append()):
        builder.op("scf.yield", None, [otherwise])
    return op.results[0]


def multiply(
    builder: Builder,
    op: MmaOp,
    state: ir.Value,
    d: Memory | None,
    operands: tuple[Operand, Operand, Operand],
    result: ir.Type | None,
) -> ir.Value | None:
    """Emits a matrix instruction; returns its result, of type `result`, if it has one, and stores
    it to `d` otherwise."""
    types, emit = emitters.of_mma(op)
    wanted = types(op)
    a, b, c = (
        _operand(builder, op, name, operand, type_)
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


def _operand(
    builder: Builder, op: MmaOp, name: str, operand: Operand, type_: ir.Type | None
) -> Any:
    """The value that the instruction takes; the view of an operand that it reads from shared
    memory itself."""
    if name.lower() in op.IN_SHARED:
        if not isinstance(operand, Memory) or operand.spec.space != "shared":
            raise ValueError(f"{op} reads {name} from shared memory")
        return operand
    assert type_ is not None, "what is in registers has a type"
    if isinstance(operand, Memory):
        return registers.load(builder, operand.spec, operand.pointer, type_)
    if pointers.width(operand.type) != pointers.width(type_):
        raise ValueError(f"the instruction takes {type_} for {name}, not {operand.type}")
    return pointers.bitcast(builder, operand, type_)
