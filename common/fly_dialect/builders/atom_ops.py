"""Builders of the ops on atoms, tiles and vectors of views. See `fly_dialect.builders.ops`."""

from __future__ import annotations

from fly_dialect.atoms import CopyAtomSpec, CopyOp, MmaAtomSpec, MmaOp
from fly_dialect.bindings import ir
from fly_dialect.builders.building import Ip, Loc, Value, build
from fly_dialect.types import Spec

__all__ = [
    "apply_swizzle",
    "atom_set_value",
    "copy",
    "copy_atom_call",
    "copy_atom_call_ssa",
    "decomposition",
    "enumeration",
    "gemm",
    "get_copy_atom",
    "get_mma_atom",
    "make_copy_atom",
    "make_mma_atom",
    "make_tiled_copy",
    "make_tiled_mma",
    "memref_load_vec",
    "memref_store_vec",
    "mma_atom_call",
    "mma_atom_call_ssa",
    "mma_make_fragment",
    "tiled_copy_partition_dst",
    "tiled_copy_partition_src",
    "tiled_copy_retile",
    "tiled_mma_partition",
    "tiled_mma_partition_shape",
]


def enumeration(name: str, case: str) -> ir.Attribute:
    """The attribute for a case of an enumeration: #fly<mma_operand a>."""
    return ir.Attribute.parse(f"#fly<{name} {case}>")


def _i32(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


def _present(*operands: Value | None) -> list[Value]:
    return [operand for operand in operands if operand is not None]


# -- atoms ----------------------------------------------------------------------------------------
def make_copy_atom(op: CopyOp, bits: int, *, loc: Loc = None, ip: Ip = None) -> Value:
    """Builds an atom of the copy instruction `op` for values of `bits` bits."""
    attributes = {"valBits": _i32(bits)}
    return build("make_copy_atom", [], [CopyAtomSpec(op, bits)], attributes, loc=loc, ip=ip)


def make_mma_atom(op: MmaOp, *, loc: Loc = None, ip: Ip = None) -> Value:
    """Builds an atom of the matrix instruction `op`."""
    return build("make_mma_atom", [], [MmaAtomSpec(op)], loc=loc, ip=ip)


def atom_set_value(
    atom: Value, field: str, value: Value, *, loc: Loc = None, ip: Ip = None
) -> Value:
    """Builds the atom with a new value in a field of its state."""
    attributes = {"field": ir.StringAttr.get(field)}
    return build("atom.set_value", [atom, value], None, attributes, loc=loc, ip=ip)


def get_copy_atom(tiled_copy: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    return build("get_copy_atom", [tiled_copy], loc=loc, ip=ip)


def get_mma_atom(tiled_mma: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    return build("get_mma_atom", [tiled_mma], loc=loc, ip=ip)


# -- execution ------------------------------------------------------------------------------------
def copy_atom_call(
    atom: Value,
    src: Value,
    dst: Value,
    pred: Value | None = None,
    *,
    loc: Loc = None,
    ip: Ip = None,
) -> None:
    """Executes a copy once, from memref to memref, if `pred` (a memref of an i1) is true."""
    build("copy_atom_call", _present(atom, src, dst, pred), loc=loc, ip=ip)


def mma_atom_call(
    atom: Value, d: Value, a: Value, b: Value, c: Value, *, loc: Loc = None, ip: Ip = None
) -> None:
    """Executes D = A·B + C once, on memrefs in registers."""
    build("mma_atom_call", [atom, d, a, b, c], loc=loc, ip=ip)


def copy_atom_call_ssa(
    atom: Value,
    src: Value,
    dst: Value | None = None,
    pred: Value | None = None,
    *,
    result: Spec | None = None,
    loc: Loc = None,
    ip: Ip = None,
) -> Value | None:
    """Executes a copy with vectors in place of register memrefs. With `result`, returns the vector
    that the instruction loads; `dst` is then the result if `pred` is false."""
    segments = [1, 1, int(dst is not None), int(pred is not None)]
    attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments)}
    results = [result] if result is not None else []
    operands = _present(atom, src, dst, pred)
    return build("copy_atom_call_ssa", operands, results, attributes, loc=loc, ip=ip)


def mma_atom_call_ssa(
    atom: Value, a: Value, b: Value, c: Value, *, result: Spec, loc: Loc = None, ip: Ip = None
) -> Value:
    """Executes D = A·B + C on vectors. `result` is the type of D."""
    return build("mma_atom_call_ssa", [atom, a, b, c], [result], loc=loc, ip=ip)


def copy(
    atom: Value,
    src: Value,
    dst: Value,
    pred: Value | None = None,
    *,
    loc: Loc = None,
    ip: Ip = None,
) -> None:
    """Copies a whole view by an atom or tiled copy, where `pred`, a memref of i1, is true."""
    build("copy", _present(atom, src, dst, pred), loc=loc, ip=ip)


def gemm(
    atom: Value,
    d: Value,
    a: Value,
    b: Value,
    c: Value,
    *,
    traversal_order: str | None = None,
    traversal_layout: Value | None = None,
    loc: Loc = None,
    ip: Ip = None,
) -> None:
    """Computes D = A·B + C on fragments by an atom or tiled mma. The traversal order of the
    fragments is named ("kmn", "mnk_serpentine") or given by a layout."""
    attributes = None
    if traversal_order is not None:
        attributes = {"traversalOrder": enumeration("gemm_traversal_order", traversal_order)}
    operands = _present(atom, d, a, b, c, traversal_layout)
    build("gemm", operands, None, attributes, loc=loc, ip=ip)


# -- tiled copies and multiplications ----------------------------------------------------------
def make_tiled_copy(
    atom: Value, layout_tv: Value, tile: Value, *, loc: Loc = None, ip: Ip = None
) -> Value:
    """Builds a tiled copy. `layout_tv` assigns the tile's elements to threads and values."""
    return build("make_tiled_copy", [atom, layout_tv, tile], loc=loc, ip=ip)


def make_tiled_mma(
    atom: Value,
    atom_layout: Value,
    permutation: Value | None = None,
    *,
    loc: Loc = None,
    ip: Ip = None,
) -> Value:
    """Builds a tiled mma. `atom_layout` distributes waves along M, N and K; `permutation`, a tile,
    selects what is divided among them."""
    return build("make_tiled_mma", _present(atom, atom_layout, permutation), loc=loc, ip=ip)


def tiled_copy_partition_src(
    tiled_copy: Value, view: Value, coord: Value, *, loc: Loc = None, ip: Ip = None
) -> Value:
    """The part of a view that thread `coord` reads: (values, tiles of mode 0, …)."""
    return build("tiled_copy.partition_src", [tiled_copy, view, coord], loc=loc, ip=ip)


def tiled_copy_partition_dst(
    tiled_copy: Value, view: Value, coord: Value, *, loc: Loc = None, ip: Ip = None
) -> Value:
    """The part of a view that thread `coord` writes: (values, tiles of mode 0, …)."""
    return build("tiled_copy.partition_dst", [tiled_copy, view, coord], loc=loc, ip=ip)


def tiled_copy_retile(
    tiled_copy: Value, fragment: Value, *, loc: Loc = None, ip: Ip = None
) -> Value:
    """A fragment of another tiled op, in the order in which this copy uses its values."""
    return build("tiled_copy.retile", [tiled_copy, fragment], loc=loc, ip=ip)


def tiled_mma_partition(
    operand: str,
    tiled_mma: Value,
    view: Value,
    coord: Value,
    *,
    loc: Loc = None,
    ip: Ip = None,
) -> Value:
    """The part of operand "a", "b", "c" or "d" of thread `coord`: (values, atoms, atoms)."""
    attributes = {"operand_id": enumeration("mma_operand", operand)}
    operands = [tiled_mma, view, coord]
    return build("tiled_mma.partition", operands, None, attributes, loc=loc, ip=ip)


def tiled_mma_partition_shape(
    operand: str, tiled_mma: Value, shape: Value, *, loc: Loc = None, ip: Ip = None
) -> Value:
    """The shape of a thread's part of an operand of `shape`."""
    attributes = {"operand_id": enumeration("mma_operand", operand)}
    operands = [tiled_mma, shape]
    return build("tiled_mma.partition_shape", operands, None, attributes, loc=loc, ip=ip)


def mma_make_fragment(
    operand: str,
    tiled_mma: Value,
    view: Value,
    *,
    stages: int | None = None,
    loc: Loc = None,
    ip: Ip = None,
) -> Value:
    """Registers for a thread's part of an operand, for each of `stages`."""
    attributes = {"operand_id": enumeration("mma_operand", operand)}
    if stages is not None:
        attributes["stages"] = _i32(stages)
    return build("mma.make_fragment", [tiled_mma, view], None, attributes, loc=loc, ip=ip)


# -- views ----------------------------------------------------------------------------------------
def memref_load_vec(view: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    """All elements of a view of static shape as a vector, the first mode fastest."""
    return build("memref.load_vec", [view], loc=loc, ip=ip)


def memref_store_vec(vector: Value, view: Value, *, loc: Loc = None, ip: Ip = None) -> None:
    build("memref.store_vec", [vector, view], loc=loc, ip=ip)


def apply_swizzle(ptr: Value, swizzle: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    """The pointer with its offsets permuted."""
    return build("apply_swizzle", [ptr, swizzle], loc=loc, ip=ip)


def decomposition(view: Value, *, loc: Loc = None, ip: Ip = None) -> Value:
    """The view without the inner parts of a composed layout, which are added to its base."""
    return build("decomposition", [view], loc=loc, ip=ip)
