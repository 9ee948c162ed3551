"""Type inference for atoms and the ops that execute them. See `fly_dialect.inference.rules`.

The memory form of an op takes memrefs and has no result. The SSA form takes vectors in place of
register memrefs, and returns what the instruction writes to them.
"""

from __future__ import annotations

import re

from fly_dialect.atoms import CopyAtomSpec, MmaAtomSpec, TiledCopySpec, TiledMmaSpec
from fly_dialect.inference.rules import Attributes, memref_operand, wrong
from fly_dialect.types import LayoutSpec, Spec, bits

# The orders in which gemm may traverse M, N and K, the fastest mode first.
TRAVERSAL_ORDERS = tuple(
    f"{order}{kind}"
    for kind in ("", "_serpentine")
    for order in ("kmn", "knm", "mkn", "mnk", "nkm", "nmk")
)

_CASE = re.compile(r"(\w+)>$")


def copy_atom_operand(operands: list[Spec], index: int = 0) -> CopyAtomSpec:
    """The atom of a copy_atom or tiled_copy."""
    spec = operands[index]
    if isinstance(spec, TiledCopySpec):
        return spec.atom
    if not isinstance(spec, CopyAtomSpec):
        raise wrong(index, "a copy_atom or tiled_copy", spec)
    return spec


def mma_atom_operand(operands: list[Spec], index: int = 0) -> MmaAtomSpec:
    """The atom of an mma_atom or tiled_mma."""
    spec = operands[index]
    if isinstance(spec, TiledMmaSpec):
        return spec.atom
    if not isinstance(spec, MmaAtomSpec):
        raise wrong(index, "an mma_atom or tiled_mma", spec)
    return spec


# -- construction ---------------------------------------------------------------------------------
def check_make_copy_atom(_: list[Spec], results: list[Spec], attributes: Attributes) -> None:
    atom = results[0]
    if not isinstance(atom, CopyAtomSpec):
        raise ValueError(f"the result must be a copy_atom, but is {atom}")
    if (given := attributes.get("valBits")) != atom.bits:
        raise ValueError(f"valBits is {given}, but {atom} has values of {atom.bits} bits")


def check_make_mma_atom(_: list[Spec], results: list[Spec], __: Attributes) -> None:
    if not isinstance(results[0], MmaAtomSpec):
        raise ValueError(f"the result must be an mma_atom, but is {results[0]}")


def infer_atom_set_value(operands: list[Spec], attributes: Attributes) -> list[Spec]:
    atom, value = operands
    inner = atom.atom if isinstance(atom, (TiledCopySpec, TiledMmaSpec)) else atom
    if not isinstance(inner, (CopyAtomSpec, MmaAtomSpec)):
        raise wrong(0, "an atom", atom)
    field = inner.op.state[inner.op.slot(str(attributes.get("field", "")))]
    if not isinstance(value, str) or bits(value) != bits(field.type):
        raise ValueError(f"`{field.name}` of {inner.op} is an {field.type}, not {value}")
    return [atom]


def infer_get_copy_atom(operands: list[Spec], _: Attributes) -> list[Spec]:
    if not isinstance(operands[0], TiledCopySpec):
        raise wrong(0, "a tiled_copy", operands[0])
    return [operands[0].atom]


def infer_get_mma_atom(operands: list[Spec], _: Attributes) -> list[Spec]:
    if not isinstance(operands[0], TiledMmaSpec):
        raise wrong(0, "a tiled_mma", operands[0])
    return [operands[0].atom]


# -- execution ------------------------------------------------------------------------------------
def check_copy(operands: list[Spec], _: list[Spec], __: Attributes) -> None:
    """Checks a `copy`: an atom or tiled copy, source, destination and an optional predicate."""
    copy_atom_operand(operands)
    for index in range(1, len(operands)):
        memref_operand(operands, index)


def check_copy_atom_call(operands: list[Spec], _: list[Spec], __: Attributes) -> None:
    if not isinstance(operands[0], CopyAtomSpec):
        raise wrong(0, "a copy_atom", operands[0])
    for index in range(1, len(operands)):
        memref_operand(operands, index)


def check_copy_atom_call_ssa(
    operands: list[Spec], results: list[Spec], attributes: Attributes
) -> None:
    if not isinstance(operands[0], CopyAtomSpec):
        raise wrong(0, "a copy_atom", operands[0])
    segments = attributes.get("operandSegmentSizes")
    if segments is None or len(segments) != 4 or sum(segments) != len(operands):
        raise ValueError(
            "operandSegmentSizes must specify which of atom, source, destination and predicate the "
            f"{len(operands)} operands are, but is {segments}"
        )
    if tuple(segments[:2]) != (1, 1) or not set(segments) <= {0, 1}:
        raise ValueError(
            f"there must be one atom and one source, not operandSegmentSizes = {segments}"
        )
    if len(results) > 1:
        raise ValueError(f"returns at most one value, but has {len(results)} results")


def check_mma_atom_call(operands: list[Spec], _: list[Spec], __: Attributes) -> None:
    if not isinstance(operands[0], MmaAtomSpec):
        raise wrong(0, "an mma_atom", operands[0])
    for index in range(1, 5):
        memref_operand(operands, index)


def check_mma_atom_call_ssa(operands: list[Spec], results: list[Spec], _: Attributes) -> None:
    """Checks an atom with A, B and C as values. D is the result, or an operand in memory."""
    if not isinstance(operands[0], MmaAtomSpec):
        raise wrong(0, "an mma_atom", operands[0])
    if len(results) > 1:
        raise ValueError(f"returns at most one value, but has {len(results)} results")


def check_gemm(operands: list[Spec], _: list[Spec], attributes: Attributes) -> None:
    mma_atom_operand(operands)
    for index in range(1, 5):
        memref_operand(operands, index)
    if len(operands) == 6 and not isinstance(operands[5], LayoutSpec):
        raise wrong(5, "a layout", operands[5])
    order = attributes.get("traversalOrder")
    if order is None:
        return
    if len(operands) == 6:
        raise ValueError("takes a traversalOrder or a traversalLayout, not both")
    if enumerator(order) not in TRAVERSAL_ORDERS:
        raise ValueError(
            f"`{enumerator(order)}` is not a traversal order; "
            f"expected one of {', '.join(TRAVERSAL_ORDERS)}"
        )


def enumerator(attribute: object) -> str:
    """The case in an enumeration's attribute: `a` of #fly<mma_operand a>."""
    match = _CASE.search(str(attribute))
    return match[1] if match else str(attribute)
