"""Registry of the functions that emit instructions, by the class of the instruction."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from fly_common.record import record
from fly_dialect.atoms.interface import AtomOp, CopyOp, MmaOp
from fly_dialect.bindings import ir
from fly_dialect.dialect import type_of
from fly_dialect.extension import plugins_emitter
from fly_dialect.types import MemRefSpec

from fly_opt.ir import pointers
from fly_opt.ir.builder import Builder
from fly_opt.lowering import interface

C = TypeVar("C", bound=CopyOp, covariant=True)
M = TypeVar("M", bound=MmaOp, covariant=True)


@record
class Memory:
    """A memref: its type, and its LLVM pointer or the value that a backend's space has for one."""

    spec: MemRefSpec
    pointer: ir.Value


@record
class Copy(Generic[C]):
    """A copy to emit. Registers are values: a source is given as a value, a destination is the
    value that the emitter returns, of type `result`."""

    builder: Builder
    op: C
    state: ir.Value  # the atom: a struct of its state
    source: Memory | ir.Value
    destination: Memory | None
    result: (
        ir.Type | None
    )  # the type of the destination's registers, None for a destination in memory

    def field(self, name: str) -> ir.Value:
        """Returns a field of the atom's state."""
        return state_field(self.builder, self.op, self.state, name)


@record
class Multiply(Generic[M]):
    """A matrix instruction to emit: D = A·B + C on values of the types it takes; on views where it
    reads operands from shared memory (`MmaOp.IN_SHARED`)."""

    builder: Builder
    op: M
    state: ir.Value
    a: Any  # ir.Value or Memory
    b: Any
    c: ir.Value

    def field(self, name: str) -> ir.Value:
        """Returns a field of the atom's state."""
        return state_field(self.builder, self.op, self.state, name)


@record
class Operands:
    """The types that a matrix instruction takes for A, B and C; None for what it reads from shared
    memory itself."""

    a: ir.Type | None
    b: ir.Type | None
    c: ir.Type


CopyEmitter = Callable[[Copy[C]], ir.Value | None]
MmaEmitter = Callable[[Multiply[M]], ir.Value]

# Any: the class that a function is found by is that of the op it takes.
_COPIES: dict[type[AtomOp], CopyEmitter[Any]] = {}
_MULTIPLIES: dict[type[AtomOp], tuple[Callable[[Any], Operands], MmaEmitter[Any]]] = {}


def copies(*ops: type[C]) -> Callable[[CopyEmitter[C]], CopyEmitter[C]]:
    """Registers the decorated function as the emitter of these copies."""

    def register(emitter: CopyEmitter[C]) -> CopyEmitter[C]:
        _COPIES.update(dict.fromkeys(ops, emitter))
        return emitter

    return register


def multiplies(
    operands: Callable[[M], Operands], *ops: type[M]
) -> Callable[[MmaEmitter[M]], MmaEmitter[M]]:
    """Registers the decorated function as the emitter of these matrix instructions; `operands`
    returns their types."""

    def register(emitter: MmaEmitter[M]) -> MmaEmitter[M]:
        _MULTIPLIES.update(dict.fromkeys(ops, (operands, emitter)))
        return emitter

    return register


def of_copy(op: C) -> CopyEmitter[C]:
    return _found(_COPIES, op)


def of_mma(op: M) -> tuple[Callable[[M], Operands], MmaEmitter[M]]:
    return _found(_MULTIPLIES, op)


def _found(table: dict[type[AtomOp], Any], op: AtomOp) -> Any:
    if type(op) not in table:
        # The modules that register emitters are imported when a backend's first atom is lowered.
        lowering = interface.of_name(op.NAME)
        own = plugins_emitter(op.NAME)
        for name in ("fly_opt.atoms.universal",) if lowering is None else lowering.emitters:
            importlib.import_module(name)
        if own is not None:
            importlib.import_module(own)
    if type(op) not in table:
        raise ValueError(f"there is no lowering for {op}")
    return table[type(op)]


def state_field(builder: Builder, op: AtomOp, state: ir.Value, name: str) -> ir.Value:
    """Returns a field of an atom's state."""
    slot = op.slot(name)
    return pointers.extract(builder, state, slot, type_of(op.state[slot].type))
