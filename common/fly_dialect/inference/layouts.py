"""Type inference for the ops without side effects. See `fly_dialect.inference.rules`."""

from __future__ import annotations

from typing import Any

from fly_dialect import algebra
from fly_dialect.inference.computation import LAYOUT_LIKE, NESTED, VIEW, Computation, Kind, View
from fly_dialect.inference.memory import moved_pointer
from fly_dialect.inference.rules import (
    Attributes,
    Infer,
    any_layout_operand,
    int_tuple_operand,
    wrong,
)
from fly_dialect.layouts.layout import ComposedLayout, Layout
from fly_dialect.layouts.swizzle import CoordSwizzle, Swizzle
from fly_dialect.layouts.tile import Tile
from fly_dialect.types import (
    ComposedLayoutSpec,
    CoordSwizzleSpec,
    CoordTensorSpec,
    IntTupleSpec,
    LayoutSpec,
    MemRefSpec,
    PtrSpec,
    Spec,
    SwizzleSpec,
    TileSpec,
    layout_spec,
)


def meaning_of(spec: Spec) -> Any:
    """Converts a type to the form that the functions of `computation` take."""
    if isinstance(spec, IntTupleSpec):
        return spec.value
    if isinstance(spec, (LayoutSpec, ComposedLayoutSpec)):
        return spec.layout
    if isinstance(spec, (SwizzleSpec, CoordSwizzleSpec)):
        return spec.swizzle
    if isinstance(spec, TileSpec):
        return spec.tile
    if isinstance(spec, MemRefSpec):
        return View(spec.pointer, spec.layout)
    if isinstance(spec, CoordTensorSpec):
        return View(spec.base, spec.layout)
    raise ValueError(f"{spec} is neither an int_tuple nor a layout")


def spec_of_meaning(meaning: Any) -> Spec:
    """Converts a result of `computation` to a type."""
    if isinstance(meaning, (Layout, ComposedLayout)):
        return layout_spec(meaning)
    if isinstance(meaning, Swizzle):
        return SwizzleSpec(meaning)
    if isinstance(meaning, CoordSwizzle):
        return CoordSwizzleSpec(meaning)
    if isinstance(meaning, Tile):
        return TileSpec(meaning)
    if isinstance(meaning, View):
        return view_spec(meaning.base, meaning.layout)
    return IntTupleSpec(meaning)


def view_spec(base: Any, layout: Layout | ComposedLayout) -> MemRefSpec | CoordTensorSpec:
    """The type of a view of memory or of coordinates."""
    if isinstance(base, PtrSpec):
        return MemRefSpec(base.element, base.space, layout, base.align, base.swizzle)
    return CoordTensorSpec(base, layout)


def check_kinds(kinds: tuple[Kind, ...], operands: list[Spec]) -> None:
    for index, (kind, spec) in enumerate(zip(kinds, operands, strict=False)):
        if not isinstance(spec, kind.specs):
            raise wrong(index, kind.name, spec)


def infer_computation(computation: Computation) -> Infer:
    """The inference function of an op of the table."""

    def infer(operands: list[Spec], attributes: Attributes) -> list[Spec]:
        check_kinds(computation.operands, operands)
        result = computation(map(meaning_of, operands), attributes)
        return [spec_of_meaning(result)]

    return infer


def infer_elem_less(operands: list[Spec], _: Attributes) -> list[Spec]:
    lhs, rhs = int_tuple_operand(operands, 0), int_tuple_operand(operands, 1)
    algebra.elem_less(lhs, rhs)
    return ["i1"]


def infer_equal(operands: list[Spec], _: Attributes) -> list[Spec]:
    algebra.equal(int_tuple_operand(operands, 0), int_tuple_operand(operands, 1))
    return ["i1"]


def infer_slice(operands: list[Spec], _: Attributes) -> list[Spec]:
    check_kinds((NESTED,), operands)
    source, coord = meaning_of(operands[0]), int_tuple_operand(operands, 1)
    if not isinstance(source, View):
        return [spec_of_meaning(algebra.slice_(source, coord))]
    layout = algebra.slice_(source.layout, coord)
    if isinstance(layout, ComposedLayout):
        # A composed layout includes the offset of the slice.
        return [view_spec(source.base, layout)]
    return [view_spec(moved(source.base, algebra.slice_offset(source.layout, coord)), layout)]


def infer_decomposition(operands: list[Spec], _: Attributes) -> list[Spec]:
    """The view with only the linear layout. Its base is the position to which the rest of a
    composed layout maps the first element."""
    check_kinds((VIEW,), operands)
    view = meaning_of(operands[0])
    if isinstance(view.layout, Layout):
        return [operands[0]]
    return [view_spec(moved(view.base, algebra.origin(view.layout)), view.layout.linear)]


def moved(base: Any, offset: Any) -> Any:
    """A pointer type or a coordinate, advanced by `offset`."""
    if isinstance(base, PtrSpec):
        return moved_pointer(base, offset)
    return algebra.add(base, offset)


def infer_make_fragment_like(operands: list[Spec], attributes: Attributes) -> list[Spec]:
    check_kinds((LAYOUT_LIKE,), operands)
    source, element = operands[0], attributes.get("dtype")
    if element is None:
        if not isinstance(source, MemRefSpec):
            raise ValueError(f"{source} has no elements: the fragment needs a dtype")
        element = source.element
    layout = algebra.make_fragment_layout_like(any_layout_operand(operands, 0))
    return [MemRefSpec(str(element), "register", layout)]
