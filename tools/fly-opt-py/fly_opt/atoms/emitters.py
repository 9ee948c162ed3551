"""Which function writes an instruction, by the class of the instruction."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fly_dialect.atoms.interface import AtomOp, CopyOp, MmaOp
from fly_dialect.dialect import type_of
from fly_dialect.types import MemRefSpec

from fly_opt.ir import pointers
from fly_opt.ir.builder import Builder
from fly_opt.lowering import interface

Value = Any  # an ir.Value


@dataclass(frozen=True, slots=True)
class Memory:
    """A memref: its type, and its LLVM pointer (in a backend's space, what stands for it)."""

    spec: MemRefSpec
    pointer: Value


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy to be written. Registers are values: as a source they are given, as a destination
    they are what the emitter returns, of type `result`."""

    builder: Builder
    op: Any  # the CopyOp
    state: Value  # the atom: a struct of its state
    source: Memory | Value
    destination: Memory | None
    result: Any  # the type of the destination's registers, None for a destination in memory

    def field(self, name: str) -> Value:
        """A field of the atom's state."""
        return state_field(self.builder, self.op, self.state, name)


@dataclass(frozen=True, slots=True)
class Multiply:
    """A matrix instruction to be written: D = A·B + C on values of the types it takes."""

    builder: Builder
    op: Any  # the MmaOp
    state: Value
    a: Value
    b: Value
    c: Value

    def field(self, name: str) -> Value:
        """A field of the atom's state."""
        return state_field(self.builder, self.op, self.state, name)


@dataclass(frozen=True, slots=True)
class Operands:
    """The types a matrix instruction takes for A, B and C."""

    a: Any
    b: Any
    c: Any


CopyEmitter = Callable[[Copy], Value | None]
MmaEmitter = Callable[[Multiply], Value]

_COPIES: dict[type[AtomOp], CopyEmitter] = {}
_MULTIPLIES: dict[type[AtomOp], tuple[Callable[[Any], Operands], MmaEmitter]] = {}


def copies(*ops: type[CopyOp]) -> Callable[[CopyEmitter], CopyEmitter]:
    """Makes a function the emitter of these copies."""

    def register(emitter: CopyEmitter) -> CopyEmitter:
        _COPIES.update(dict.fromkeys(ops, emitter))
        return emitter

    return register


def multiplies(
    operands: Callable[[Any], Operands], *ops: type[MmaOp]
) -> Callable[[MmaEmitter], MmaEmitter]:
    """Makes a function the emitter of these matrix instructions; `operands` gives their types."""

    def register(emitter: MmaEmitter) -> MmaEmitter:
        _MULTIPLIES.update(dict.fromkeys(ops, (operands, emitter)))
        return emitter

    return register


def of_copy(op: CopyOp) -> CopyEmitter:
    return _found(_COPIES, op)


def of_mma(op: MmaOp) -> tuple[Callable[[Any], Operands], MmaEmitter]:
    return _found(_MULTIPLIES, op)


def _found(table: dict[type[AtomOp], Any], op: AtomOp) -> Any:
    if not table:
        # The modules that register emitters are imported when the first atom is lowered.
        own = (name for lowering in interface.built_in() for name in lowering.emitters)
        for name in ("fly_opt.atoms.universal", *own):
            importlib.import_module(name)
    if type(op) not in table:
        raise ValueError(f"there is no lowering for {op}")
    return table[type(op)]


def state_field(builder: Builder, op: AtomOp, state: Value, name: str) -> Value:
    """A field of an atom's state."""
    slot = op.slot(name)
    return pointers.extract(builder, state, slot, type_of(op.state[slot].type))
