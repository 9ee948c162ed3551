"""The accesses of memory in the IR of the slot opt.before-gpu-lowering: LLVM's, and a target's.

`accesses(op, lowering)` lists what an op reads and writes: none for most ops, two for a copy from
global memory straight to shared memory. Not listed are transfers of whole tiles by one thread,
whose addresses are in descriptors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fly_common.record import record
from fly_dialect.bindings import ir

from fly_opt.ir import pointers

if TYPE_CHECKING:
    from fly_opt.lowering.interface import Lowering

LOAD, STORE, ATOMIC = "load", "store", "atomic update"
SHARED = 3  # the address space


@record
class Access:
    """`nbytes` bytes at `pointer` plus the 32-bit `offsets`, in bytes. `bits` is the size of an
    element of what is moved. `buffer`: through a descriptor, which the hardware checks; `pointer`
    is the descriptor's base where that is known. `per_lane`:
    lane n accesses `nbytes` bytes n · `nbytes` behind that address. `value` is what is stored."""

    kind: str
    pointer: ir.Value
    nbytes: int
    bits: int
    offsets: tuple[ir.Value, ...] = ()
    buffer: bool = False
    per_lane: bool = False
    value: ir.Value | None = None

    @property
    def space(self) -> int:
        """LLVM's number of the address space."""
        return space_of(self.pointer)


def space_of(pointer: ir.Value) -> int:
    """The address space of a pointer."""
    text = str(pointer.type)
    return int(text[text.index("<") + 1 : -1]) if "<" in text else 0


def accesses(op: ir.Operation, lowering: Lowering) -> list[Access]:
    """What an op accesses. Accesses of types without a size in bits are left out."""
    name, operands = op.name, op.operands
    if name == "llvm.load":
        return made(LOAD, operands[0], op.results[0].type)
    if name == "llvm.store":
        return made(STORE, operands[1], operands[0].type, value=operands[0])
    if name in ("llvm.atomicrmw", "llvm.cmpxchg"):
        return made(ATOMIC, operands[0], operands[1].type)
    return lowering.accesses(op)


def made(
    kind: str,
    pointer: ir.Value,
    type_: ir.Type,
    offsets: tuple[ir.Value, ...] = (),
    buffer: bool = False,
    value: ir.Value | None = None,
) -> list[Access]:
    """An access that moves a value of this type; none if that has no size in bits."""
    try:
        size = pointers.width(type_)
    except TypeError:
        return []
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    bits = pointers.width(element)
    return [Access(kind, pointer, -(-size // 8), bits, offsets, buffer, value=value)]
