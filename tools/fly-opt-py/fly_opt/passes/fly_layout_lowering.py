"""`fly-layout-lowering`: the algebra of layouts becomes integer arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from fly_dialect import algebra, infer, ops
from fly_dialect.dialect import PREFIX, attributes_of, spec_of
from fly_dialect.layout import is_static
from fly_dialect.types import CoordTensorSpec, IntTupleSpec, LayoutSpec, MemRefSpec, PtrSpec

from fly_opt.passes.base import Pass, refuse
from fly_opt.passes.fly_scalars import (
    Builder,
    Scalar,
    operations,
    tree_of,
    types_of,
    unused,
    values_of,
)

Value = Any  # an ir.Value


@dataclass(frozen=True, slots=True)
class Tuple:
    """What an int_tuple value stands for: a tree of Scalars."""

    tree: Any


@dataclass(frozen=True, slots=True)
class Map:
    """What a layout value stands for."""

    shape: Any
    stride: Any


@dataclass(frozen=True, slots=True)
class View:
    """What a memref stands for: its pointer and its layout. A coord_tensor's `base` is a tree."""

    base: Any
    map: Map


Meaning = Tuple | Map | View


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
        _Lowering().run(op)


class _Lowering:
    def __init__(self) -> None:
        self.builder = Builder()
        self.meanings: dict[Value, Meaning] = {}
        self.added: dict[Value, tuple[Value, Scalar]] = {}  # pointer → what it was added to

    def run(self, op: Any) -> None:
        """Lowers all that `op` holds, definitions before uses."""
        lowered = []
        for inner in operations(op):
            if inner.name.startswith(PREFIX):
                self.builder.enter(inner)
                if self.fly_op(inner):
                    lowered.append(inner)
        # Last first: what only lowered ops used is then unused.
        for inner in reversed(lowered):
            self.retire(inner)
        self.builder.sweep()

    def fly_op(self, op: Any) -> bool:
        """Lowers one op; whether it is to be retired."""
        lower = _LOWER.get(op.name[len(PREFIX) :])
        if lower is None:
            return False
        self.builder.at(op)
        try:
            return lower(self, op)
        except ValueError as error:
            raise refuse(op, f"{op.name}: {error}") from None

    def retire(self, op: Any) -> None:
        """Erases a lowered op; where its result is still used, its normal form takes its place."""
        for result in op.results:
            if unused(result):
                continue
            if op.name == "fly.make_int_tuple":
                return
            self.builder.at(op)
            meaning = self.meanings[result]
            result.replace_all_uses_with(self.normal_form(meaning, spec_of(result.type)))
        op.erase()

    def normal_form(self, meaning: Meaning, spec: Any) -> Value:
        loc, ip = self.builder.loc, self.builder.ip
        if isinstance(meaning, Tuple):
            return ops.make_int_tuple(*values_of(meaning.tree), spec=spec, loc=loc, ip=ip)
        if isinstance(meaning, Map):
            shape = self.tuple_value(meaning.shape)
            return ops.make_layout(shape, self.tuple_value(meaning.stride), loc=loc, ip=ip)
        base = meaning.base
        if isinstance(spec, CoordTensorSpec):
            base = self.tuple_value(base)
        layout = self.normal_form(meaning.map, LayoutSpec(spec.layout))
        return ops.make_view(base, layout, loc=loc, ip=ip)

    def tuple_value(self, tree: Any) -> Value:
        spec = IntTupleSpec(types_of(tree))
        return self.normal_form(Tuple(tree), spec)

    # -- what values stand for

    def meaning(self, value: Value) -> Meaning:
        """ValueError where a dynamic value comes from somewhere this pass does not see."""
        if value in self.meanings:
            return self.meanings[value]
        spec = spec_of(value.type)
        if isinstance(spec, MemRefSpec) and spec.layout.is_static:
            base = ops.get_iter(value, loc=self.builder.loc, ip=self.builder.ip)
            found: Meaning = View(base, self.static_map(spec.layout))
        elif isinstance(spec, IntTupleSpec) and is_static(spec.value):
            found = Tuple(tree_of(self.builder, spec.value, []))
        elif isinstance(spec, LayoutSpec) and spec.layout.is_static:
            found = self.static_map(spec.layout)
        else:
            raise ValueError(
                f"what {spec} holds is not known here: run fly-rewrite-func-signature first"
            )
        return found

    def static_map(self, layout: Any) -> Map:
        return Map(
            tree_of(self.builder, layout.shape, []), tree_of(self.builder, layout.stride, [])
        )

    def tree(self, value: Value) -> Any:
        meaning = self.meaning(value)
        assert isinstance(meaning, Tuple), "the verifier has seen to it"
        return meaning.tree

    def map(self, value: Value) -> Map:
        meaning = self.meaning(value)
        if isinstance(meaning, View):
            return meaning.map
        assert isinstance(meaning, Map), "the verifier has seen to it"
        return meaning

    def keep(self, op: Any, meaning: Meaning) -> bool:
        self.meanings[op.results[0]] = meaning
        return True

    # -- pointers

    def add_offset(self, pointer: Value, offset: Scalar) -> Value:
        """pointer + offset, in the form (pointer + dynamic) + static: at most one of each."""
        if pointer in self.added:
            base, inner = self.added[pointer]
            both_static = inner.type.is_static and offset.type.is_static
            both_dynamic = not inner.type.is_static and not offset.type.is_static
            if both_static or both_dynamic:
                return self.add_offset(base, inner + offset)
            if inner.type.is_static and len(list(pointer.uses)) <= 1:
                return self.plain_offset(self.add_offset(base, offset), inner)
        return self.plain_offset(pointer, offset)

    def plain_offset(self, pointer: Value, offset: Scalar) -> Value:
        key = ("fly.add_offset", pointer, offset.type, offset.value)

        loc, ip = self.builder.loc, self.builder.ip
        spec = IntTupleSpec(offset.type)
        dynamic = [] if offset.value is None else [offset.value]

        def step() -> Any:
            return ops.build_op("make_int_tuple", dynamic, [spec], loc=loc, ip=ip)

        def make() -> Any:
            made = self.builder.once(("fly.make_int_tuple", offset.type, offset.value), step)
            return ops.build_op("add_offset", [pointer, made], loc=loc, ip=ip)

        result = self.builder.once(key, make)
        self.added[result] = (pointer, offset)
        return result

    def element(self, view: Value, coord: Value) -> Value:
        """The pointer to an element of a memref."""
        meaning = self.meaning(view)
        assert isinstance(meaning, View), "the verifier has seen to it"
        offset = algebra.crd2idx(self.tree(coord), meaning.map.shape, meaning.map.stride)
        return self.add_offset(meaning.base, offset)


# -- one function an op: True where the op is done with -------------------------------------------
def _make_int_tuple(low: _Lowering, op: Any) -> bool:
    spec = spec_of(op.results[0].type)
    return low.keep(op, Tuple(tree_of(low.builder, spec.value, list(op.operands))))


def _static(low: _Lowering, op: Any) -> bool:
    spec = spec_of(op.results[0].type)
    if isinstance(spec, IntTupleSpec):
        return low.keep(op, Tuple(tree_of(low.builder, spec.value, [])))
    if isinstance(spec, LayoutSpec):
        return low.keep(op, low.static_map(spec.layout))
    return False


def _make_layout(low: _Lowering, op: Any) -> bool:
    return low.keep(op, Map(low.tree(op.operands[0]), low.tree(op.operands[1])))


def _make_view(low: _Lowering, op: Any) -> bool:
    base, layout = op.operands
    if isinstance(spec_of(base.type), IntTupleSpec):
        base = low.tree(base)
    return low.keep(op, View(base, low.map(layout)))


def _get_iter(low: _Lowering, op: Any) -> bool:
    meaning = low.meanings.get(op.operands[0])
    if meaning is None:
        # The memref is a block argument: its pointer is what convert-fly-to-rocdl makes of it.
        return False
    assert isinstance(meaning, View), "the verifier has seen to it"
    if isinstance(spec_of(op.operands[0].type), CoordTensorSpec):
        return low.keep(op, Tuple(meaning.base))
    op.results[0].replace_all_uses_with(meaning.base)
    return True


def _get_layout(low: _Lowering, op: Any) -> bool:
    return low.keep(op, low.map(op.operands[0]))


def _get_shape(low: _Lowering, op: Any) -> bool:
    return low.keep(op, Tuple(low.map(op.operands[0]).shape))


def _get_stride(low: _Lowering, op: Any) -> bool:
    return low.keep(op, Tuple(low.map(op.operands[0]).stride))


def _get(low: _Lowering, op: Any) -> bool:
    path = tuple(attributes_of(op).get("mode", ()))
    meaning = low.meaning(op.operands[0])
    if isinstance(meaning, Tuple):
        return low.keep(op, Tuple(algebra.at(meaning.tree, path)))
    whole = meaning if isinstance(meaning, Map) else meaning.map
    part = Map(algebra.at(whole.shape, path), algebra.at(whole.stride, path))
    if isinstance(meaning, Map):
        return low.keep(op, part)
    base = meaning.base
    if isinstance(spec_of(op.operands[0].type), CoordTensorSpec):
        base = algebra.at(base, path)
    return low.keep(op, View(base, part))


def _select(low: _Lowering, op: Any) -> bool:
    tree = low.tree(op.operands[0])
    parts = tuple(algebra.at(tree, (index,)) for index in attributes_of(op)["indices"])
    return low.keep(op, Tuple(parts[0] if len(parts) == 1 else parts))


def _get_scalar(low: _Lowering, op: Any) -> bool:
    op.results[0].replace_all_uses_with(algebra.scalar(low.tree(op.operands[0])).read())
    return True


def _get_leaves(low: _Lowering, op: Any) -> bool:
    found = algebra.integers(low.tree(op.operands[0]))
    if attributes_of(op).get("dynamicOnly"):
        found = [leaf for leaf in found if not leaf.type.is_static]
    for result, leaf in zip(op.results, found, strict=True):
        result.replace_all_uses_with(leaf.read())
    return True


def _elementwise(name: str) -> Callable[[_Lowering, Any], bool]:
    combine = infer.elementwise(name)

    def lower(low: _Lowering, op: Any) -> bool:
        lhs, rhs = map(low.tree, op.operands)
        return low.keep(op, Tuple(algebra.transform(combine, lhs, rhs)))

    return lower


def _product(low: _Lowering, op: Any) -> bool:
    return low.keep(op, Tuple(algebra.product(low.tree(op.operands[0]))))


def _product_each(low: _Lowering, op: Any) -> bool:
    return low.keep(op, Tuple(algebra.product_each(low.tree(op.operands[0]))))


def _size(low: _Lowering, op: Any) -> bool:
    meaning = low.meaning(op.operands[0])
    shape = meaning.tree if isinstance(meaning, Tuple) else low.map(op.operands[0]).shape
    return low.keep(op, Tuple(algebra.product(shape)))


def _cosize(low: _Lowering, op: Any) -> bool:
    layout = low.map(op.operands[0])
    return low.keep(op, Tuple(algebra.cosize(layout.shape, layout.stride)))


def _crd2idx(low: _Lowering, op: Any) -> bool:
    layout = low.map(op.operands[1])
    return low.keep(
        op, Tuple(algebra.crd2idx(low.tree(op.operands[0]), layout.shape, layout.stride))
    )


def _idx2crd(low: _Lowering, op: Any) -> bool:
    layout = low.map(op.operands[1])
    return low.keep(
        op, Tuple(algebra.idx2crd(low.tree(op.operands[0]), layout.shape, layout.stride))
    )


def _add_offset(low: _Lowering, op: Any) -> bool:
    base, offset = op.operands
    if isinstance(spec_of(base.type), PtrSpec):
        op.results[0].replace_all_uses_with(low.add_offset(base, low.tree(offset)))
        return True
    total = algebra.transform(lambda a, b: a + b, low.tree(base), low.tree(offset))
    return low.keep(op, Tuple(total))


def _memref_load(low: _Lowering, op: Any) -> bool:
    view, coord = op.operands
    if isinstance(spec_of(view.type), CoordTensorSpec):
        meaning = low.meaning(view)
        assert isinstance(meaning, View), "the verifier has seen to it"
        offset = algebra.crd2idx(low.tree(coord), meaning.map.shape, meaning.map.stride)
        return low.keep(op, Tuple(algebra.transform(lambda a, b: a + b, meaning.base, offset)))
    value = ops.ptr_load(low.element(view, coord), loc=low.builder.loc, ip=low.builder.ip)
    op.results[0].replace_all_uses_with(value)
    return True


def _memref_store(low: _Lowering, op: Any) -> bool:
    value, view, coord = op.operands
    ops.ptr_store(value, low.element(view, coord), loc=low.builder.loc, ip=low.builder.ip)
    return True


def _memref_alloca(low: _Lowering, op: Any) -> bool:
    spec = spec_of(op.results[0].type)
    layout = low.map(op.operands[0])
    count = algebra.cosize(layout.shape, layout.stride).type.value
    base = ops.make_ptr(spec.pointer, count, loc=low.builder.loc, ip=low.builder.ip)
    return low.keep(op, View(base, layout))


_ELEMENTWISE = (
    "int_tuple_add",
    "int_tuple_sub",
    "int_tuple_mul",
    "int_tuple_div",
    "int_tuple_mod",
    "ceil_div",
)
_LOWER: dict[str, Callable[[_Lowering, Any], bool]] = {
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
    "int_tuple_product": _product,
    "int_tuple_product_each": _product_each,
    "size": _size,
    "cosize": _cosize,
    "crd2idx": _crd2idx,
    "idx2crd": _idx2crd,
    "add_offset": _add_offset,
    "memref.load": _memref_load,
    "memref.store": _memref_store,
    "memref.alloca": _memref_alloca,
    **{name: _elementwise(name) for name in _ELEMENTWISE},
}
