"""Lowers atoms and their calls to instructions: one function per op, as in `fly_to_llvm`."""

from __future__ import annotations

from typing import Any

from fly_dialect.atoms import CopyAtomSpec, MmaAtomSpec, TiledCopySpec, TiledMmaSpec
from fly_dialect.bindings import ir
from fly_dialect.dialect import attributes_of, spec_of
from fly_dialect.types import MemRefSpec

from fly_opt.atoms import calls, state
from fly_opt.atoms.calls import Operand
from fly_opt.atoms.emitters import Memory
from fly_opt.passes.llvm.conversion import Conversion


def _instruction(value: ir.Value) -> Any:
    """Returns the instruction of an atom, a tiled copy or a tiled matrix multiplication."""
    spec = spec_of(value.type)
    if isinstance(spec, (TiledCopySpec, TiledMmaSpec)):
        spec = spec.atom
    assert isinstance(spec, (CopyAtomSpec, MmaAtomSpec)), "the verifier has seen to it"
    return spec.op


def _operand(conversion: Conversion, value: ir.Value) -> Operand:
    spec, lowered = spec_of(value.type), conversion.value(value)
    return Memory(spec, lowered) if isinstance(spec, MemRefSpec) else lowered


def make_atom(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return state.default(conversion.builder, _instruction(op.results[0]))


def same(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """Lowers a tiled copy or multiplication to its atom: its tiling is already in the layouts."""
    return conversion.value(op.operands[0])


def set_value(conversion: Conversion, op: ir.Operation) -> ir.Value:
    atom, value = op.operands
    field = attributes_of(op)["field"]
    struct, value = conversion.value(atom), conversion.value(value)
    return state.with_field(conversion.builder, _instruction(atom), struct, field, value)


def copy_call(conversion: Conversion, op: ir.Operation) -> None:
    atom, source, destination, *predicate = op.operands
    calls.copy(
        conversion.builder,
        _instruction(atom),
        conversion.value(atom),
        _operand(conversion, source),
        _operand(conversion, destination),
        _operand(conversion, predicate[0]) if predicate else None,
        None,
    )


def copy_call_ssa(conversion: Conversion, op: ir.Operation) -> ir.Value | None:
    operands = list(op.operands)
    _, _, has_destination, has_predicate = attributes_of(op)["operandSegmentSizes"]
    predicate = operands.pop() if has_predicate else None
    destination = operands.pop() if has_destination else None
    atom, source = operands
    return calls.copy(
        conversion.builder,
        _instruction(atom),
        conversion.value(atom),
        _operand(conversion, source),
        None if destination is None else _operand(conversion, destination),
        None if predicate is None else _operand(conversion, predicate),
        op.results[0].type if len(op.results) else None,
    )


def mma_call(conversion: Conversion, op: ir.Operation) -> None:
    atom, d, *inputs = op.operands
    _multiply(conversion, atom, d, inputs, None)


def mma_call_ssa(conversion: Conversion, op: ir.Operation) -> ir.Value | None:
    atom, *rest = op.operands
    if not len(op.results):
        return _multiply(conversion, atom, rest[0], rest[1:], None)
    return _multiply(conversion, atom, None, rest, op.results[0].type)


def _multiply(
    conversion: Conversion,
    atom: ir.Value,
    d: ir.Value | None,
    inputs: list[ir.Value],
    result: ir.Type | None,
) -> ir.Value | None:
    """`d` is None where D is a result; `inputs` are A, B and C."""
    a, b, c = (_operand(conversion, value) for value in inputs)
    into = None if d is None else _operand(conversion, d)
    assert not isinstance(into, ir.Value), "the verifier has seen to it"
    return calls.multiply(
        conversion.builder,
        _instruction(atom),
        conversion.value(atom),
        into,
        (a, b, c),
        result,
    )
