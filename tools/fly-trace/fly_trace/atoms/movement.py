"""Execution of atoms: copies of whole views, products of fragments, gathers and scatters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fly_trace.atoms.atom import CopyAtom, MmaAtom, Stateful
from fly_trace.atoms.tiled import TiledCopy, TiledMma
from fly_trace.core import tracing
from fly_trace.core.tracing import describe
from fly_trace.layouts.int_tuples import rank
from fly_trace.layouts.layout_algebra import size
from fly_trace.layouts.layouts import get_layout, make_layout
from fly_trace.layouts.tuple_math import group, prepend
from fly_trace.layouts.views import linear
from fly_trace.memory.tensors import Tensor
from fly_trace.memory.view_construction import get_iter, make_view, tensor_of

__all__ = [
    "GemmTraversalOrder",
    "copy",
    "copy_atom_call",
    "gather",
    "gemm",
    "mma_atom_call",
    "scatter",
]


class GemmTraversalOrder:
    """The order in which `gemm` traverses the atoms of a tile, the slowest mode first. A serpentine
    order reverses direction after each pass."""

    KMN, KNM, MKN, MNK, NKM, NMK = "kmn", "knm", "mkn", "mnk", "nkm", "nmk"
    KMN_Serpentine, KNM_Serpentine = "kmn_serpentine", "knm_serpentine"
    MKN_Serpentine, MNK_Serpentine = "mkn_serpentine", "mnk_serpentine"
    NKM_Serpentine, NMK_Serpentine = "nkm_serpentine", "nmk_serpentine"


def _emit(name: str, operands: list[Any], attributes: dict[str, Any], what: str) -> None:
    builder = tracing.kernel(what)
    values = [operand.value(builder) for operand in operands]
    try:
        builder.fly_op(name, values, attributes)
    except ValueError as error:
        tracing.refuse(str(error).replace("fly.", "fx.", 1))


def _move(name: str, atom: Any, src: Any, dst: Any, pred: Any) -> None:
    what = f"fx.{name}"
    source, target = tensor_of(src, what), tensor_of(dst, what)
    modes = [rank(linear(view.spec).shape) for view in (source, target)]
    if modes[0] != modes[1]:
        tracing.refuse(
            f"{what} needs views with the same number of modes, not {modes[0]} and {modes[1]}:"
            f" {source.describe()} and {target.describe()}"
        )
    if source.dtype.bits != target.dtype.bits:
        tracing.refuse(
            f"{what} does not convert elements, but {source.name} contains {source.dtype.name} and"
            f" {target.name} {target.dtype.name}",
            "convert them between two copies: g.store(f.load().to(…))",
        )
    operands = [atom, source, target]
    if pred is not None:
        operands.append(tensor_of(pred, what))
    source.access.reads = target.access.writes = True
    if "atomic" in str(atom.spec):
        target.access.reads = True
    _emit(name, operands, {}, what)


def copy(copy_atom: Any, src: Any, dst: Any, *, pred: Any = None, **state: Any) -> None:
    """Copies a whole view, atom by atom. `src` and `dst` have the same shape; their first mode is
    the values of an atom. `pred`, a tensor of bools with shape (atoms of a tile, tiles …), selects
    the atoms that are copied. `state` sets the atom's state, such as `soffset=`."""
    if not isinstance(copy_atom, (CopyAtom, TiledCopy)):
        tracing.refuse(f"fx.copy takes a copy atom first, not {describe(copy_atom)}")
    _move("copy", copy_atom.set_value(state) if state else copy_atom, src, dst, pred)


def copy_atom_call(copy_atom: Any, src: Any, dst: Any, *, pred: Any = None) -> None:
    """Executes a copy instruction once."""
    if not isinstance(copy_atom, CopyAtom):
        tracing.refuse(f"fx.copy_atom_call takes a copy atom first, not {describe(copy_atom)}")
    _move("copy_atom_call", copy_atom, src, dst, pred)


def gemm(
    mma_atom: Any,
    d: Any,
    a: Any,
    b: Any,
    c: Any,
    *,
    traversal_order: str | None = None,
    traversal_layout: Any = None,
    **state: Any,
) -> None:
    """Computes d = a·b + c on fragments, atom by atom. `traversal_order` (of fx.GemmTraversalOrder)
    or `traversal_layout` gives the order. `state` sets the atom's state, such as `scale_a=`."""
    if traversal_order is not None and traversal_layout is not None:
        tracing.refuse("fx.gemm takes traversal_order or traversal_layout, not both")
    attributes: dict[str, Any] = {}
    if traversal_order is not None:
        attributes["traversalOrder"] = f"#fly<gemm_traversal_order {traversal_order}>"
    atom = _mma(mma_atom, "fx.gemm")
    fragments = _fragments(d, a, b, c, "fx.gemm")
    if traversal_layout is not None:
        fragments.append(traversal_layout)
    _emit("gemm", [atom.set_value(state) if state else atom, *fragments], attributes, "fx.gemm")


def mma_atom_call(mma_atom: Any, d: Any, a: Any, b: Any, c: Any) -> None:
    """Executes a matrix instruction once: d = a·b + c."""
    what = "fx.mma_atom_call"
    _emit("mma_atom_call", [_mma(mma_atom, what), *_fragments(d, a, b, c, what)], {}, what)


def _mma(atom: Any, what: str) -> Stateful:
    if not isinstance(atom, (MmaAtom, TiledMma)):
        tracing.refuse(f"{what} takes an mma atom or tiled mma first, not {describe(atom)}")
    return atom


def _fragments(d: Any, a: Any, b: Any, c: Any, what: str) -> list[Any]:
    found = [tensor_of(operand, what) for operand in (d, a, b, c)]
    for operand in found:
        operand.access.reads = True
    found[0].access.writes = True
    return found


# -- by offsets ------------------------------------------------------------------------------------


def _instances(offsets: Any, operand: Tensor, pred: Any) -> Iterator[tuple[Any, Tensor, Any]]:
    """Yields the offset of each atom of a fragment, the atom's part, and its predicate."""
    if pred is not None:
        # The predicate of a single atom has a mode for its values, of one element.
        layout = prepend(get_layout(pred), make_layout(1, 0))
        pred = make_view(get_iter(pred), layout)
    values = int(size(offsets.shape[0]))
    if rank(offsets) == 1:
        for v in range(values):
            yield offsets[v], operand[None, v], None if pred is None else pred[None, v]
        return
    offsets = group(offsets, 1, rank(offsets))
    operand = group(operand, 1, rank(operand))
    pred = None if pred is None else group(pred, 2, rank(pred))
    for v in range(values):
        for tile in range(int(size(offsets.shape[1]))):
            part = None if pred is None else pred[None, v, tile]
            yield offsets[v, tile], operand[(None, v), tile], part


def gather(
    copy_atom: CopyAtom, base_iter: Any, offset_tensor: Any, dst_tensor: Any, *, pred: Any = None
) -> None:
    """Loads by offsets. `dst_tensor` has shape ((values, atoms), tiles …), `offset_tensor` and
    `pred` (atoms, tiles …). Atom (v, rest) is at `base_iter` + `offset_tensor[v, rest]`."""
    layout = copy_atom.layout_src_tv[1]
    offsets, target = tensor_of(offset_tensor, "fx.gather"), tensor_of(dst_tensor, "fx.gather")
    for offset, part, condition in _instances(offsets, target, pred):
        copy(copy_atom, make_view(base_iter + offset, layout), part, pred=condition)


def scatter(
    copy_atom: CopyAtom, src_tensor: Any, base_iter: Any, offset_tensor: Any, *, pred: Any = None
) -> None:
    """Stores by offsets: atom (v, rest) of `src_tensor` to `base_iter` + `offset_tensor[v, rest]`.
    Shapes are those of `gather`."""
    layout = copy_atom.layout_dst_tv[1]
    offsets, source = tensor_of(offset_tensor, "fx.scatter"), tensor_of(src_tensor, "fx.scatter")
    for offset, part, condition in _instances(offsets, source, pred):
        copy(copy_atom, part, make_view(base_iter + offset, layout), pred=condition)
