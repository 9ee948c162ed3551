"""`fly-layout-lowering`: the algebra of layouts becomes integer arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from fly_dialect import algebra, infer, ops
from fly_dialect.dialect import attributes_of, int_tuple_of, memref_of, spec_of
from fly_dialect.layout import Layout
from fly_dialect.types import CoordTensorSpec, IntTupleSpec, LayoutSpec, PtrSpec

from fly_opt.passes.base import Pass
from fly_opt.passes.fly_layout_values import Lowering, Tuple, View
from fly_opt.passes.fly_scalars import tree_of


@dataclass(frozen=True)
class LayoutLowering(Pass):
    """Lowers layouts, tuples, views and element accesses to arith on i32 and i64.

    Ops that build, take apart or combine tuples and layouts disappear; get_scalar gives the integer
    itself; memref.load and memref.store become add_offset and ptr.load, ptr.store; memref.alloca
    becomes make_ptr. A tuple, layout or view that an op of another dialect uses stays, in normal
    form: one make_int_tuple, make_layout, make_view. An offset that is known when compiling is
    added after one that is not, so that many accesses share one pointer and differ in constants.
    """

    name: ClassVar[str] = "fly-layout-lowering"

    def run(self, op: Any) -> None:
        Lowering(_LOWER).run(op)


# -- one function an op: True where the op is done with -------------------------------------------
def _make_int_tuple(low: Lowering, op: Any) -> bool:
    spec = int_tuple_of(op.results[0])
    return low.keep(op, Tuple(tree_of(low.builder, spec.value, list(op.operands))))


def _static(low: Lowering, op: Any) -> bool:
    spec = spec_of(op.results[0].type)
    if isinstance(spec, IntTupleSpec):
        return low.keep(op, Tuple(tree_of(low.builder, spec.value, [])))
    if isinstance(spec, LayoutSpec):
        return low.keep(op, low.static_map(spec.layout))
    return False


def _make_layout(low: Lowering, op: Any) -> bool:
    return low.keep(op, Layout(low.tree(op.operands[0]), low.tree(op.operands[1])))


def _make_view(low: Lowering, op: Any) -> bool:
    base, layout = op.operands
    if isinstance(spec_of(base.type), IntTupleSpec):
        base = low.tree(base)
    return low.keep(op, View(base, low.map(layout)))


def _get_iter(low: Lowering, op: Any) -> bool:
    meaning = low.meanings.get(op.operands[0])
    if meaning is None:
        # The memref is a block argument: its pointer is what convert-fly-to-rocdl makes of it.
        return False
    assert isinstance(meaning, View), "the verifier has seen to it"
    if isinstance(spec_of(op.operands[0].type), CoordTensorSpec):
        return low.keep(op, Tuple(meaning.base))
    op.results[0].replace_all_uses_with(meaning.base)
    return True


def _get_layout(low: Lowering, op: Any) -> bool:
    return low.keep(op, low.map(op.operands[0]))


def _get_shape(low: Lowering, op: Any) -> bool:
    return low.keep(op, Tuple(low.map(op.operands[0]).shape))


def _get_stride(low: Lowering, op: Any) -> bool:
    return low.keep(op, Tuple(low.map(op.operands[0]).stride))


def _get(low: Lowering, op: Any) -> bool:
    path = tuple(attributes_of(op).get("mode", ()))
    meaning = low.meaning(op.operands[0])
    if isinstance(meaning, Tuple):
        return low.keep(op, Tuple(algebra.at(meaning.tree, path)))
    whole = meaning if isinstance(meaning, Layout) else meaning.map
    part = algebra.at(whole, path)
    if isinstance(meaning, Layout):
        return low.keep(op, part)
    base = meaning.base
    if isinstance(spec_of(op.operands[0].type), CoordTensorSpec):
        base = algebra.at(base, path)
    return low.keep(op, View(base, part))


def _select(low: Lowering, op: Any) -> bool:
    tree = low.tree(op.operands[0])
    parts = tuple(algebra.at(tree, (index,)) for index in attributes_of(op)["indices"])
    return low.keep(op, Tuple(parts[0] if len(parts) == 1 else parts))


def _get_scalar(low: Lowering, op: Any) -> bool:
    op.results[0].replace_all_uses_with(algebra.scalar(low.tree(op.operands[0])).read())
    return True


def _get_leaves(low: Lowering, op: Any) -> bool:
    found = algebra.integers(low.tree(op.operands[0]))
    if attributes_of(op).get("dynamicOnly"):
        found = [leaf for leaf in found if not leaf.type.is_static]
    for result, leaf in zip(op.results, found, strict=True):
        result.replace_all_uses_with(leaf.read())
    return True


def _elementwise(name: str) -> Callable[[Lowering, Any], bool]:
    def lower(low: Lowering, op: Any) -> bool:
        lhs, rhs = map(low.tree, op.operands)
        return low.keep(op, Tuple(algebra.elementwise(name, lhs, rhs)))

    return lower


def _ceil_div(low: Lowering, op: Any) -> bool:
    lhs, rhs = map(low.tree, op.operands)
    return low.keep(op, Tuple(algebra.ceil_div(lhs, rhs)))


def _product(low: Lowering, op: Any) -> bool:
    return low.keep(op, Tuple(algebra.product(low.tree(op.operands[0]))))


def _product_each(low: Lowering, op: Any) -> bool:
    return low.keep(op, Tuple(algebra.product_each(low.tree(op.operands[0]))))


def _size(low: Lowering, op: Any) -> bool:
    meaning = low.meaning(op.operands[0])
    nested = meaning.tree if isinstance(meaning, Tuple) else low.map(op.operands[0])
    return low.keep(op, Tuple(algebra.size(nested)))


def _cosize(low: Lowering, op: Any) -> bool:
    return low.keep(op, Tuple(algebra.cosize(low.map(op.operands[0]))))


def _crd2idx(low: Lowering, op: Any) -> bool:
    coord, layout = low.tree(op.operands[0]), low.map(op.operands[1])
    return low.keep(op, Tuple(algebra.crd2idx(coord, layout)))


def _from_index(name: str) -> Callable[[Lowering, Any], bool]:
    compute = infer.from_index(name)

    def lower(low: Lowering, op: Any) -> bool:
        layout = low.map(op.operands[1])
        return low.keep(op, Tuple(compute(low.tree(op.operands[0]), layout)))

    return lower


def _add_offset(low: Lowering, op: Any) -> bool:
    base, offset = op.operands
    if isinstance(spec_of(base.type), PtrSpec):
        op.results[0].replace_all_uses_with(low.add_offset(base, low.tree(offset)))
        return True
    total = algebra.add(low.tree(base), low.tree(offset))
    return low.keep(op, Tuple(total))


def _memref_load(low: Lowering, op: Any) -> bool:
    view, coord = op.operands
    if isinstance(spec_of(view.type), CoordTensorSpec):
        meaning = low.meaning(view)
        assert isinstance(meaning, View), "the verifier has seen to it"
        offset = algebra.crd2idx(low.tree(coord), meaning.map)
        return low.keep(op, Tuple(algebra.add(meaning.base, offset)))
    value = ops.ptr_load(low.element(view, coord), loc=low.builder.loc, ip=low.builder.ip)
    op.results[0].replace_all_uses_with(value)
    return True


def _memref_store(low: Lowering, op: Any) -> bool:
    value, view, coord = op.operands
    ops.ptr_store(value, low.element(view, coord), loc=low.builder.loc, ip=low.builder.ip)
    return True


def _memref_alloca(low: Lowering, op: Any) -> bool:
    spec = memref_of(op.results[0])
    layout = low.map(op.operands[0])
    count = algebra.cosize(layout).type.value
    base = ops.make_ptr(spec.pointer, count, loc=low.builder.loc, ip=low.builder.ip)
    return low.keep(op, View(base, layout))


_ELEMENTWISE = (
    "int_tuple_add",
    "int_tuple_sub",
    "int_tuple_mul",
    "int_tuple_div",
    "int_tuple_mod",
)
_LOWER: dict[str, Callable[[Lowering, Any], bool]] = {
    "static": _static,
    "make_int_tuple": _make_int_tuple,
    "make_shape": _make_int_tuple,
    "make_stride": _make_int_tuple,
    "make_coord": _make_int_tuple,
    "make_layout": _make_layout,
    "make_view": _make_view,
    "get_iter": _get_iter,
    "get_layout": _get_layout,
    "get_shape": _get_shape,
    "get_stride": _get_stride,
    "get": _get,
    "select": _select,
    "get_scalar": _get_scalar,
    "get_leaves": _get_leaves,
    "ceil_div": _ceil_div,
    "int_tuple_product": _product,
    "int_tuple_product_each": _product_each,
    "size": _size,
    "cosize": _cosize,
    "crd2idx": _crd2idx,
    "add_offset": _add_offset,
    "memref.load": _memref_load,
    "memref.store": _memref_store,
    "memref.alloca": _memref_alloca,
    **{name: _elementwise(name) for name in _ELEMENTWISE},
    **{name: _from_index(name) for name in ("idx2crd", "get_1d_coord", "get_flat_coord")},
}
