"""Lowers views of memory and of coordinates, and accesses to single elements."""

from __future__ import annotations

from typing import Any

from fly_dialect import algebra
from fly_dialect.bindings import ir
from fly_dialect.builders import ops
from fly_dialect.dialect import int_tuple_of, memref_of, spec_of
from fly_dialect.inference.computation import View
from fly_dialect.layouts.int_tuple import leaves, rank, static_value
from fly_dialect.layouts.integers import Basis, Int
from fly_dialect.layouts.layout import ComposedLayout, Layout
from fly_dialect.types import IntTupleSpec, MemRefSpec, PtrSpec

from fly_opt.ir.scalars import read, read_truth, tree_of
from fly_opt.passes.layout.lowering import Lower, Lowering


# -- integers, in and out -------------------------------------------------------------------------
def _make_int_tuple(low: Lowering, op: ir.Operation) -> bool:
    spec = int_tuple_of(op.results[0])
    return low.keep(op, tree_of(low.builder, spec.value, list(op.operands)))


def _get_scalar(low: Lowering, op: ir.Operation) -> bool:
    leaf = algebra.scalar(low.meaning(op.operands[0]))
    op.results[0].replace_all_uses_with(read(low.builder, leaf))
    return True


def _get_leaves(low: Lowering, op: ir.Operation) -> bool:
    found = algebra.integers(low.meaning(op.operands[0]))
    if len(found) != len(op.results):  # dynamicOnly
        found = [leaf for leaf in found if not leaf.type.is_static]
    for result, leaf in zip(op.results, found, strict=True):
        result.replace_all_uses_with(read(low.builder, leaf))
    return True


def _comparison(compare: Any) -> Lower:
    def lower(low: Lowering, op: ir.Operation) -> bool:
        truth = compare(*map(low.meaning, op.operands))
        op.results[0].replace_all_uses_with(read_truth(low.builder, truth))
        return True

    return lower


# -- views ----------------------------------------------------------------------------------------
def _make_view(low: Lowering, op: ir.Operation) -> bool:
    base, layout = op.operands
    if isinstance(spec_of(base.type), IntTupleSpec):
        base = low.meaning(base)
    return low.keep(op, View(base, low.meaning(layout)))


def _get_iter(low: Lowering, op: ir.Operation) -> bool:
    view = op.operands[0]
    if isinstance(spec_of(view.type), MemRefSpec):
        if view not in low.meanings:
            # A block argument: convert-fly-to-rocdl lowers its pointer.
            return False
        low.replace_pointer(op.results[0], low.view(view).base)
        return True
    return low.keep(op, low.view(view).base)


def moved(low: Lowering, view: View, offset: Any) -> View:
    """Returns the view shifted by `offset`."""
    if static_value(offset) == 0:
        return view
    if isinstance(view.base, ir.Value):
        return View(low.add_offset(view.base, algebra.scalar(offset)), view.layout)
    return View(algebra.add(view.base, offset), view.layout)


def sliced(low: Lowering, view: View, coord: Any) -> View:
    """Returns the modes of a view where `coord` is `*`. A composed layout keeps the offset of the
    slice; for a plain one the base is moved."""
    layout = algebra.slice_(view.layout, coord)
    if isinstance(view.layout, ComposedLayout):
        return View(view.base, layout)
    return View(moved(low, view, algebra.slice_offset(view.layout, coord)).base, layout)


class Parts:
    """The parts of views of one layout (V, Rest…), where V is the operand of one call of an atom.

    `of(low, view, *place)` equals `sliced` by (*, *place), but the layout shared by all parts is
    computed once, and an offset only from the modes in `place`.
    """

    def __init__(self, layout: Layout) -> None:
        others = rank(layout.shape) - 1
        self.whole = layout
        self.layout = algebra.slice_(layout, (None, *[Int(0)] * others))
        self.others = Layout(layout.shape[1:], layout.stride[1:]) if others else Layout((1,), (0,))
        # The sum of steps along coordinates has a mode for each of them, including those of V.
        along = any(isinstance(step, Basis) for step in leaves(layout.stride))
        self.along_coordinates = along and others > 0

    def of(self, low: Lowering, view: View, *place: Int) -> View:
        if self.along_coordinates:
            offset = algebra.slice_offset(self.whole, (None, *place))
        else:
            offset = algebra.crd2idx(place, self.others)
        if isinstance(view.layout, ComposedLayout):
            return View(view.base, self._placed(view.layout, offset))
        return View(moved(low, view, offset).base, self.layout)

    def _placed(self, layout: ComposedLayout, offset: Any) -> ComposedLayout:
        if isinstance(layout.outer, ComposedLayout):
            outer = self._placed(layout.outer, offset)
            return ComposedLayout(layout.inner, layout.offset, outer)
        return ComposedLayout(layout.inner, algebra.add(layout.offset, offset), self.layout)


def decomposed(low: Lowering, view: View) -> View:
    """Returns the view with the plain layout that takes the coordinate; the offset of the rest of
    its layout goes into the base. (The rest must preserve distances within the view: an atom must
    not copy across elements that a swizzle permutes.)"""
    if not isinstance(view.layout, ComposedLayout):
        return view
    base = moved(low, view, algebra.origin(view.layout)).base
    return View(base, view.layout.linear)


def _slice(low: Lowering, op: ir.Operation) -> bool:
    source, coord = map(low.meaning, op.operands)
    if isinstance(source, View):
        return low.keep(op, sliced(low, source, coord))
    return low.keep(op, algebra.slice_(source, coord))


def _decomposition(low: Lowering, op: ir.Operation) -> bool:
    return low.keep(op, decomposed(low, low.view(op.operands[0])))


def _add_offset(low: Lowering, op: ir.Operation) -> bool:
    base, offset = op.operands
    if isinstance(spec_of(base.type), PtrSpec):
        pointer = low.add_offset(base, algebra.scalar(low.meaning(offset)))
        low.replace_pointer(op.results[0], pointer)
        return True
    return low.keep(op, algebra.add(low.meaning(base), low.meaning(offset)))


# -- elements -------------------------------------------------------------------------------------
def _memref_load(low: Lowering, op: ir.Operation) -> bool:
    view, coord = map(low.meaning, op.operands)
    if not isinstance(spec_of(op.operands[0].type), MemRefSpec):
        return low.keep(op, algebra.add(view.base, algebra.crd2idx(coord, view.layout)))
    value = ops.ptr_load(low.element(view, coord), loc=low.builder.loc, ip=low.builder.ip)
    op.results[0].replace_all_uses_with(value)
    return True


def _memref_store(low: Lowering, op: ir.Operation) -> bool:
    value, view, coord = op.operands
    pointer = low.element(low.view(view), low.meaning(coord))
    ops.ptr_store(value, pointer, loc=low.builder.loc, ip=low.builder.ip)
    return True


def _ptr_load(low: Lowering, op: ir.Operation) -> bool:
    """Lowers the load of a coordinate, which is its own element."""
    if isinstance(spec_of(op.operands[0].type), PtrSpec):
        return False
    return low.keep(op, low.meaning(op.operands[0]))


# -- registers ------------------------------------------------------------------------------------
def _allocation(low: Lowering, op: ir.Operation) -> bool:
    """Lowers memref.alloca, make_fragment_like and mma.make_fragment: registers for a view of a
    static layout."""
    spec = memref_of(op.results[0])
    layout = low.value_of(spec.layout)
    count = algebra.cosize(spec.layout).value
    base = ops.make_ptr(spec.pointer, count, loc=low.builder.loc, ip=low.builder.ip)
    view = low.once("make_view", [base, layout], spec)
    low.meanings[view] = View(base, spec.layout)
    op.results[0].replace_all_uses_with(view)
    return True


TABLE: dict[str, Lower] = {
    **dict.fromkeys(("make_int_tuple", "make_shape", "make_stride", "make_coord"), _make_int_tuple),
    "get_scalar": _get_scalar,
    "get_leaves": _get_leaves,
    "elem_less": _comparison(algebra.elem_less),
    "equal": _comparison(algebra.equal),
    "make_view": _make_view,
    "get_iter": _get_iter,
    "slice": _slice,
    "decomposition": _decomposition,
    "add_offset": _add_offset,
    "memref.load": _memref_load,
    "memref.store": _memref_store,
    "ptr.load": _ptr_load,
    "memref.alloca": _allocation,
    "make_fragment_like": _allocation,
    "mma.make_fragment": _allocation,
}
