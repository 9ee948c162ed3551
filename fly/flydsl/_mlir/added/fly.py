"""`flydsl._mlir.dialects.fly`: the dialect's types and operations. Those that `flydsl.expr` has
under the same name are the language's; here are the others."""

from __future__ import annotations

from typing import Any

from fly_dialect.atoms import CopyAtomSpec, MmaAtomSpec
from fly_dialect.atoms.universal import UniversalAtomic, UniversalCopy, UniversalFma
from fly_trace.core import tracing
from fly_trace.memory.pointers import Pointer

from fly.flydsl.numbers.raw import escape, lift, lower
from fly.flydsl.numbers.specs import (
    AddressSpace,
    CoordTensorType,
    LayoutType,
    MemRefType,
    PointerType,
)
from fly.flydsl.numbers.types import text_of

__all__ = [
    "AddressSpace",
    "AtomicOp",
    "CoordTensorType",
    "CopyAtomType",
    "CopyOpUniversalAtomicType",
    "CopyOpUniversalCopyType",
    "LayoutType",
    "MemRefType",
    "MmaAtomType",
    "MmaOpUniversalFMAType",
    "PointerType",
    "copy_atom_call_ssa",
    "extract_aligned_pointer_as_index",
    "mma_atom_call_ssa",
]


class AtomicOp:
    """The updates of an atomic copy."""

    Add, Max, Min, And, Or, Inc, Dec = "add", "max", "min", "and", "or", "inc", "dec"


def _type(name: str, family: Any) -> Any:
    def get(*fields: Any) -> Any:
        return family(*(one if isinstance(one, (int, str)) else text_of(one) for one in fields))

    return type(name, (), {"get": staticmethod(get)})


CopyOpUniversalCopyType = _type("CopyOpUniversalCopyType", UniversalCopy)
CopyOpUniversalAtomicType = _type("CopyOpUniversalAtomicType", UniversalAtomic)
MmaOpUniversalFMAType = _type("MmaOpUniversalFMAType", UniversalFma)


class CopyAtomType:
    """`CopyAtomType.get(instruction, bits of an element)`."""

    get = staticmethod(CopyAtomSpec)


class MmaAtomType:
    """`MmaAtomType.get(instruction)`."""

    get = staticmethod(MmaAtomSpec)


def _call(name: str, results: Any, operands: list[Any], segmented: bool = False) -> Any:
    builder = tracing.kernel(f"fly.{name}")
    types = [lower(one) for one in results]
    values = [lower(one) for one in operands if one is not None]
    escape(*operands)
    sizes = ", ".join(str(int(one is not None)) for one in operands)
    attributes = {"operandSegmentSizes": builder.attribute(f"array<i32: {sizes}>")}
    op = builder.op(f"fly.{name}", types, values, attributes if segmented else None)
    found = [lift(one) for one in op.results]
    return found[0] if len(found) == 1 else found or None


def extract_aligned_pointer_as_index(result: Any, memref: Any, **_: Any) -> Any:
    """The address of a tensor's first element, as a pointer of LLVM."""
    if isinstance(lift(memref), Pointer):
        return _call("to_llvm_ptr", [result], [memref])
    return _call("extract_aligned_pointer_as_index", [result], [memref])


def copy_atom_call_ssa(
    results: Any, copy_atom: Any, src: Any, dst: Any = None, *, pred: Any = None, **_: Any
) -> Any:
    """A copy whose source or destination are values in registers."""
    return _call("copy_atom_call_ssa", results, [copy_atom, src, dst, pred], True)


def mma_atom_call_ssa(results: Any, mma_atom: Any, a: Any, b: Any, c: Any, **_: Any) -> Any:
    """A matrix instruction on values in registers."""
    return _call("mma_atom_call_ssa", results, [mma_atom, a, b, c])
